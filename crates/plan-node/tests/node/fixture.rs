//! Nodes and VinoNodes, built as sentences.

use std::collections::BTreeMap;

use api::vinonode::{
    CpuPolicy, Machine, NetworkMode, NodeBmc, NodeDisk, NodeInterface, NodeNetwork, NodePool, NodeVm, NumaPolicy,
    State, VinoNodeSpec, VinoRef,
};
use hypervisor::{Domain, LastPower, PowerState, Uuid};
use plan_node::{Interface, Plan, Seen, Step, Want, after, plan};
use testkit::hypervisor::Shape;

pub const MACHINE: &str = "machine-1";
pub const OWNER: &str = "vino-uid";

/// The UUID of the machine with that number.
pub fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(0x5117_0000_0000_4000_8000_0000_0000_0000 + number)
}

/// A machine with nothing on it.
pub fn bare(shape: &Shape) -> Seen {
    let uplink = Interface {
        addresses: vec!["10.1.0.5/24".parse().expect("an address")],
        default_route: true,
        ..Interface::default()
    };
    Seen {
        host: shape.host(),
        machine: MACHINE.to_owned(),
        interfaces: BTreeMap::from([("eth0".to_owned(), uplink), ("eth1".to_owned(), Interface::default())]),
        log_dir: "/var/log/guests".to_owned(),
        ..Seen::default()
    }
}

/// A VinoNode with the default pool, one network and no machines.
pub fn node(serial: i64) -> VinoNodeSpec {
    VinoNodeSpec {
        serial,
        vino_ref: VinoRef { namespace: "default".to_owned(), name: "fleet".to_owned(), uid: OWNER.to_owned() },
        machine: Machine { machine_id: MACHINE.to_owned(), marker: None },
        networks: vec![network("management")],
        pools: vec![NodePool {
            name: "vino-default".to_owned(),
            state: State::Present,
            path: "/var/lib/libvirt/vino-pool".to_owned(),
        }],
        bmc: NodeBmc { port: 8000, logins_secret: "logins".to_owned(), ..NodeBmc::default() },
        ..VinoNodeSpec::default()
    }
}

pub fn network(name: &str) -> NodeNetwork {
    NodeNetwork {
        name: name.to_owned(),
        mode: NetworkMode::Nat,
        bridge: "vm-infra".to_owned(),
        subnet: "192.168.0.0/20".to_owned(),
        bridge_ip: Some("192.168.2.10".parse().expect("an address")),
        bridge_mac: Some("52:54:00:06:00:00".to_owned()),
        ..NodeNetwork::default()
    }
}

/// A pinned machine of one CPU and 1 GiB, with a root disk and one network card.
pub fn vm(number: u8) -> NodeVm {
    let uuid = uuid(number.into());
    NodeVm {
        uuid: uuid.to_string(),
        name: format!("worker-{number}"),
        machine_id: MACHINE.to_owned(),
        since: 1,
        group: "worker".to_owned(),
        host: format!("default-fleet-node01-worker-{number}"),
        vcpus: 1,
        memory_mib: 1024,
        disks: vec![disk(number, "root")],
        interfaces: vec![NodeInterface {
            name: "management".to_owned(),
            network: "management".to_owned(),
            mac: format!("52:54:00:06:01:{number:02x}"),
            ip: Some([192, 168, 3, number].into()),
            mtu: None,
        }],
        boot_interface: Some("management".to_owned()),
        ..NodeVm::default()
    }
}

pub fn disk(number: u8, name: &str) -> NodeDisk {
    NodeDisk {
        name: name.to_owned(),
        pool: "vino-default".to_owned(),
        volume: format!("worker-{number}-{name}-{}", uuid(number.into())),
        size_bytes: 10 << 30,
        format: api::vinonode::DiskFormat::Qcow2,
        sparse: true,
        image: None,
    }
}

/// With these machines.
pub fn with(serial: i64, vms: impl IntoIterator<Item = NodeVm>) -> VinoNodeSpec {
    VinoNodeSpec { vms: vms.into_iter().collect(), ..node(serial) }
}

pub fn cpus(vcpus: i32, vm: NodeVm) -> NodeVm {
    NodeVm { vcpus, ..vm }
}

pub fn shared(vm: NodeVm) -> NodeVm {
    NodeVm { cpu_policy: CpuPolicy::Shared, ..vm }
}

pub fn numa(numa_policy: NumaPolicy, vm: NodeVm) -> NodeVm {
    NodeVm { numa_policy, ..vm }
}

pub fn absent(vm: NodeVm) -> NodeVm {
    NodeVm { state: State::Absent, ..vm }
}

pub fn planned(spec: &VinoNodeSpec, seen: &Seen) -> Plan {
    plan(&Want::of(spec), seen)
}

/// The machine after this VinoNode was carried out.
pub fn carried_out(spec: &VinoNodeSpec, seen: Seen) -> Seen {
    let plan = planned(spec, &seen);
    after(seen, &plan)
}

/// The guest of a domain is started, as its BMC would.
pub fn switch_on(seen: &mut Seen, uuid: Uuid) {
    let boot_id = seen.host.boot_id.clone();
    let domain = domain(seen, uuid);
    domain.state = PowerState::On;
    domain.running = Some(domain.spec.clone());
    domain.settings.last_power = Some(LastPower { on: true, boot_id });
}

/// The guest of a domain has stopped.
pub fn stop(seen: &mut Seen, uuid: Uuid) {
    let domain = domain(seen, uuid);
    domain.state = PowerState::Off;
    domain.running = None;
}

pub fn domain(seen: &mut Seen, uuid: Uuid) -> &mut Domain {
    seen.domains.get_mut(&uuid).expect("the domain is there")
}

/// The cores of a machine, as it is defined.
pub fn cores(seen: &Seen, number: u128) -> String {
    seen.domains[&uuid(number)].spec.placement.pinned().to_string()
}

/// The reasons of a plan's troubles, by name.
pub fn reasons(plan: &Plan) -> Vec<String> {
    plan.troubles.iter().map(|trouble| trouble.reason.name()).collect()
}

/// The steps but for who is answered by DHCP, which follows the entries.
pub fn but_dhcp(plan: &Plan) -> Vec<Step> {
    plan.steps.iter().filter(|step| !matches!(step, Step::SetDhcpHosts { .. })).cloned().collect()
}

/// Whether a step takes something away, or moves what runs.
pub fn destroys(step: &Step) -> bool {
    matches!(
        step,
        Step::Stop { .. }
            | Step::UndefineDomain { .. }
            | Step::DeleteVolume(_)
            | Step::StopNetwork(_)
            | Step::UndefineNetwork(_)
            | Step::StopPool(_)
            | Step::UndefinePool(_)
    )
}
