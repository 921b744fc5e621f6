//! The calls of the hypervisor in memory: faults first, then what the world says.

use std::collections::BTreeMap;

use ::hypervisor::{
    Boot, Change, DhcpHost, Domain, DomainSpec, Effect, Error, Event, Events, Firmware, Host, Hypervisor, Lease,
    Listing, Mark, Media, Network, NetworkSpec, Pool, PoolSpec, PowerAction, Result, Stats, Uuid, Volume, VolumeRef,
    VolumeSpec,
};
use async_trait::async_trait;
use futures::channel::mpsc;

use super::{FakeHypervisor, world::World};

impl FakeHypervisor {
    fn read<T>(&self, call: &'static str, read: impl FnOnce(&mut World) -> Result<T>) -> Result<T> {
        let mut inner = self.lock();
        if inner.crashed {
            return Err(unreachable(call));
        }
        match inner.fault(call) {
            Some(fault) => Err(fault.error),
            None => read(&mut inner.world),
        }
    }

    fn write<T>(
        &self,
        call: &'static str,
        object: &impl ToString,
        write: impl FnOnce(&mut World) -> Result<T>,
    ) -> Result<T> {
        let mut inner = self.lock();
        inner.calls.push(format!("{call}({})", object.to_string()));
        if inner.crashed {
            return Err(unreachable(call));
        }
        match inner.fault(call) {
            Some(fault) => {
                if fault.carried_out {
                    write(&mut inner.world)?;
                }
                Err(fault.error)
            }
            None => write(&mut inner.world),
        }
    }

    /// A call about a domain, which its listeners hear of.
    fn change<T>(
        &self,
        call: &'static str,
        uuid: Uuid,
        change: Change,
        write: impl FnOnce(&mut World) -> Result<T>,
    ) -> Result<T> {
        let done = self.write(call, &uuid, write)?;
        self.lock().tell(&Event::Domain { uuid, change });
        Ok(done)
    }
}

fn unreachable(call: &str) -> Error {
    Error::Unreachable { doing: call.to_owned(), why: "Connection refused".to_owned() }
}

#[async_trait]
impl Hypervisor for FakeHypervisor {
    async fn host(&self) -> Result<Host> {
        self.read("host", |world| Ok(world.host.clone()))
    }

    async fn domains(&self) -> Result<Listing<Domain>> {
        self.read("domains", |world| world.domains())
    }

    async fn domain(&self, uuid: Uuid) -> Result<Domain> {
        self.read("domain", |world| world.domain(uuid))
    }

    async fn define_domain(&self, spec: &DomainSpec) -> Result<()> {
        self.change("define_domain", spec.uuid, Change::Defined, |world| world.define(spec))
    }

    async fn mark_domain(&self, uuid: Uuid, mark: &Mark) -> Result<()> {
        self.write("mark_domain", &uuid, |world| world.mark(uuid, mark))
    }

    async fn undefine_domain(&self, uuid: Uuid) -> Result<()> {
        self.change("undefine_domain", uuid, Change::Undefined, |world| world.undefine(uuid))
    }

    async fn power(&self, uuid: Uuid, action: PowerAction) -> Result<Effect> {
        let before = self.lock().world.domain(uuid).map(|domain| domain.state).unwrap_or_default();
        let effect = self.write("power", &format!("{uuid} {action}"), |world| world.power(uuid, action))?;
        let mut inner = self.lock();
        let after = inner.world.domain(uuid)?.state;
        let stopped = before.has_guest() && !after.has_guest();
        let started = after.has_guest() && (!before.has_guest() || action == PowerAction::ForceRestart);
        if stopped || (started && before.has_guest()) {
            inner.tell(&Event::Domain { uuid, change: Change::Stopped });
        }
        if started {
            inner.tell(&Event::Domain { uuid, change: Change::Started });
        }
        Ok(effect)
    }

    async fn note_power(&self, uuid: Uuid, on: bool) -> Result<()> {
        self.write("note_power", &uuid, |world| world.note_power(uuid, on))
    }

    async fn set_boot(&self, uuid: Uuid, boot: Boot) -> Result<()> {
        self.change("set_boot", uuid, Change::Defined, |world| world.set_boot(uuid, boot))
    }

    async fn set_firmware(&self, uuid: Uuid, firmware: Option<Firmware>) -> Result<()> {
        self.change("set_firmware", uuid, Change::Defined, |world| world.set_firmware(uuid, firmware))
    }

    async fn insert_media(&self, uuid: Uuid, media: &Media) -> Result<()> {
        self.change("insert_media", uuid, Change::Defined, |world| world.set_media(uuid, Some(media))).map(drop)
    }

    async fn eject_media(&self, uuid: Uuid) -> Result<Effect> {
        self.change("eject_media", uuid, Change::Defined, |world| world.set_media(uuid, None))
    }

    async fn stats(&self) -> Result<BTreeMap<Uuid, Stats>> {
        self.read("stats", |world| Ok(world.stats()))
    }

    async fn networks(&self) -> Result<Listing<Network>> {
        self.read("networks", |world| world.networks())
    }

    async fn define_network(&self, spec: &NetworkSpec) -> Result<()> {
        self.write("define_network", &spec.name, |world| world.define_network(spec))
    }

    async fn set_dhcp_hosts(&self, network: &str, hosts: &[DhcpHost]) -> Result<()> {
        self.write("set_dhcp_hosts", &network, |world| world.set_dhcp_hosts(network, hosts))
    }

    async fn start_network(&self, name: &str) -> Result<()> {
        self.write("start_network", &name, |world| world.start_network(name))
    }

    async fn stop_network(&self, name: &str) -> Result<()> {
        self.write("stop_network", &name, |world| world.stop_network(name))
    }

    async fn undefine_network(&self, name: &str) -> Result<()> {
        self.write("undefine_network", &name, |world| world.undefine_network(name))
    }

    async fn leases(&self, network: &str) -> Result<Vec<Lease>> {
        self.read("leases", |world| world.leases(network))
    }

    async fn pools(&self) -> Result<Listing<Pool>> {
        self.read("pools", |world| Ok(world.pools()))
    }

    async fn define_pool(&self, spec: &PoolSpec) -> Result<()> {
        self.write("define_pool", &spec.name, |world| world.define_pool(spec))
    }

    async fn start_pool(&self, name: &str) -> Result<()> {
        self.write("start_pool", &name, |world| world.set_active(name, true))
    }

    async fn stop_pool(&self, name: &str) -> Result<()> {
        self.write("stop_pool", &name, |world| world.set_active(name, false))
    }

    async fn undefine_pool(&self, name: &str) -> Result<()> {
        self.write("undefine_pool", &name, |world| world.undefine_pool(name))
    }

    async fn volumes(&self, pool: &str) -> Result<Listing<Volume>> {
        self.read("volumes", |world| world.volumes(pool))
    }

    async fn create_volume(&self, spec: &VolumeSpec) -> Result<()> {
        self.write("create_volume", &spec.name, |world| world.create_volume(spec))
    }

    async fn grow_volume(&self, volume: &VolumeRef, capacity: u64) -> Result<()> {
        self.write("grow_volume", &volume.volume, |world| world.grow(volume, capacity))
    }

    async fn grow_disk(&self, uuid: Uuid, target: &str, capacity: u64) -> Result<()> {
        self.write("grow_disk", &format!("{uuid} {target}"), |world| world.grow_disk(uuid, target, capacity))
    }

    async fn delete_volume(&self, volume: &VolumeRef) -> Result<()> {
        self.write("delete_volume", &volume.volume, |world| world.delete_volume(volume))
    }

    fn events(&self) -> Events {
        let (listener, events) = mpsc::unbounded();
        self.lock().listeners.push(listener);
        Box::pin(events)
    }
}
