//! libvirt as a [`Hypervisor`]: the only crate that calls C.
//!
//! ```text
//!   async caller ──► Link::call ──► a thread of its own pool ──► libvirt (blocks)
//!                        │               │
//!                        │ time limit    └── connection: opened when needed, dropped when it broke
//!                        ▼
//!                     Error::Timeout: the thread is still in there; it gives its place back when libvirt answers
//! ```
//!
//! Domains are read, changed and written as a whole, under a lock of their own: what a BMC sets and what an owner defines
//! never overwrite each other.

mod connection;
mod domains;
mod error;
mod events;
mod ffi;
mod networks;
mod power;
mod storage;
mod trial;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use hypervisor::{
    Acceleration, Boot, DhcpHost, Domain, DomainSpec, Effect, Events, Firmware, Host, Hypervisor, Lease, Listing, Mark,
    Media, Network, NetworkSpec, Pool, PoolSpec, PowerAction, Result, Stats, Uuid, Volume, VolumeRef, VolumeSpec, xml,
};
use tokio::sync::OnceCell;

use connection::Link;

/// Most calls take milliseconds. What takes longer than this has lost its answer.
const QUICK: Duration = Duration::from_secs(30);
/// Starting a guest reserves its memory, stopping one writes back what it has cached.
const POWER: Duration = Duration::from_mins(2);
/// Copies of images, and disks that take their space at once.
const COPY: Duration = Duration::from_hours(1);

/// A connection to libvirt. Clones share it.
#[derive(Clone)]
pub struct Libvirt {
    link: Arc<Link>,
    boot_id: Arc<str>,
    acceleration: Arc<OnceCell<Acceleration>>,
}

impl Libvirt {
    /// The libvirt behind this URI, such as `qemu:///system`. It is connected to when it is first needed, and again
    /// whenever the connection breaks.
    ///
    /// `boot_id` changes with every start of the machine (`/proc/sys/kernel/random/boot_id`).
    pub fn new(uri: &str, boot_id: &str) -> Self {
        Self { link: Arc::new(Link::new(uri)), boot_id: boot_id.into(), acceleration: Arc::default() }
    }

    /// The same, with an answer to whether guests run on the processor itself: no trial guest is run.
    #[must_use]
    pub fn with_acceleration(self, acceleration: Acceleration) -> Self {
        Self { acceleration: Arc::new(OnceCell::new_with(Some(acceleration))), ..self }
    }

    async fn acceleration(&self) -> Result<Acceleration> {
        let tried = self.acceleration.get_or_try_init(|| self.link.call("try a guest with KVM", POWER, trial::run));
        tried.await.cloned()
    }
}

#[async_trait]
impl Hypervisor for Libvirt {
    async fn host(&self) -> Result<Host> {
        let acceleration = self.acceleration().await?;
        let capabilities =
            self.link.call("read the capabilities", QUICK, |cx| cx.done(cx.connect.get_capabilities())).await?;
        Ok(Host { acceleration, boot_id: self.boot_id.to_string(), ..xml::read_host(&capabilities)? })
    }

    async fn domains(&self) -> Result<Listing<Domain>> {
        self.link.call("list the domains", POWER, domains::list).await
    }

    async fn domain(&self, uuid: Uuid) -> Result<Domain> {
        self.link.call(format!("read domain {uuid}"), QUICK, move |cx| domains::read(cx, uuid)).await
    }

    async fn define_domain(&self, spec: &DomainSpec) -> Result<()> {
        let spec = spec.clone();
        let doing = format!("define domain {}", spec.name);
        self.link.exclusive(spec.uuid, doing, QUICK, move |cx| domains::define(cx, &spec)).await
    }

    async fn mark_domain(&self, uuid: Uuid, mark: &Mark) -> Result<()> {
        let mark = mark.clone();
        let doing = format!("mark domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| domains::mark(cx, uuid, mark)).await
    }

    async fn undefine_domain(&self, uuid: Uuid) -> Result<()> {
        let doing = format!("undefine domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| domains::undefine(cx, uuid)).await
    }

    async fn power(&self, uuid: Uuid, action: PowerAction) -> Result<Effect> {
        let boot_id = self.boot_id.clone();
        let doing = format!("switch domain {uuid}: {action}");
        self.link.exclusive(uuid, doing, POWER, move |cx| power::switch(cx, uuid, action, &boot_id)).await
    }

    async fn note_power(&self, uuid: Uuid, on: bool) -> Result<()> {
        let boot_id = self.boot_id.clone();
        let doing = format!("note the power of domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| power::note(cx, uuid, on, &boot_id)).await
    }

    async fn set_boot(&self, uuid: Uuid, boot: Boot) -> Result<()> {
        let doing = format!("set the boot override of domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| domains::set(cx, uuid, |settings| settings.boot = boot)).await
    }

    async fn set_firmware(&self, uuid: Uuid, firmware: Option<Firmware>) -> Result<()> {
        let doing = format!("set the firmware of domain {uuid}");
        self.link
            .exclusive(uuid, doing, QUICK, move |cx| domains::set(cx, uuid, |settings| settings.firmware = firmware))
            .await
    }

    async fn insert_media(&self, uuid: Uuid, media: &Media) -> Result<()> {
        let media = media.clone();
        let doing = format!("insert {} into domain {uuid}", media.file);
        self.link.exclusive(uuid, doing, QUICK, move |cx| domains::set_media(cx, uuid, Some(&media))).await.map(drop)
    }

    async fn eject_media(&self, uuid: Uuid) -> Result<Effect> {
        let doing = format!("eject the medium of domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| domains::set_media(cx, uuid, None)).await
    }

    async fn stats(&self) -> Result<BTreeMap<Uuid, Stats>> {
        self.link.call("read statistics", QUICK, |cx| cx.done(ffi::stats(&cx.connect))).await
    }

    async fn networks(&self) -> Result<Listing<Network>> {
        self.link.call("list the networks", QUICK, networks::list).await
    }

    async fn define_network(&self, spec: &NetworkSpec) -> Result<()> {
        let spec = spec.clone();
        self.link.call(format!("define network {}", spec.name), QUICK, move |cx| networks::define(cx, &spec)).await
    }

    async fn set_dhcp_hosts(&self, network: &str, hosts: &[DhcpHost]) -> Result<()> {
        let (name, hosts) = (network.to_owned(), hosts.to_vec());
        let doing = format!("set the DHCP hosts of network {network}");
        self.link.call(doing, QUICK, move |cx| networks::set_hosts(cx, &name, &hosts)).await
    }

    async fn start_network(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("start network {name}"), QUICK, move |cx| networks::start(cx, &name)).await
    }

    async fn stop_network(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("stop network {name}"), QUICK, move |cx| networks::stop(cx, &name)).await
    }

    async fn undefine_network(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("undefine network {name}"), QUICK, move |cx| networks::undefine(cx, &name)).await
    }

    async fn leases(&self, network: &str) -> Result<Vec<Lease>> {
        let name = network.to_owned();
        self.link.call(format!("read the leases of network {name}"), QUICK, move |cx| networks::leases(cx, &name)).await
    }

    async fn pools(&self) -> Result<Listing<Pool>> {
        self.link.call("list the pools", QUICK, storage::pools).await
    }

    async fn define_pool(&self, spec: &PoolSpec) -> Result<()> {
        let spec = spec.clone();
        self.link.call(format!("define pool {}", spec.name), QUICK, move |cx| storage::define_pool(cx, &spec)).await
    }

    async fn start_pool(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("start pool {name}"), QUICK, move |cx| storage::start_pool(cx, &name)).await
    }

    async fn stop_pool(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("stop pool {name}"), QUICK, move |cx| storage::stop_pool(cx, &name)).await
    }

    async fn undefine_pool(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.link.call(format!("undefine pool {name}"), QUICK, move |cx| storage::undefine_pool(cx, &name)).await
    }

    async fn volumes(&self, pool: &str) -> Result<Listing<Volume>> {
        let pool = pool.to_owned();
        self.link.call(format!("list the volumes of pool {pool}"), POWER, move |cx| storage::volumes(cx, &pool)).await
    }

    async fn create_volume(&self, spec: &VolumeSpec) -> Result<()> {
        let spec = spec.clone();
        let doing = format!("make volume {}/{}", spec.pool, spec.name);
        self.link.call(doing, COPY, move |cx| storage::create(cx, &spec)).await
    }

    async fn grow_volume(&self, volume: &VolumeRef, capacity: u64) -> Result<()> {
        let volume = volume.clone();
        let doing = format!("grow volume {}/{}", volume.pool, volume.volume);
        self.link.call(doing, QUICK, move |cx| storage::grow(cx, &volume, capacity)).await
    }

    async fn grow_disk(&self, uuid: Uuid, target: &str, capacity: u64) -> Result<()> {
        let target = target.to_owned();
        let doing = format!("grow disk {target} of domain {uuid}");
        self.link.exclusive(uuid, doing, QUICK, move |cx| storage::grow_disk(cx, uuid, &target, capacity)).await
    }

    async fn delete_volume(&self, volume: &VolumeRef) -> Result<()> {
        let volume = volume.clone();
        let doing = format!("delete volume {}/{}", volume.pool, volume.volume);
        self.link.call(doing, POWER, move |cx| storage::delete(cx, &volume)).await
    }

    fn events(&self) -> Events {
        self.link.events()
    }
}
