//! What the VinoNode asks for, checked once: an entry that makes no sense is a trouble of its own and stops nobody else.

use std::{collections::BTreeMap, net::IpAddr};

use api::vinonode::{
    CpuPolicy, Dhcp, DiskFormat, Firmware as ApiFirmware, ImageUse, NetworkMode, NodeDisk, NodeInterface, NodeNetwork,
    NodePool, NodeVm, NumaPolicy, State, VinoNodeSpec,
};
use base::{CpuSet, Mac};
use hypervisor::{Firmware, NetBoot, Uuid, VolumeFormat, VolumeRef, xml};
use ipnet::IpNet;

use crate::plan::{Object, Reason, Trouble};

/// What one node shall have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Uid of the Vino.
    pub owner: String,
    /// Identity of the machine that is meant.
    pub machine: String,
    /// What the marker of its default pool says; None: not yet known.
    pub marker: Option<String>,
    /// Rises with every change.
    pub serial: i64,
    /// Processors that no virtual machine gets.
    pub reserved: CpuSet,
    /// Networks by name.
    pub networks: BTreeMap<String, WantNetwork>,
    /// Pools by name.
    pub pools: BTreeMap<String, WantPool>,
    /// Virtual machines of this machine by UUID.
    pub vms: BTreeMap<Uuid, WantVm>,
    /// Entries that make no sense.
    pub troubles: Vec<Trouble>,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantNetwork {
    /// Whether it shall be there.
    pub present: bool,
    /// How it reaches what is outside.
    pub mode: NetworkMode,
    /// Its bridge.
    pub bridge: String,
    /// MAC address of the bridge.
    pub mac: Option<Mac>,
    /// Interface that is made a port of the bridge.
    pub physical: Option<String>,
    /// Largest packet.
    pub mtu: Option<u32>,
    /// Its subnet.
    pub subnet: IpNet,
    /// Address of the node in it.
    pub address: Option<IpNet>,
    /// Who answers DHCP.
    pub dhcp: WantDhcp,
}

/// DHCP of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantDhcp {
    /// Who answers.
    pub server: Dhcp,
    /// Addresses for those that have none of their own.
    pub range: Option<(IpAddr, IpAddr)>,
    /// Name servers.
    pub dns_servers: Vec<IpAddr>,
    /// Routes.
    pub routes: Vec<(IpNet, IpAddr)>,
    /// What machines that boot by network are told.
    pub boot: Option<NetBoot>,
    /// Directory that is served by TFTP.
    pub tftp_root: Option<String>,
}

/// A storage pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantPool {
    /// Whether it shall be there.
    pub present: bool,
    /// Its directory.
    pub path: String,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantVm {
    /// Its name.
    pub name: String,
    /// Whether it shall be there.
    pub present: bool,
    /// Serial with which it was first asked for.
    pub since: i64,
    /// Its group.
    pub group: String,
    /// Name of its host object.
    pub host: String,
    /// Processors.
    pub vcpus: u32,
    /// How it gets them.
    pub cpu_policy: CpuPolicy,
    /// Where its processors and memory are.
    pub numa_policy: NumaPolicy,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// Size of its huge pages in KiB.
    pub hugepages_kib: Option<u64>,
    /// What starts it.
    pub firmware: Firmware,
    /// Disks, the root disk first.
    pub disks: Vec<WantDisk>,
    /// Network cards.
    pub nics: Vec<WantNic>,
    /// Whether it has a VNC display.
    pub vnc: bool,
    /// XML laid over what is generated.
    pub overlay: Option<String>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantDisk {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub volume: VolumeRef,
    /// Size in bytes.
    pub capacity: u64,
    /// How it is stored.
    pub format: VolumeFormat,
    /// Whether space is taken only when it is written to.
    pub sparse: bool,
    /// What is on it at first.
    pub image: Option<WantImage>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantImage {
    /// Where it is fetched from.
    pub url: String,
    /// Its SHA-256, where it is to be checked.
    pub sha256: Option<String>,
    /// Whether disks rest on it rather than being copies.
    pub backing: bool,
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantNic {
    /// Its name.
    pub name: String,
    /// Its network.
    pub network: String,
    /// Its MAC address.
    pub mac: Mac,
    /// Its address.
    pub ip: Option<IpAddr>,
    /// Largest packet.
    pub mtu: Option<u32>,
    /// Whether the machine boots by it.
    pub boot: bool,
}

impl Want {
    /// What a spec asks of the machine that is meant. Entries of other machines are passed over.
    pub fn of(spec: &VinoNodeSpec) -> Self {
        let VinoNodeSpec { serial, vino_ref, machine, cpu_exclude, networks, pools, vms, bmc: _ } = spec;
        let mut want = Want {
            owner: vino_ref.uid.clone(),
            machine: machine.machine_id.clone(),
            marker: machine.marker.clone(),
            serial: *serial,
            ..Want::default()
        };
        match cpu_exclude.as_deref().unwrap_or_default().parse() {
            Ok(reserved) => want.reserved = reserved,
            Err(error) => {
                let message = format!("spec.cpuExclude: {error}");
                want.troubles.push(Trouble { object: Object::Node, reason: Reason::SpecInvalid, message });
            }
        }
        let mut troubles = Vec::new();
        let mut bad = |object: Object, message: String| {
            troubles.push(Trouble { object, reason: Reason::SpecInvalid, message });
        };
        for entry in networks {
            match network(entry) {
                Ok(network) => drop(want.networks.insert(entry.name.clone(), network)),
                Err(message) => bad(Object::Network(entry.name.clone()), message),
            }
        }
        for NodePool { name, state, path } in pools {
            if path.starts_with('/') && !path.split('/').any(|part| part == "..") {
                want.pools.insert(name.clone(), WantPool { present: *state == State::Present, path: path.clone() });
            } else {
                bad(Object::Pool(name.clone()), format!("path {path:?} is not absolute"));
            }
        }
        for entry in vms.iter().filter(|entry| entry.machine_id == machine.machine_id) {
            let Ok(uuid) = entry.uuid.parse::<Uuid>() else {
                bad(Object::Vm(Uuid::nil(), entry.name.clone()), format!("uuid {:?} is none", entry.uuid));
                continue;
            };
            match vm(entry) {
                Ok(vm) => drop(want.vms.insert(uuid, vm)),
                Err(message) => bad(Object::Vm(uuid, entry.name.clone()), message),
            }
        }
        want.troubles.extend(troubles);
        want
    }
}

/// Whether a text can be the name of a network interface, and nothing else: it goes into rules.
fn is_interface(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

fn network(entry: &NodeNetwork) -> Result<WantNetwork, String> {
    let NodeNetwork {
        name: _,
        state,
        mode,
        bridge,
        physical_interface,
        mtu,
        subnet,
        bridge_ip,
        bridge_mac,
        dhcp,
        dhcp_range,
        dns_servers,
        routes,
        pxe,
    } = entry;
    for (field, name) in [("bridge", Some(bridge)), ("physicalInterface", physical_interface.as_ref())] {
        if let Some(name) = name.filter(|name| !is_interface(name)) {
            return Err(format!("{field} {name:?} cannot be the name of an interface"));
        }
    }
    let subnet: IpNet = subnet.parse().map_err(|_| format!("subnet {subnet:?} is no CIDR"))?;
    let address = match bridge_ip {
        Some(ip) if *mode != NetworkMode::Bridge => {
            if !subnet.contains(ip) {
                return Err(format!("bridgeIP {ip} is not in subnet {subnet}"));
            }
            Some(IpNet::new(*ip, subnet.prefix_len()).map_err(|error| format!("bridgeIP {ip}: {error}"))?)
        }
        _ => None,
    };
    let mac = bridge_mac.as_ref().map(|mac| mac.parse().map_err(|error| format!("bridgeMAC: {error}"))).transpose()?;
    let mut announced = Vec::new();
    for route in routes {
        let to = route.to.parse().map_err(|_| format!("route to {:?} is no CIDR", route.to))?;
        announced.push((to, route.gateway));
    }
    let boot = pxe.as_ref().and_then(|pxe| match (&pxe.boot_file, &pxe.boot_url) {
        // A machine that loads by TFTP knows no http; what it loads then may.
        (Some(file), _) if pxe.tftp_root.is_some() || pxe.tftp_server.is_some() => {
            Some(NetBoot { file: file.clone(), server: pxe.tftp_server.clone() })
        }
        (_, Some(url)) => Some(NetBoot { file: url.clone(), server: None }),
        (Some(file), None) => Some(NetBoot { file: file.clone(), server: pxe.tftp_server.clone() }),
        (None, None) => None,
    });
    Ok(WantNetwork {
        present: *state == State::Present,
        mode: *mode,
        bridge: bridge.clone(),
        mac: mac.filter(|_| *mode != NetworkMode::Bridge),
        physical: physical_interface.clone().filter(|_| *mode != NetworkMode::Bridge),
        mtu: mtu.and_then(|mtu| u32::try_from(mtu).ok()).filter(|_| *mode != NetworkMode::Bridge),
        subnet: subnet.trunc(),
        address,
        dhcp: WantDhcp {
            server: *dhcp,
            range: dhcp_range.map(|range| (range.start, range.stop)),
            dns_servers: dns_servers.clone(),
            routes: announced,
            boot,
            tftp_root: pxe.as_ref().and_then(|pxe| pxe.tftp_root.clone()),
        },
    })
}

fn vm(entry: &NodeVm) -> Result<WantVm, String> {
    let NodeVm {
        uuid: _,
        name,
        state,
        machine_id: _,
        since,
        group,
        host,
        vcpus,
        cpu_policy,
        numa_policy,
        memory_mib,
        hugepages,
        firmware,
        disks,
        interfaces,
        boot_interface,
        vnc,
        xml_overlay,
    } = entry;
    if let Some(overlay) = xml_overlay {
        xml::overlay::check(overlay).map_err(|error| error.to_string())?;
    }
    let mut nics = Vec::new();
    for NodeInterface { name, network, mac, ip, mtu } in interfaces {
        let mac: Mac = mac.parse().map_err(|error| format!("interface {name}: {error}"))?;
        if !mac.is_unicast() {
            return Err(format!("interface {name}: MAC address {mac} is none that one interface may have"));
        }
        nics.push(WantNic {
            name: name.clone(),
            network: network.clone(),
            mac,
            ip: *ip,
            mtu: mtu.and_then(|mtu| u32::try_from(mtu).ok()),
            boot: boot_interface.as_ref() == Some(name),
        });
    }
    if let Some(boot) = boot_interface.as_ref().filter(|boot| !nics.iter().any(|nic| nic.name == **boot)) {
        return Err(format!("bootInterface {boot:?} is none of its interfaces"));
    }
    Ok(WantVm {
        name: name.clone(),
        present: *state == State::Present,
        since: *since,
        group: group.clone(),
        host: host.clone(),
        vcpus: u32::try_from(*vcpus).ok().filter(|vcpus| *vcpus > 0).ok_or("vcpus is to be at least 1")?,
        cpu_policy: *cpu_policy,
        numa_policy: *numa_policy,
        memory_kib: u64::try_from(*memory_mib)
            .ok()
            .filter(|mib| *mib > 0)
            .and_then(|mib| mib.checked_mul(1 << 10))
            .ok_or("memoryMiB is to be positive")?,
        hugepages_kib: hugepages.map(api::vinonode::Hugepages::kib),
        firmware: match firmware {
            ApiFirmware::Bios => Firmware::Bios,
            ApiFirmware::Uefi => Firmware::Uefi,
        },
        disks: disks.iter().map(disk).collect::<Result<_, _>>()?,
        nics,
        vnc: *vnc,
        overlay: xml_overlay.clone(),
    })
}

fn disk(entry: &NodeDisk) -> Result<WantDisk, String> {
    let NodeDisk { name, pool, volume, size_bytes, format, sparse, image } = entry;
    if volume.is_empty() || volume.contains('/') || volume.starts_with('.') {
        return Err(format!("disk {name}: volume {volume:?} is no file name"));
    }
    Ok(WantDisk {
        name: name.clone(),
        volume: VolumeRef { pool: pool.clone(), volume: volume.clone() },
        capacity: u64::try_from(*size_bytes).map_err(|_| format!("disk {name}: sizeBytes is negative"))?,
        format: match format {
            DiskFormat::Qcow2 => VolumeFormat::Qcow2,
            DiskFormat::Raw => VolumeFormat::Raw,
        },
        sparse: *sparse,
        image: image.as_ref().map(|image| WantImage {
            url: image.url.clone(),
            sha256: image.sha256.clone(),
            backing: image.usage == Some(ImageUse::Backing),
        }),
    })
}
