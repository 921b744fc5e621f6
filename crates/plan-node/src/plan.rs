//! The plan: steps in the order they are carried out, and what stays open, in words.

use std::fmt;

use hypervisor::{
    DhcpHost, DiskSource, Domain, DomainSpec, LastPower, Mark, Network, NetworkSpec, Pool, PoolSpec, PowerState,
    Settings, Uuid, Volume, VolumeFormat, VolumeRef, VolumeSource, VolumeSpec,
};

use crate::{firewall::Rules, seen::Seen, want::Want};

/// One change. Nothing is left to decide when it is carried out, and every step may be carried out again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Define a pool.
    DefinePool(PoolSpec),
    /// Start a pool.
    StartPool(String),
    /// Write the marker file into the directory of a pool.
    MarkPool {
        /// The pool.
        pool: String,
        /// What it says.
        marker: String,
    },
    /// Stop using a pool.
    StopPool(String),
    /// Remove a pool's definition; its directory stays.
    UndefinePool(String),
    /// Define a network, or define it anew.
    DefineNetwork(Box<NetworkSpec>),
    /// Change who its DHCP answers.
    SetDhcpHosts {
        /// The network.
        network: String,
        /// Who is answered.
        hosts: Vec<DhcpHost>,
    },
    /// Start a network.
    StartNetwork(String),
    /// Stop a network that nobody is plugged into.
    StopNetwork(String),
    /// Remove a network's definition.
    UndefineNetwork(String),
    /// Make an interface of the machine a port of a bridge.
    PlugInterface {
        /// The interface.
        interface: String,
        /// The bridge.
        bridge: String,
    },
    /// Load our firewall rules, in the place of those before.
    SetRules(Rules),
    /// Fetch an image, check it, and make a volume of it.
    FetchImage {
        /// The volume.
        volume: VolumeRef,
        /// Where it is fetched from.
        url: String,
        /// Its SHA-256, where it is to be checked.
        sha256: Option<String>,
    },
    /// Make a volume.
    CreateVolume(Box<VolumeSpec>),
    /// Make a volume larger that no running guest has.
    GrowVolume {
        /// The volume.
        volume: VolumeRef,
        /// Its new size in bytes.
        capacity: u64,
    },
    /// Make a disk of a running guest larger.
    GrowDisk {
        /// The domain.
        uuid: Uuid,
        /// Its place, such as `vda`.
        target: String,
        /// The volume it is in.
        volume: VolumeRef,
        /// Its new size in bytes.
        capacity: u64,
    },
    /// Remove a volume for good.
    DeleteVolume(VolumeRef),
    /// Define a domain, or define it anew for its next start.
    DefineDomain(Box<DomainSpec>),
    /// Change what a domain is marked with.
    MarkDomain {
        /// The domain.
        uuid: Uuid,
        /// Its mark.
        mark: Mark,
    },
    /// Note what a domain's power is, for after a power cut.
    NotePower {
        /// The domain.
        uuid: Uuid,
        /// Whether it runs.
        on: bool,
    },
    /// Switch a domain on that ran before the machine was started anew.
    Restore {
        /// The domain.
        uuid: Uuid,
        /// Its name.
        name: String,
    },
    /// Take the power from a domain that shall go.
    Stop {
        /// The domain.
        uuid: Uuid,
        /// Its name.
        name: String,
    },
    /// Remove a domain's definition and its console log.
    UndefineDomain {
        /// The domain.
        uuid: Uuid,
        /// Its name.
        name: String,
        /// Its console log.
        console_log: Option<String>,
    },
}

/// What a trouble is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// The node as a whole.
    Node,
    /// A pool.
    Pool(String),
    /// A network.
    Network(String),
    /// A virtual machine: UUID and name.
    Vm(Uuid, String),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Node => f.write_str("node"),
            Object::Pool(name) => write!(f, "pool {name}"),
            Object::Network(name) => write!(f, "network {name}"),
            Object::Vm(_, name) => write!(f, "vm {name}"),
        }
    }
}

/// Why something stays open: condition reason, event reason and metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The entry makes no sense.
    SpecInvalid,
    /// The VinoNode is for another machine.
    OtherMachine,
    /// It is older than what this machine has seen.
    SerialOlder,
    /// It asks for nothing, and there is something.
    Empty,
    /// The file system of the default pool is not there.
    PoolNotMounted,
    /// A pool is in another place than asked for.
    PoolElsewhere,
    /// A pool cannot be used yet.
    PoolNotReady,
    /// Something that is not ours has the name.
    Foreign,
    /// Something that others made cannot be read.
    Unreadable,
    /// Somebody still uses what shall go.
    InUse,
    /// An interface carries an address of the node or a default route.
    InterfaceInUse,
    /// There is no such interface or bridge.
    InterfaceMissing,
    /// The node has an address in that subnet.
    SubnetInUse,
    /// It takes effect when the last guest has left the network, or the node starts anew.
    NetworkAtNextStart,
    /// A network that it needs is not there.
    NetworkMissing,
    /// There are not enough cores.
    CoresShort,
    /// There is not enough memory.
    MemoryShort,
    /// A disk that was made is missing.
    DiskLost,
}

impl Reason {
    /// Its name in conditions, events and metrics.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// What stays open, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is about.
    pub object: Object,
    /// One of a closed set.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.message)
    }
}

/// The steps, in order, and what stays open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Changes in the order they are carried out. A step that fails holds up only what it is about.
    pub steps: Vec<Step>,
    /// What stays open.
    pub troubles: Vec<Trouble>,
}

impl Plan {
    pub(crate) fn trouble(&mut self, object: Object, reason: Reason, message: String) {
        self.troubles.push(Trouble { object, reason, message });
    }

    /// Whether a domain is gone after this plan.
    pub(crate) fn removes(&self, uuid: Uuid) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::UndefineDomain { uuid: gone, .. } if *gone == uuid))
    }

    /// Whether a volume is gone after this plan.
    pub(crate) fn deletes(&self, volume: &VolumeRef) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::DeleteVolume(gone) if gone == volume))
    }

    /// Whether a volume is made by this plan.
    pub(crate) fn makes(&self, volume: &VolumeRef) -> bool {
        self.steps.iter().any(|step| match step {
            Step::CreateVolume(made) => (&made.pool, &made.name) == (&volume.pool, &volume.volume),
            Step::FetchImage { volume: made, .. } => made == volume,
            _ => false,
        })
    }

    /// Whether a network is there and runs after this plan.
    pub(crate) fn has_network(&self, seen: &Seen, name: &str) -> bool {
        let runs = seen.networks.get(name).is_some_and(|network| network.running.is_some());
        runs || self.steps.iter().any(|step| matches!(step, Step::StartNetwork(started) if started == name))
    }

    /// Whether a pool is there and active after this plan.
    pub(crate) fn pool_is_usable(&self, want: &Want, seen: &Seen, name: &str) -> bool {
        let asked = want.pools.get(name).filter(|pool| pool.present);
        let there = seen.pools.get(name);
        asked.is_some_and(|asked| there.is_none_or(|there| there.spec.path == asked.path))
            && (there.is_some_and(|there| there.active)
                || self.steps.iter().any(|step| matches!(step, Step::StartPool(started) if started == name)))
    }
}

/// What `seen` becomes once `plan` is carried out.
pub fn after(mut seen: Seen, plan: &Plan) -> Seen {
    for step in &plan.steps {
        carry_out(&mut seen, step);
    }
    seen
}

fn carry_out(seen: &mut Seen, step: &Step) {
    match step {
        Step::DefinePool(spec) => {
            let pool = Pool { spec: spec.clone(), active: false, autostart: true, capacity: 0, available: 0 };
            seen.pools.insert(spec.name.clone(), pool);
        }
        Step::StartPool(name) => {
            if let Some(pool) = seen.pools.get_mut(name) {
                pool.active = true;
            }
            seen.volumes.entry(name.clone()).or_default();
        }
        Step::MarkPool { pool: _, marker } => seen.marker = Some(marker.clone()),
        Step::StopPool(name) => {
            if let Some(pool) = seen.pools.get_mut(name) {
                pool.active = false;
            }
            seen.volumes.remove(name);
        }
        Step::UndefinePool(name) => drop(seen.pools.remove(name)),
        Step::DefineNetwork(spec) => {
            let running = seen.networks.remove(&spec.name).and_then(|network| network.running);
            let network = Network { spec: (**spec).clone(), running, autostart: true };
            seen.networks.insert(spec.name.clone(), network);
        }
        Step::SetDhcpHosts { network, hosts } => {
            if let Some(Network { spec, running, .. }) = seen.networks.get_mut(network) {
                for spec in [Some(spec), running.as_mut()].into_iter().flatten() {
                    if let Some(dhcp) = &mut spec.dhcp {
                        dhcp.hosts.clone_from(hosts);
                    }
                }
            }
        }
        Step::StartNetwork(name) => {
            if let Some(network) = seen.networks.get_mut(name) {
                network.running = Some(network.spec.clone());
                seen.interfaces.entry(network.spec.bridge.clone()).or_default().bridge = true;
            }
        }
        Step::StopNetwork(name) => {
            if let Some(network) = seen.networks.get_mut(name) {
                network.running = None;
                let bridge = network.spec.bridge.clone();
                if network.spec.forward == hypervisor::Forward::Open {
                    seen.interfaces.remove(&bridge);
                    seen.interfaces
                        .values_mut()
                        .for_each(|port| port.master = port.master.take().filter(|at| *at != bridge));
                }
            }
        }
        Step::UndefineNetwork(name) => drop(seen.networks.remove(name)),
        Step::PlugInterface { interface, bridge } => {
            seen.interfaces.entry(interface.clone()).or_default().master = Some(bridge.clone());
        }
        Step::SetRules(rules) => seen.rules = rules.clone(),
        Step::FetchImage { volume, .. } => {
            let format = Some(VolumeFormat::Qcow2);
            put(seen, volume, Volume { name: volume.volume.clone(), format, ..Volume::default() });
        }
        Step::CreateVolume(spec) => {
            let VolumeSpec { pool, name, format, capacity, sparse: _, source } = &**spec;
            let at = VolumeRef { pool: pool.clone(), volume: name.clone() };
            let backing = match source {
                VolumeSource::On(image) => {
                    let image = VolumeRef { pool: pool.clone(), volume: image.clone() };
                    Some(seen.volume(&image).map(|image| image.path.clone()).unwrap_or_default())
                }
                _ => None,
            };
            let volume =
                Volume { name: name.clone(), format: Some(*format), capacity: *capacity, backing, ..Volume::default() };
            put(seen, &at, volume);
        }
        Step::GrowVolume { volume, capacity } | Step::GrowDisk { volume, capacity, .. } => {
            if let Some(volume) = seen.volumes.get_mut(&volume.pool).and_then(|pool| pool.get_mut(&volume.volume)) {
                volume.capacity = *capacity;
            }
        }
        Step::DeleteVolume(volume) => {
            if let Some(pool) = seen.volumes.get_mut(&volume.pool) {
                pool.remove(&volume.volume);
            }
        }
        Step::DefineDomain(spec) => {
            let domain =
                seen.domains.entry(spec.uuid).or_insert_with(|| Domain { persistent: true, ..Domain::default() });
            domain.spec = (**spec).clone();
        }
        Step::MarkDomain { uuid, mark } => {
            if let Some(domain) = seen.domains.get_mut(uuid) {
                domain.spec.mark = Some(mark.clone());
            }
        }
        Step::NotePower { uuid, on } => note(seen, *uuid, *on),
        Step::Restore { uuid, .. } => {
            if let Some(domain) = seen.domains.get_mut(uuid) {
                domain.state = PowerState::On;
                domain.running = Some(domain.spec.clone());
            }
            note(seen, *uuid, true);
        }
        Step::Stop { uuid, .. } => {
            if let Some(domain) = seen.domains.get_mut(uuid) {
                domain.state = PowerState::Off;
                domain.running = None;
            }
        }
        Step::UndefineDomain { uuid, .. } => drop(seen.domains.remove(uuid)),
    }
}

fn note(seen: &mut Seen, uuid: Uuid, on: bool) {
    let boot_id = seen.host.boot_id.clone();
    if let Some(Domain { settings: Settings { last_power, .. }, .. }) = seen.domains.get_mut(&uuid) {
        *last_power = Some(LastPower { on, boot_id });
    }
}

fn put(seen: &mut Seen, at: &VolumeRef, mut volume: Volume) {
    let directory = seen.pools.get(&at.pool).map(|pool| pool.spec.path.clone()).unwrap_or_default();
    volume.path = format!("{directory}/{}", at.volume);
    seen.volumes.entry(at.pool.clone()).or_default().insert(at.volume.clone(), volume);
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        for trouble in &self.troubles {
            writeln!(f, "! {trouble}")?;
        }
        Ok(())
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |volume: &VolumeRef| format!("{}/{}", volume.pool, volume.volume);
        match self {
            Step::DefinePool(spec) => write!(f, "+ pool {} at {}", spec.name, spec.path),
            Step::StartPool(name) => write!(f, "~ pool {name} starts"),
            Step::MarkPool { pool, marker } => write!(f, "+ marker {marker} in pool {pool}"),
            Step::StopPool(name) => write!(f, "~ pool {name} stops"),
            Step::UndefinePool(name) => write!(f, "- pool {name}"),
            Step::DefineNetwork(spec) => {
                write!(f, "+ network {} on bridge {}", spec.name, spec.bridge)?;
                spec.address.iter().try_for_each(|address| write!(f, " at {address}"))
            }
            Step::SetDhcpHosts { network, hosts } => write!(f, "~ network {network} answers {} hosts", hosts.len()),
            Step::StartNetwork(name) => write!(f, "~ network {name} starts"),
            Step::StopNetwork(name) => write!(f, "~ network {name} stops"),
            Step::UndefineNetwork(name) => write!(f, "- network {name}"),
            Step::PlugInterface { interface, bridge } => write!(f, "~ interface {interface} into bridge {bridge}"),
            Step::SetRules(rules) => write!(f, "~ rules for {} networks", rules.networks.len()),
            Step::FetchImage { volume, url, .. } => write!(f, "+ image {} from {url}", at(volume)),
            Step::CreateVolume(spec) => {
                let from = match &spec.source {
                    VolumeSource::Blank | VolumeSource::File(_) => String::new(),
                    VolumeSource::CopyOf(image) => format!(", a copy of {image}"),
                    VolumeSource::On(image) => format!(", on {image}"),
                };
                write!(f, "+ volume {}/{} of {} MiB{from}", spec.pool, spec.name, mib(spec.capacity))
            }
            Step::GrowVolume { volume, capacity } => {
                write!(f, "~ volume {} grows to {} MiB", at(volume), mib(*capacity))
            }
            Step::GrowDisk { target, volume, capacity, .. } => {
                write!(f, "~ volume {} grows to {} MiB under its guest ({target})", at(volume), mib(*capacity))
            }
            Step::DeleteVolume(volume) => write!(f, "- volume {}", at(volume)),
            Step::DefineDomain(spec) => {
                write!(f, "+ vm {}: {} CPUs", spec.name, spec.vcpus)?;
                let pinned = spec.placement.pinned();
                if pinned.is_empty() {
                    write!(f, ", shared")?;
                } else {
                    write!(f, " on {pinned}")?;
                }
                let cells = &spec.placement.cells;
                write!(f, ", {} MiB", spec.memory_kib >> 10)?;
                if cells.is_empty() { Ok(()) } else { write!(f, " of cell {cells}") }
            }
            Step::MarkDomain { uuid, mark } => write!(f, "~ vm {uuid} is marked with serial {}", mark.serial),
            Step::NotePower { uuid, on } => write!(f, "~ vm {uuid} is noted as {}", if *on { "on" } else { "off" }),
            Step::Restore { name, .. } => write!(f, "~ vm {name} starts again"),
            Step::Stop { name, .. } => write!(f, "~ vm {name} stops"),
            Step::UndefineDomain { name, .. } => write!(f, "- vm {name}"),
        }
    }
}

/// The place and the volume of a domain's disks that are volumes.
pub(crate) fn volumes(spec: &DomainSpec) -> impl Iterator<Item = (&str, &VolumeRef)> {
    spec.disks.iter().filter_map(|disk| match &disk.source {
        DiskSource::Volume(volume) => Some((disk.target.as_str(), volume)),
        DiskSource::File(_) | DiskSource::Other(_) => None,
    })
}
