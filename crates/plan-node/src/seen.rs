//! What is on the machine now, read in one go.

use std::collections::{BTreeMap, BTreeSet};

use hypervisor::{Domain, Host, Network, Pool, Unreadable, Uuid, Volume};
use ipnet::IpNet;

use crate::firewall::Rules;

/// What is on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The machine and its processors.
    pub host: Host,
    /// Its identity, as in `/etc/machine-id`.
    pub machine: String,
    /// What the marker file of the default pool says; None: there is none.
    pub marker: Option<String>,
    /// The highest serial that was ever seen on this machine.
    pub serial: i64,
    /// Domains by UUID, foreign ones included.
    pub domains: BTreeMap<Uuid, Domain>,
    /// Networks by name, foreign ones included.
    pub networks: BTreeMap<String, Network>,
    /// Pools by name.
    pub pools: BTreeMap<String, Pool>,
    /// Volumes of the active pools, by pool and name.
    pub volumes: BTreeMap<String, BTreeMap<String, Volume>>,
    /// Network interfaces by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Our firewall rules, as they were last loaded on this machine since it started.
    pub rules: Rules,
    /// What the VinoNode's status says was made: names of disks by virtual machine.
    pub recorded: BTreeMap<Uuid, BTreeSet<String>>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Directory of console logs on the machine.
    pub log_dir: String,
}

/// A network interface of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The bridge that it is a port of.
    pub master: Option<String>,
    /// Whether it is a bridge.
    pub bridge: bool,
    /// Its addresses with their subnets, link-local ones left out.
    pub addresses: Vec<IpNet>,
    /// Whether a default route leads over it.
    pub default_route: bool,
}

impl Seen {
    /// The volume of that name in an active pool.
    pub(crate) fn volume(&self, volume: &hypervisor::VolumeRef) -> Option<&Volume> {
        self.volumes.get(&volume.pool)?.get(&volume.volume)
    }

    /// Whether what is in a pool is known.
    pub(crate) fn knows(&self, pool: &str) -> bool {
        self.pools.get(pool).is_some_and(|pool| pool.active) && self.volumes.contains_key(pool)
    }

    /// Domains of this owner.
    pub(crate) fn ours<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = (&'a Uuid, &'a Domain)> {
        self.domains.iter().filter(move |(_, domain)| domain.spec.mark.as_ref().is_some_and(|mark| mark.owner == owner))
    }
}
