//! What a hypervisor is to Slipway: its values, the XML that libvirt speaks, and the trait that stands for it. No C, no I/O.
//!
//! Two things define a virtual machine, and they have different masters. A [`DomainSpec`] says what it is made of and comes
//! from whoever owns it; [`Settings`] say what its BMC was told (boot override, firmware, medium) and stay when the first
//! changes. Both live in the definition that the hypervisor keeps, next to the [`Mark`] that says whose it is: there is no
//! file beside it that could be lost or disagree.

pub mod control;
pub mod domain;
mod error;
pub mod event;
pub mod host;
pub mod network;
pub mod storage;
pub mod xml;

use std::{collections::BTreeMap, pin::Pin};

use async_trait::async_trait;
use futures_core::Stream;
pub use uuid::Uuid;

pub use control::{Act, Boot, BootTarget, Effect, Firmware, Hold, LastPower, Media, PowerAction, PowerState, Settings};
pub use domain::{
    Chipset, Disk, DiskSource, Domain, DomainSpec, Engine, Mark, Nic, NicSource, Placement, Stats, VolumeRef,
};
pub use error::{Error, Kind, Result};
pub use event::{Change, Event};
pub use host::{Acceleration, Cell, Cpu, Host};
pub use network::{DhcpHost, DhcpSpec, Forward, Lease, NetBoot, Network, NetworkMark, NetworkSpec};
pub use storage::{Pool, PoolSpec, Volume, VolumeFormat, VolumeSource, VolumeSpec};
pub use xml::{Unreadable, Unwritable};

/// What there is of a kind. One thing that cannot be read keeps nobody from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// What could be read, in the order of names.
    pub found: Vec<T>,
    /// What could not, and why.
    pub unreadable: Vec<Unreadable>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { found: Vec::new(), unreadable: Vec::new() }
    }
}

/// What happens, as it happens. It ends only with the hypervisor itself.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// Something that runs virtual machines.
///
/// Calls about one domain are carried out one after the other. Each is whole: what it says is so once it returns `Ok`. After
/// [`Error::Unreachable`] and [`Error::Timeout`] it may be so or not; every call may be made again, and then changes nothing
/// that is already as asked.
#[async_trait]
pub trait Hypervisor: Send + Sync {
    /// The machine it runs on.
    async fn host(&self) -> Result<Host>;

    /// All domains, foreign ones included.
    async fn domains(&self) -> Result<Listing<Domain>>;
    /// One domain.
    async fn domain(&self, uuid: Uuid) -> Result<Domain>;
    /// Defines a domain, or defines it anew: for its next start where it runs. What its BMC has set stays, and so do the
    /// addresses of its devices. [`Error::Exists`]: its name belongs to another one.
    async fn define_domain(&self, spec: &DomainSpec) -> Result<()>;
    /// Changes what a domain is marked with, and nothing else.
    async fn mark_domain(&self, uuid: Uuid, mark: &Mark) -> Result<()>;
    /// Removes a definition, with what its firmware has stored; disks stay. [`Error::WrongState`]: it runs.
    async fn undefine_domain(&self, uuid: Uuid) -> Result<()>;

    /// Switches the power of a domain; [`PowerAction::on`] says what that comes to. A start uses up a boot override that
    /// holds once. What was done is kept as [`Settings::last_power`], but for what a guest was only asked.
    async fn power(&self, uuid: Uuid, action: PowerAction) -> Result<Effect>;
    /// Keeps as [`Settings::last_power`] that it runs, or does not.
    async fn note_power(&self, uuid: Uuid, on: bool) -> Result<()>;
    /// Sets the boot override: for the next start.
    async fn set_boot(&self, uuid: Uuid, boot: Boot) -> Result<()>;
    /// Sets the firmware, for the next start; None: the one it is defined with.
    async fn set_firmware(&self, uuid: Uuid, firmware: Option<Firmware>) -> Result<()>;
    /// Puts a medium into the drive, also while the guest runs, in the place of one that is there.
    async fn insert_media(&self, uuid: Uuid, media: &Media) -> Result<()>;
    /// Takes the medium out, even if the guest holds on to it. [`Effect::Nothing`]: there is none.
    async fn eject_media(&self, uuid: Uuid) -> Result<Effect>;
    /// What running guests have used.
    async fn stats(&self) -> Result<BTreeMap<Uuid, Stats>>;

    /// All networks.
    async fn networks(&self) -> Result<Listing<Network>>;
    /// Defines a network, or defines it anew: for its next start where it runs ([`Hypervisor::set_dhcp_hosts`] changes that
    /// part at once). It is started with the hypervisor from then on.
    async fn define_network(&self, spec: &NetworkSpec) -> Result<()>;
    /// Changes who a network's DHCP answers, also while it runs, disturbing nobody.
    async fn set_dhcp_hosts(&self, network: &str, hosts: &[DhcpHost]) -> Result<()>;
    /// Starts a network; one that runs stays as it is.
    async fn start_network(&self, name: &str) -> Result<()>;
    /// Stops a network: its bridge goes, guests that are plugged in lose it until they start anew.
    async fn stop_network(&self, name: &str) -> Result<()>;
    /// Removes the definition of a network that does not run.
    async fn undefine_network(&self, name: &str) -> Result<()>;
    /// Addresses that a network's DHCP has given.
    async fn leases(&self, network: &str) -> Result<Vec<Lease>>;

    /// All storage pools.
    async fn pools(&self) -> Result<Listing<Pool>>;
    /// Defines a pool that is not there; it is then started with the hypervisor.
    async fn define_pool(&self, spec: &PoolSpec) -> Result<()>;
    /// Starts a pool, making its directory; one that is active stays so.
    async fn start_pool(&self, name: &str) -> Result<()>;
    /// Stops using a pool. Its directory stays, with all that is in it.
    async fn stop_pool(&self, name: &str) -> Result<()>;
    /// Removes the definition of a pool that is not active. Its directory stays.
    async fn undefine_pool(&self, name: &str) -> Result<()>;
    /// The volumes of an active pool as they are now, those that others put there included. A volume that is only half made
    /// is none.
    async fn volumes(&self, pool: &str) -> Result<Listing<Volume>>;
    /// Makes a volume: whole, or not at all. What an earlier call that was interrupted left of it is cleared away first.
    /// [`Error::Exists`]: there is one of that name; it stays as it is.
    async fn create_volume(&self, spec: &VolumeSpec) -> Result<()>;
    /// Makes a volume larger that no running guest has. It never becomes smaller: then nothing is done.
    async fn grow_volume(&self, volume: &VolumeRef, capacity: u64) -> Result<()>;
    /// Makes a disk of a running guest larger, and tells the guest. `target` is its [`Disk::target`].
    async fn grow_disk(&self, uuid: Uuid, target: &str, capacity: u64) -> Result<()>;
    /// Removes a volume for good.
    async fn delete_volume(&self, volume: &VolumeRef) -> Result<()>;

    /// What happens from now on.
    fn events(&self) -> Events;
}
