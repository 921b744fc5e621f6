//! What the hypervisor in memory has, and how it changes. Knows nothing of calls, faults or time.

use std::collections::{BTreeMap, BTreeSet};

use ::hypervisor::{
    Act, Boot, DhcpHost, Domain, DomainSpec, Effect, Error, Firmware, Host, Kind, LastPower, Lease, Listing, Mark,
    Media, Network, NetworkSpec, Pool, PoolSpec, PowerAction, PowerState, Result, Settings, Stats, Unreadable, Uuid,
    Volume, VolumeFormat, VolumeRef, VolumeSource, VolumeSpec, xml,
};

/// Size of every pool.
const POOL_BYTES: u64 = 1 << 40;

pub(super) struct World {
    pub(super) host: Host,
    domains: BTreeMap<Uuid, Guest>,
    /// What others defined and we cannot read, by position.
    garbage: Vec<Unreadable>,
    networks: BTreeMap<String, Net>,
    pools: BTreeMap<String, Store>,
    boots: u32,
}

struct Guest {
    config: String,
    running: Option<String>,
    state: PowerState,
    stubborn: bool,
}

struct Net {
    config: String,
    running: Option<String>,
}

struct Store {
    spec: PoolSpec,
    active: bool,
    mounted: bool,
    volumes: BTreeMap<String, Volume>,
    half_made: BTreeSet<String>,
}

fn not_found(kind: Kind, name: &impl ToString) -> Error {
    Error::NotFound { kind, name: name.to_string() }
}

impl World {
    pub(super) fn new(host: Host) -> Self {
        Self {
            host,
            domains: BTreeMap::new(),
            garbage: Vec::new(),
            networks: BTreeMap::new(),
            pools: BTreeMap::new(),
            boots: 1,
        }
    }

    // Domains.

    pub(super) fn domains(&self) -> Result<Listing<Domain>> {
        let mut listing = Listing { found: Vec::new(), unreadable: self.garbage.clone() };
        for uuid in self.domains.keys() {
            listing.found.push(self.domain(*uuid)?);
        }
        listing.found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Ok(listing)
    }

    pub(super) fn domain(&self, uuid: Uuid) -> Result<Domain> {
        let guest = self.domains.get(&uuid).ok_or_else(|| not_found(Kind::Domain, &uuid))?;
        let (spec, settings) = xml::read_domain(&guest.config)?;
        let running = guest.running.as_ref().map(|running| xml::read_domain(running)).transpose()?;
        Ok(Domain { spec, settings, state: guest.state, running: running.map(|(spec, _)| spec), persistent: true })
    }

    pub(super) fn define(&mut self, spec: &DomainSpec) -> Result<()> {
        if self.named(&spec.name)?.is_some_and(|uuid| uuid != spec.uuid) {
            return Err(Error::Exists { kind: Kind::Domain, name: spec.name.clone() });
        }
        let settings = match self.domain(spec.uuid) {
            Ok(domain) => domain.settings,
            Err(_) => Settings::default(),
        };
        self.write(spec, &settings)
    }

    fn named(&self, name: &str) -> Result<Option<Uuid>> {
        Ok(self.domains()?.found.into_iter().find(|domain| domain.spec.name == name).map(|domain| domain.spec.uuid))
    }

    fn write(&mut self, spec: &DomainSpec, settings: &Settings) -> Result<()> {
        let old = self.domains.get(&spec.uuid).map(|guest| guest.config.as_str());
        let config = xml::domain(spec, settings, old)?;
        if let Some(guest) = self.domains.get_mut(&spec.uuid) {
            guest.config = config;
        } else {
            let guest = Guest { config, running: None, state: PowerState::Off, stubborn: false };
            self.domains.insert(spec.uuid, guest);
        }
        Ok(())
    }

    pub(super) fn define_raw(&mut self, text: &str) {
        match xml::read_domain(text) {
            Ok((spec, _)) => {
                let guest = Guest { config: text.to_owned(), running: None, state: PowerState::Off, stubborn: false };
                self.domains.insert(spec.uuid, guest);
            }
            Err(unreadable) => self.garbage.push(unreadable),
        }
    }

    pub(super) fn mark(&mut self, uuid: Uuid, mark: &Mark) -> Result<()> {
        let Domain { spec, settings, .. } = self.domain(uuid)?;
        self.write(&DomainSpec { mark: Some(mark.clone()), ..spec }, &settings)
    }

    pub(super) fn undefine(&mut self, uuid: Uuid) -> Result<()> {
        let state = self.domain(uuid)?.state;
        if state.has_guest() {
            let (name, state, doing) = (uuid.to_string(), state.to_string(), "undefine it".to_owned());
            return Err(Error::WrongState { kind: Kind::Domain, name, state, doing });
        }
        self.domains.remove(&uuid);
        Ok(())
    }

    fn set(&mut self, uuid: Uuid, change: impl FnOnce(&mut Settings)) -> Result<()> {
        let Domain { spec, mut settings, .. } = self.domain(uuid)?;
        change(&mut settings);
        self.write(&spec, &settings)
    }

    pub(super) fn power(&mut self, uuid: Uuid, action: PowerAction) -> Result<Effect> {
        let state = self.domain(uuid)?.state;
        match action.on(state) {
            Act::Nothing => return Ok(Effect::Nothing),
            Act::Start => self.start(uuid)?,
            Act::Stop => {
                self.stop(uuid, PowerState::Off);
                self.note_power(uuid, false)?;
            }
            Act::Restart => {
                self.stop(uuid, PowerState::Off);
                self.start(uuid)?;
            }
            Act::AskShutdown => {
                let stubborn = self.domains.get(&uuid).is_some_and(|guest| guest.stubborn);
                self.stop(uuid, if stubborn { PowerState::ShuttingDown } else { PowerState::Off });
            }
            Act::AskRestart | Act::Interrupt => {}
        }
        Ok(Effect::Done)
    }

    fn start(&mut self, uuid: Uuid) -> Result<()> {
        let Domain { spec, settings, .. } = self.domain(uuid)?;
        let refused = |why: String| Error::Refused { doing: format!("start {}", spec.name), why };
        for disk in &spec.disks {
            if let ::hypervisor::DiskSource::Volume(VolumeRef { pool, volume }) = &disk.source {
                let there = self.pools.get(pool).filter(|store| store.active).is_some_and(|store| store.has(volume));
                if !there {
                    return Err(refused(format!("no storage vol with matching name '{volume}' in pool '{pool}'")));
                }
            }
        }
        for nic in &spec.nics {
            if let ::hypervisor::NicSource::Network(network) = &nic.source
                && self.networks.get(network).is_none_or(|net| net.running.is_none())
            {
                return Err(refused(format!("network '{network}' is not active")));
            }
        }
        let guest = self.domains.get_mut(&uuid).ok_or_else(|| not_found(Kind::Domain, &uuid))?;
        guest.state = PowerState::On;
        guest.running = Some(guest.config.clone());
        let boot = settings.boot.after_start();
        let last_power = Some(LastPower { on: true, boot_id: self.host.boot_id.clone() });
        self.set(uuid, |settings| {
            settings.boot = boot;
            settings.last_power = last_power;
        })
    }

    /// The guest stops, or is on its way to.
    pub(super) fn stop(&mut self, uuid: Uuid, state: PowerState) {
        let Some(guest) = self.domains.get_mut(&uuid).filter(|guest| guest.state.has_guest()) else { return };
        guest.state = state;
        if !state.has_guest() {
            guest.running = None;
        }
    }

    pub(super) fn stubborn(&mut self, uuid: Uuid) {
        if let Some(guest) = self.domains.get_mut(&uuid) {
            guest.stubborn = true;
        }
    }

    pub(super) fn note_power(&mut self, uuid: Uuid, on: bool) -> Result<()> {
        let last_power = Some(LastPower { on, boot_id: self.host.boot_id.clone() });
        self.set(uuid, |settings| settings.last_power = last_power)
    }

    pub(super) fn set_boot(&mut self, uuid: Uuid, boot: Boot) -> Result<()> {
        self.set(uuid, |settings| settings.boot = boot)
    }

    pub(super) fn set_firmware(&mut self, uuid: Uuid, firmware: Option<Firmware>) -> Result<()> {
        self.set(uuid, |settings| settings.firmware = firmware)
    }

    pub(super) fn set_media(&mut self, uuid: Uuid, media: Option<&Media>) -> Result<Effect> {
        let had = self.domain(uuid)?.settings.media;
        if had.as_ref() == media {
            return Ok(Effect::Nothing);
        }
        self.set(uuid, |settings| settings.media = media.cloned())?;
        Ok(Effect::Done)
    }

    pub(super) fn stats(&self) -> BTreeMap<Uuid, Stats> {
        let running = self.domains.iter().filter(|(_, guest)| guest.running.is_some());
        running.map(|(uuid, _)| (*uuid, Stats::default())).collect()
    }

    pub(super) fn reboot(&mut self) {
        self.boots += 1;
        self.host.boot_id = format!("boot-{}", self.boots);
        for guest in self.domains.values_mut() {
            guest.state = PowerState::Off;
            guest.running = None;
        }
        for net in self.networks.values_mut() {
            net.running = Some(net.config.clone());
        }
        for store in self.pools.values_mut() {
            store.active = true;
        }
    }

    // Networks.

    pub(super) fn networks(&self) -> Result<Listing<Network>> {
        let mut listing = Listing::default();
        for net in self.networks.values() {
            let spec = xml::read_network(&net.config)?;
            let running = net.running.as_ref().map(|running| xml::read_network(running)).transpose()?;
            listing.found.push(Network { spec, running, autostart: true });
        }
        Ok(listing)
    }

    fn net(&mut self, name: &str) -> Result<&mut Net> {
        self.networks.get_mut(name).ok_or_else(|| not_found(Kind::Network, &name))
    }

    pub(super) fn define_network(&mut self, spec: &NetworkSpec) -> Result<()> {
        let old = self.networks.get(&spec.name).map(|net| net.config.as_str());
        let config = xml::network(spec, old)?;
        match self.networks.get_mut(&spec.name) {
            Some(net) => net.config = config,
            None => drop(self.networks.insert(spec.name.clone(), Net { config, running: None })),
        }
        Ok(())
    }

    pub(super) fn set_dhcp_hosts(&mut self, network: &str, hosts: &[DhcpHost]) -> Result<()> {
        let net = self.net(network)?;
        let change = |text: &str| -> Result<String> {
            let mut spec = xml::read_network(text)?;
            let dhcp = spec.dhcp.as_mut().ok_or_else(|| Error::Refused {
                doing: format!("set the DHCP hosts of {network}"),
                why: "it has no DHCP".to_owned(),
            })?;
            dhcp.hosts = hosts.to_vec();
            Ok(xml::network(&spec, Some(text))?)
        };
        net.config = change(&net.config)?;
        net.running = net.running.as_deref().map(change).transpose()?;
        Ok(())
    }

    pub(super) fn start_network(&mut self, name: &str) -> Result<()> {
        let net = self.net(name)?;
        if net.running.is_none() {
            net.running = Some(net.config.clone());
        }
        Ok(())
    }

    pub(super) fn stop_network(&mut self, name: &str) -> Result<()> {
        self.net(name)?.running = None;
        Ok(())
    }

    pub(super) fn undefine_network(&mut self, name: &str) -> Result<()> {
        if self.net(name)?.running.is_some() {
            let (name, state, doing) = (name.to_owned(), "active".to_owned(), "undefine it".to_owned());
            return Err(Error::WrongState { kind: Kind::Network, name, state, doing });
        }
        self.networks.remove(name);
        Ok(())
    }

    pub(super) fn leases(&mut self, network: &str) -> Result<Vec<Lease>> {
        self.net(network).map(|_| Vec::new())
    }

    // Storage.

    pub(super) fn pools(&self) -> Listing<Pool> {
        let pool = |store: &Store| {
            let used: u64 = store.volumes.values().map(|volume| volume.allocation).sum();
            let (capacity, available) =
                if store.active { (POOL_BYTES, POOL_BYTES.saturating_sub(used)) } else { (0, 0) };
            Pool { spec: store.spec.clone(), active: store.active, autostart: true, capacity, available }
        };
        Listing { found: self.pools.values().map(pool).collect(), unreadable: Vec::new() }
    }

    fn store(&mut self, name: &str) -> Result<&mut Store> {
        self.pools.get_mut(name).ok_or_else(|| not_found(Kind::Pool, &name))
    }

    fn active(&mut self, name: &str, doing: &str) -> Result<&mut Store> {
        let store = self.store(name)?;
        if !store.active {
            let (name, state, doing) = (name.to_owned(), "not active".to_owned(), doing.to_owned());
            return Err(Error::WrongState { kind: Kind::Pool, name, state, doing });
        }
        Ok(store)
    }

    pub(super) fn define_pool(&mut self, spec: &PoolSpec) -> Result<()> {
        let text = xml::pool(spec)?;
        if let Some(store) = self.pools.get(&spec.name) {
            if store.spec == *spec {
                return Ok(());
            }
            return Err(Error::Exists { kind: Kind::Pool, name: spec.name.clone() });
        }
        let spec = xml::read_pool(&text)?;
        let store = Store { spec, active: false, mounted: true, volumes: BTreeMap::new(), half_made: BTreeSet::new() };
        self.pools.insert(store.spec.name.clone(), store);
        Ok(())
    }

    pub(super) fn set_active(&mut self, name: &str, active: bool) -> Result<()> {
        self.store(name)?.active = active;
        Ok(())
    }

    pub(super) fn undefine_pool(&mut self, name: &str) -> Result<()> {
        if self.store(name)?.active {
            let (name, state, doing) = (name.to_owned(), "active".to_owned(), "undefine it".to_owned());
            return Err(Error::WrongState { kind: Kind::Pool, name, state, doing });
        }
        self.pools.remove(name);
        Ok(())
    }

    pub(super) fn volumes(&mut self, pool: &str) -> Result<Listing<Volume>> {
        let store = self.active(pool, "list its volumes")?;
        let whole = store.volumes.values().filter(|volume| store.has(&volume.name));
        Ok(Listing { found: whole.cloned().collect(), unreadable: Vec::new() })
    }

    pub(super) fn create_volume(&mut self, spec: &VolumeSpec) -> Result<()> {
        let VolumeSpec { pool, name, format, capacity, sparse, source } = spec;
        let store = self.active(pool, "make a volume in it")?;
        if store.has(name) {
            return Err(Error::Exists { kind: Kind::Volume, name: format!("{pool}/{name}") });
        }
        let missing = |from: &str| not_found(Kind::Volume, &format!("{pool}/{from}"));
        let from = match source {
            VolumeSource::CopyOf(from) | VolumeSource::On(from) => {
                Some(store.volumes.get(from).filter(|_| store.has(from)).ok_or_else(|| missing(from))?)
            }
            VolumeSource::Blank | VolumeSource::File(_) => None,
        };
        let backing = from.filter(|_| matches!(source, VolumeSource::On(_)));
        let path = backing.map(|volume| volume.path.as_str());
        xml::volume(spec, path.map(|path| (path, VolumeFormat::Qcow2)))?;
        let capacity = (*capacity).max(from.map_or(0, |volume| volume.capacity));
        let volume = Volume {
            name: name.clone(),
            path: format!("{}/{name}", store.spec.path),
            format: Some(*format),
            capacity,
            allocation: if *sparse || backing.is_some() { 0 } else { capacity },
            backing: path.map(str::to_owned),
        };
        store.half_made.remove(name);
        store.volumes.insert(name.clone(), volume);
        Ok(())
    }

    pub(super) fn grow(&mut self, volume: &VolumeRef, capacity: u64) -> Result<()> {
        let missing = || not_found(Kind::Volume, &format!("{}/{}", volume.pool, volume.volume));
        let store = self.active(&volume.pool, "grow a volume of it")?;
        let found = store.volumes.get_mut(&volume.volume).filter(|_| store.mounted).ok_or_else(missing)?;
        found.capacity = found.capacity.max(capacity);
        Ok(())
    }

    pub(super) fn grow_disk(&mut self, uuid: Uuid, target: &str, capacity: u64) -> Result<()> {
        let Domain { spec, running, state, .. } = self.domain(uuid)?;
        let running = running.ok_or_else(|| Error::WrongState {
            kind: Kind::Domain,
            name: spec.name.clone(),
            state: state.to_string(),
            doing: format!("grow disk {target} of its guest"),
        })?;
        let disk = running.disks.iter().find(|disk| disk.target == target);
        match disk.map(|disk| &disk.source) {
            Some(::hypervisor::DiskSource::Volume(volume)) => self.grow(volume, capacity),
            _ => Err(not_found(Kind::Volume, &format!("{}/{target}", spec.name))),
        }
    }

    pub(super) fn delete_volume(&mut self, volume: &VolumeRef) -> Result<()> {
        let missing = || not_found(Kind::Volume, &format!("{}/{}", volume.pool, volume.volume));
        let store = self.active(&volume.pool, "delete a volume of it")?;
        if !store.has(&volume.volume) {
            return Err(missing());
        }
        store.volumes.remove(&volume.volume);
        Ok(())
    }

    pub(super) fn lose_volume(&mut self, pool: &str, volume: &str) {
        if let Some(store) = self.pools.get_mut(pool) {
            store.volumes.remove(volume);
        }
    }

    pub(super) fn unmount(&mut self, pool: &str) {
        if let Some(store) = self.pools.get_mut(pool) {
            store.mounted = false;
        }
    }

    pub(super) fn mount(&mut self, pool: &str) {
        if let Some(store) = self.pools.get_mut(pool) {
            store.mounted = true;
        }
    }

    pub(super) fn leave_half_made(&mut self, pool: &str, volume: &str) {
        if let Some(store) = self.pools.get_mut(pool) {
            store.half_made.insert(volume.to_owned());
        }
    }
}

impl Store {
    /// Whether a whole volume of that name is there to be seen.
    fn has(&self, volume: &str) -> bool {
        self.mounted && self.volumes.contains_key(volume) && !self.half_made.contains(volume)
    }
}
