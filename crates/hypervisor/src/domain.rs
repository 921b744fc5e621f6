//! Virtual machines: what one is made of, whose it is, and in what state it is.

use std::collections::BTreeMap;

use base::{CpuSet, Mac};
use uuid::Uuid;

use crate::control::{Firmware, PowerState, Settings};

/// Whose a domain is, and what was made for it: kept in its definition, so that it lives and dies with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Uid of the owner.
    pub owner: String,
    /// Identity of the machine it was made on.
    pub machine: String,
    /// Group it belongs to.
    pub group: String,
    /// Name of its host object, for people.
    pub host: String,
    /// Serial with which it was first asked for.
    pub since: i64,
    /// Serial of the spec that it was last made equal to.
    pub serial: i64,
    /// Disks that were made for it, by name. One that is missing is lost; it is not made again.
    pub disks: BTreeMap<String, VolumeRef>,
}

/// A volume of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeRef {
    /// The pool.
    pub pool: String,
    /// The volume.
    pub volume: String,
}

/// What a virtual machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainSpec {
    /// Its UUID, which the firmware tables show to the guest.
    pub uuid: Uuid,
    /// Its name, unique on its host.
    pub name: String,
    /// Whose it is; None: not ours.
    pub mark: Option<Mark>,
    /// Processor architecture, such as `x86_64`.
    pub arch: String,
    /// What runs it.
    pub engine: Engine,
    /// Its mainboard.
    pub chipset: Chipset,
    /// What starts it, unless its BMC has been told otherwise.
    pub firmware: Firmware,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// Processors.
    pub vcpus: u32,
    /// How many of its processors it shall take for hyper-threads of one core. 0 counts as 1.
    pub threads: u32,
    /// Where on its host it is.
    pub placement: Placement,
    /// Disks, the root disk first.
    pub disks: Vec<Disk>,
    /// Network cards.
    pub nics: Vec<Nic>,
    /// File on its host that its serial console is logged to.
    pub console_log: Option<String>,
    /// Whether it has a VNC display, on the loopback address of its host.
    pub vnc: bool,
    /// Domain XML laid over what the rest of this says; see [`crate::xml::overlay`].
    pub overlay: Option<String>,
}

/// What runs a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The processor itself.
    Kvm,
    /// QEMU's emulation.
    #[default]
    Emulated,
    /// Another hypervisor (`test`, `xen`, ...).
    Other(String),
}

/// A mainboard, without its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Chipset {
    /// PCI Express and SATA.
    #[default]
    Q35,
    /// Another one; the name as libvirt gives it.
    Other(String),
}

/// Where on its host a domain is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The processors of the host that each of its own runs on. Empty, or shorter than it has processors: the others run on
    /// `shared`.
    pub pins: Vec<CpuSet>,
    /// Where its processors run that are not pinned. Empty: anywhere.
    pub shared: CpuSet,
    /// Where the hypervisor's own threads for it run. Empty: as `shared`.
    pub emulator: CpuSet,
    /// Cells its memory comes from. Empty: any.
    pub cells: CpuSet,
    /// Whether memory from other cells is refused rather than taken when those have none left.
    pub strict: bool,
    /// Size in KiB of the huge pages its memory is made of. None: of ordinary pages.
    pub hugepages_kib: Option<u64>,
}

impl Placement {
    /// Processors of the host that it has for itself.
    pub fn pinned(&self) -> CpuSet {
        self.pins.iter().flat_map(CpuSet::iter).collect()
    }
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Its place, such as `vda`: how a Linux guest calls it.
    pub target: String,
    /// What it is kept in.
    pub source: DiskSource,
    /// How that is stored, as libvirt says it: `qcow2` or `raw`.
    pub format: String,
    /// Serial number that the guest sees; at most 20 bytes of letters, digits, `-`, `_`, `.`.
    pub serial: Option<String>,
}

/// What a disk is kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskSource {
    /// A volume.
    Volume(VolumeRef),
    /// A file.
    File(String),
    /// Something that we do not make; in the words of libvirt.
    Other(String),
}

impl Default for DiskSource {
    fn default() -> Self {
        DiskSource::Other(String::new())
    }
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Name by which its owner knows it.
    pub name: String,
    /// MAC address.
    pub mac: Mac,
    /// What it is plugged into.
    pub source: NicSource,
    /// Largest packet; None: that of the network.
    pub mtu: Option<u32>,
    /// Whether the machine boots from it when its disk has nothing to boot.
    pub boot: bool,
}

/// What a network card is plugged into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicSource {
    /// A virtual network.
    Network(String),
    /// A bridge of the host.
    Bridge(String),
    /// Something that we do not make; the type as libvirt says it.
    Other(String),
}

/// A virtual machine as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// As it is defined: what it will be after its next start.
    pub spec: DomainSpec,
    /// What its BMC has set.
    pub settings: Settings,
    /// In what state it is.
    pub state: PowerState,
    /// As it runs, where it runs.
    pub running: Option<DomainSpec>,
    /// Whether its definition outlives the guest.
    pub persistent: bool,
}

impl Domain {
    /// What starts it next time.
    pub fn firmware(&self) -> Firmware {
        self.settings.firmware.unwrap_or(self.spec.firmware)
    }
}

/// What a guest has used since its start. What a hypervisor does not count is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Processor time in nanoseconds.
    pub cpu_ns: u64,
    /// Memory that the guest takes from its host, in KiB.
    pub rss_kib: u64,
    /// Bytes read from all disks.
    pub read_bytes: u64,
    /// Bytes written to all disks.
    pub written_bytes: u64,
    /// Bytes received on all network cards.
    pub received_bytes: u64,
    /// Bytes sent on all network cards.
    pub sent_bytes: u64,
}
