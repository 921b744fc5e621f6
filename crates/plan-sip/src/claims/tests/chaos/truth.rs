//! The API server of the model: objects, their history, who writes blindly, and the laws that hold after every write.

use std::collections::{BTreeMap, BTreeSet};

use api::sipcluster::HostState;
use base::Key;
use jiff::Timestamp;

use super::super::build::{PLANE, WORKER};
use crate::{
    claims::{Confirm, Depart, Label},
    host::{Claim, Host, Tenancy},
    want::Want,
};

/// Seconds of quarantine in the model, and longest time between a consumer's look at a host and its write.
pub(super) const QUARANTINE: i64 = 10;

/// A law that does not hold, and where.
pub(super) type Broken = String;

#[derive(Debug, Default)]
pub(super) struct Truth {
    pub hosts: BTreeMap<Key, Host>,
    pub clusters: BTreeMap<Key, Want>,
    pub host_log: Vec<(Key, Option<Host>)>,
    pub cluster_log: Vec<(Key, Option<Want>)>,
    pub now: i64,
    /// What every write raises.
    pub version: u64,
    /// Consumers that saw labels on a host and will write: uid of the host, cluster, when they looked.
    looks: BTreeMap<Key, (String, Key, i64)>,
    /// Hosts whose labels came by people or by a late consumer: no operation of ours put them where they are.
    placed_by_others: BTreeSet<Key>,
    /// Hosts that people took labels from, and that have been neither labelled nor in quarantine since.
    stripped: BTreeSet<Key>,
}

/// The consumer that works for a cluster.
fn machine(cluster: &Key) -> String {
    format!("Metal3Machine {cluster}")
}

impl Truth {
    pub(super) fn put_host(&mut self, mut host: Host) {
        self.version += 1;
        host.resource_version = self.version.to_string();
        self.host_log.push((host.key.clone(), Some(host.clone())));
        self.hosts.insert(host.key.clone(), host);
    }

    pub(super) fn remove_host(&mut self, key: &Key) {
        self.version += 1;
        self.hosts.remove(key);
        self.placed_by_others.remove(key);
        self.host_log.push((key.clone(), None));
    }

    pub(super) fn put_cluster(&mut self, mut want: Want) {
        self.version += 1;
        want.resource_version = self.version.to_string();
        self.cluster_log.push((want.key.clone(), Some(want.clone())));
        self.clusters.insert(want.key.clone(), want);
    }

    /// The host, if a write with these preconditions is let through.
    fn guarded(&self, key: &Key, uid: &str, version: &str) -> Option<Host> {
        self.hosts.get(key).filter(|h| h.uid == uid && h.resource_version == version).cloned()
    }

    pub(super) fn is_confirmed(&self, Confirm { host, uid, resource_version }: &Confirm) -> bool {
        let found = self.hosts.get(host).filter(|h| h.uid == *uid).map(|h| h.resource_version.clone());
        found == *resource_version
    }

    /// Writes a cluster on these preconditions; its new resourceVersion. What changes nothing is no write.
    pub(super) fn write_cluster(
        &mut self,
        key: &Key,
        uid: &str,
        version: &str,
        new: impl FnOnce(&mut Want),
    ) -> Option<String> {
        let old = self.clusters.get(key).filter(|c| c.uid == uid && c.resource_version == version)?.clone();
        let mut want = old.clone();
        new(&mut want);
        if want != old {
            self.put_cluster(want);
        }
        Some(self.clusters[key].resource_version.clone())
    }

    pub(super) fn remove_cluster(&mut self, key: &Key, uid: &str, version: &str) -> bool {
        let found = self.clusters.get(key).is_some_and(|c| c.uid == uid && c.resource_version == version);
        if found {
            self.version += 1;
            self.clusters.remove(key);
            self.cluster_log.push((key.clone(), None));
        }
        found
    }

    /// Hosts labelled for a role in a rack, put there by us.
    fn crowd(&self, cluster: &Key, role: &str, rack: Option<&String>) -> usize {
        let claim = Claim::By { cluster: cluster.clone(), role: role.to_owned() };
        let here =
            |h: &&Host| h.claim == claim && h.labels.get("rack") == rack && !self.placed_by_others.contains(&h.key);
        self.hosts.values().filter(here).count()
    }

    pub(super) fn label(&mut self, cluster: &Key, label: &Label) -> Result<bool, Broken> {
        let Label { host: key, uid, resource_version, role, addresses, restored: _ } = label;
        let Some(mut host) = self.guarded(key, uid, resource_version) else { return Ok(false) };
        let Some(want) = self.clusters.get(cluster) else {
            return Err(format!("{key} labelled for {cluster}, which is gone"));
        };
        let limit =
            want.roles.get(role).and_then(|r| r.levels.first()).map_or(usize::MAX, |l| l.max_per_domain as usize);
        if let Claim::By { cluster: other, .. } = &host.claim
            && other != cluster
            && self.clusters.contains_key(other)
        {
            return Err(format!("I1: {key} of {other} labelled for {cluster}"));
        }
        if host.consumer.as_ref().is_some_and(|c| *c != machine(cluster)) {
            return Err(format!("I1: {key}, used by {:?}, labelled for {cluster}", host.consumer));
        }
        let kept = host.is_claimed_by(cluster);
        self.stripped.remove(key);
        host.claim = Claim::By { cluster: cluster.clone(), role: role.clone() };
        host.kept_addresses = Some(addresses.clone());
        self.put_host(host);
        let rack = self.hosts[key].labels.get("rack").cloned();
        let crowd = self.crowd(cluster, role, rack.as_ref());
        if crowd > limit && !kept && !self.placed_by_others.contains(key) {
            return Err(format!("I2: {key} is number {crowd} of {role} of {cluster} in {rack:?}"));
        }
        Ok(true)
    }

    pub(super) fn depart(&mut self, cluster: &Key, depart: &Depart) -> Result<bool, Broken> {
        let Depart { host: key, uid, resource_version, role: _, labelled, quarantine: _, forced } = depart;
        let Some(host) = self.guarded(key, uid, resource_version) else { return Ok(false) };
        if *labelled {
            if matches!(&host.claim, Claim::By { cluster: other, .. } if other != cluster) {
                return Err(format!("I1: {cluster} took labels of another off {key}"));
            }
            if host.in_use() && !host.is_forced_from(cluster) {
                return Err(format!("I4: {key} in use by {} unlabelled by {cluster}", host.user()));
            }
        }
        let at = (!host.in_use()).then_some(self.now);
        let released = depart.released(cluster, at.map(|s| Timestamp::from_second(s).expect("in range")));
        let mut host = Host { released: released.or(host.released.clone()), ..host };
        if host.released.is_some() {
            self.stripped.remove(key);
        }
        if *labelled {
            host.claim = Claim::Free;
            self.placed_by_others.remove(key);
        }
        if *forced {
            host.force_release = None;
        }
        self.put_host(host);
        Ok(true)
    }

    /// Writes a host that is nobody's, decided on `seen`.
    pub(super) fn quarantine(&mut self, seen: &Host, turn: &crate::quarantine::Turn) -> Result<bool, Broken> {
        use crate::quarantine::Turn;
        let Some(mut host) = self.guarded(&seen.key, &seen.uid, &seen.resource_version) else { return Ok(false) };
        host.released = None;
        match turn {
            Turn::Rest | Turn::Until(_) | Turn::Stranger { .. } => return Ok(false),
            Turn::Begin(released) => host.released = Some(released.clone()),
            Turn::End | Turn::Clear => {}
            Turn::Abandon(released) => {
                if host.in_use() {
                    return Err(format!("I4: {} given up while used by {}", host.key, host.user()));
                }
                host.claim = Claim::Free;
                host.released = Some(released.clone());
            }
            Turn::Return { cluster, role } => {
                if host.consumer.as_ref().is_some_and(|c| *c != machine(cluster)) {
                    return Err(format!("I1: {} given back to {cluster} while used by {}", host.key, host.user()));
                }
                host.claim = Claim::By { cluster: cluster.clone(), role: role.clone() };
                self.placed_by_others.insert(host.key.clone());
            }
        }
        self.put_host(host);
        Ok(true)
    }

    /// A new cluster holds all its hosts or none.
    pub(super) fn whole_or_nothing(&self, key: &Key, established: bool) -> Result<(), Broken> {
        let want = &self.clusters[key];
        if established || want.established {
            return Ok(());
        }
        let held =
            |role: &str| want.record.iter().filter(|e| e.role == role && e.state != HostState::Releasing).count();
        let all = want.roles.iter().all(|(role, asked)| held(role) == asked.asked() as usize);
        let none = want.record.iter().all(|e| e.state == HostState::Releasing);
        if all || none { Ok(()) } else { Err(format!("I3: {key} holds a part of its hosts: {:?}", want.record)) }
    }

    /// The consumer of whatever cluster a host is labelled for looks at it.
    pub(super) fn look(&mut self, key: &Key) {
        let Some(host) = self.hosts.get(key) else { return };
        if let Claim::By { cluster, .. } = &host.claim
            && !host.in_use()
            && self.clusters.contains_key(cluster)
        {
            self.looks.insert(key.clone(), (host.uid.clone(), cluster.clone(), self.now));
        }
    }

    /// A consumer that looked writes, whatever has become of the host.
    pub(super) fn consume(&mut self, key: &Key) -> Result<(), Broken> {
        let Some((uid, cluster, at)) = self.looks.remove(key) else { return Ok(()) };
        let Some(host) = self.hosts.get(key).filter(|h| h.uid == uid && h.consumer.is_none()) else { return Ok(()) };
        if at + QUARANTINE <= self.now {
            return Ok(());
        }
        let mut host = host.clone();
        if let Claim::By { cluster: now, .. } = &host.claim
            && *now != cluster
            && self.clusters.contains_key(now)
        {
            return Err(format!("I1: {key} labelled for {now} while the consumer of {cluster} still writes"));
        }
        host.consumer = Some(machine(&cluster));
        host.tenancy = Some(Tenancy { namespace: cluster.namespace.clone(), cluster: Some(cluster.name.clone()) });
        self.put_host(host);
        Ok(())
    }

    /// Somebody who knows nothing of us takes a host that nobody has. Not one whose labels people have taken off: whoever
    /// uses that counts as its cluster's consumer, for nothing tells the two apart.
    pub(super) fn stranger(&mut self, key: &Key) {
        if self.stripped.contains(key) {
            return;
        }
        let Some(host) = self.hosts.get(key).filter(|h| h.claim == Claim::Free && !h.in_use() && h.released.is_none())
        else {
            return;
        };
        let tenancy = Some(Tenancy { namespace: "x".into(), cluster: None });
        let host = Host { consumer: Some("Stranger x/y".into()), tenancy, ..host.clone() };
        self.looks.remove(key);
        self.put_host(host);
    }

    /// People, or Metal3, change a host.
    pub(super) fn edit(&mut self, key: &Key, change: impl FnOnce(Host) -> Host) {
        let Some(host) = self.hosts.get(key).cloned() else { return };
        let new = change(host.clone());
        if new != host {
            if matches!(&host.claim, Claim::By { .. }) && new.claim != host.claim {
                self.stripped.insert(key.clone());
            }
            if matches!(&new.claim, Claim::By { .. }) && new.claim != host.claim {
                self.placed_by_others.insert(key.clone());
                self.looks.remove(key);
            }
            self.put_host(new);
        }
    }

    /// What a settled world looks like, worked out without placement.
    pub(super) fn is_settled(&self) -> Result<(), Broken> {
        for host in self.hosts.values() {
            if let Claim::By { cluster, role } = &host.claim
                && let Some(want) = self.clusters.get(cluster)
            {
                let entry = want.record.iter().find(|e| e.uid == host.uid);
                if entry.is_none_or(|e| e.role != *role || e.state != HostState::Claimed) {
                    return Err(format!("{} is labelled for {cluster}, whose record says {entry:?}", host.key));
                }
            }
            if host.released.is_some() && !host.in_use() {
                return Err(format!("{} never leaves its quarantine", host.key));
            }
        }
        self.clusters.values().try_for_each(|want| self.is_served(want))
    }

    fn is_served(&self, want: &Want) -> Result<(), Broken> {
        for entry in &want.record {
            let host = self.hosts.get(&Key::new(&entry.namespace, &entry.name)).filter(|h| h.uid == entry.uid);
            if !host.is_some_and(|h| h.is_claimed_by(&want.key)) {
                return Err(format!("{} records {entry:?}, which is {host:?}", want.key));
            }
        }
        let used = |name: &str| self.hosts.values().any(|h| h.key.name == name && h.in_use());
        if want.deleting {
            return match want.record.iter().find(|e| !used(&e.name)) {
                Some(idle) => Err(format!("{} is deleted and keeps {idle:?}", want.key)),
                None if want.record.is_empty() => Err(format!("{} is deleted and not finished", want.key)),
                None => Ok(()),
            };
        }
        let mut possible = true;
        let mut held = 0;
        for role in [PLANE, WORKER] {
            let asked = want.roles.get(role).map_or(0, |r| r.asked() as usize);
            let of_role: Vec<_> = want.record.iter().filter(|e| e.role == role).collect();
            held += of_role.len();
            if of_role.len() > asked && of_role.iter().any(|e| !used(&e.name)) {
                return Err(format!("{} keeps idle surplus of {role}", want.key));
            }
            let missing = asked.saturating_sub(of_role.len());
            let room = if asked == 0 { 0 } else { self.room(want, role) };
            possible &= room >= missing;
            if want.established && missing > 0 && room > 0 {
                return Err(format!("{} lacks {missing} {role}, {room} could be had", want.key));
            }
        }
        let asked: u32 = want.roles.values().map(crate::want::Role::asked).sum();
        if !want.established && asked > 0 && (held > 0 || possible) {
            return Err(format!("{} holds {held} of {asked} for ever, possible: {possible}", want.key));
        }
        Ok(())
    }

    /// How many more hosts of a role could be had: free ones that match, up to the room of each rack.
    fn room(&self, want: &Want, role: &str) -> usize {
        let limit = want.roles[role].levels.first().map_or(usize::MAX, |l| l.max_per_domain as usize);
        let recorded = |host: &Host| self.clusters.values().any(|c| c.record.iter().any(|e| e.uid == host.uid));
        let mut racks: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
        for host in self.hosts.values() {
            let (free, owned) = racks.entry(&host.labels["rack"]).or_default();
            if want.record.iter().any(|e| e.uid == host.uid && e.role == role) {
                *owned += 1;
            } else if host.claim == Claim::Free
                && !host.in_use()
                && host.unfit.is_none()
                && host.released.is_none()
                && !recorded(host)
                && host.labels["flavor"] == role
            {
                *free += 1;
            }
        }
        racks.values().map(|(free, owned)| (*free).min(limit.saturating_sub(*owned))).sum()
    }
}
