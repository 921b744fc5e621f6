//! Takes in what watches and turns say, and marks who is concerned.

mod secrets;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use api::{
    SIPCluster,
    sipcluster::{HostRecord, HostState},
};
use api_foreign::BareMetalHost;
use base::Key;
use io_kube::{Change, Retry};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{ResourceExt, core::DynamicObject};
use plan_sip::{
    claims::Plan,
    host::{Claim, Host},
    services::{Kind, names_referred},
    site::Moved,
    want::Want,
};

use super::{Done, Engine, begin::Listing};
use crate::{
    Error,
    cache::{self, is_past},
    sipcluster::{Outcome, secret_of},
    sources::Event,
};

/// How long nothing happens to a cluster before it is looked at all the same: the net below the watches.
const RESYNC: Duration = Duration::from_hours(1);
/// Pause before a write to a host that is nobody's is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Up to ten minutes, by name, so that clusters are not all looked at in the same moment.
fn spread(key: &Key) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    Duration::from_secs(hasher.finish() % 600)
}

impl Engine {
    pub(super) fn absorb(&mut self, event: Event) {
        match event {
            Event::Cluster(change) => self.cluster_changed(*change),
            Event::Host(change) => self.host_changed(*change),
            Event::Node(change) => self.node_changed(*change),
            Event::Pod(change) => {
                let owner = match *change {
                    Change::Applied(pod) => self.cache.put_pod(&pod),
                    Change::Deleted { key, .. } | Change::Unreadable { key, .. } => self.cache.remove_pod(&key),
                    Change::Listed(_) => {
                        self.beginning.listed(&Listing::Pods);
                        None
                    }
                    Change::Forbidden(why) | Change::Interrupted(why) => {
                        self.refused(&Listing::Pods, &why);
                        None
                    }
                    Change::Absent => None,
                };
                self.due(owner.iter());
            }
            Event::Template(name, change) => self.template_changed(name, *change),
            Event::Object(kind, namespace, change) => self.object_changed(kind, namespace.as_deref(), *change),
            Event::Secret(namespace, change) => self.secret_changed(&namespace, *change),
        }
    }

    fn due<'a>(&mut self, keys: impl IntoIterator<Item = &'a Key>) {
        for key in keys {
            let left_behind = || self.cache.has_objects(key) || self.site.labelled(key).next().is_some();
            if self.sips.contains_key(key) || left_behind() {
                self.schedule.due(key);
            }
        }
    }

    /// Whoever is concerned by a change about hosts is due.
    fn moved(&mut self, moved: Moved) {
        let Moved { clusters, freed } = moved;
        self.figures_due |= !clusters.is_empty() || !freed.is_empty();
        self.due(&clusters);
        if freed.is_empty() || self.waiting.is_empty() {
            return;
        }
        let waiting: Vec<Key> = self.waiting.iter().cloned().collect();
        for key in waiting {
            let Some(want) = self.site.cluster(&key) else { continue };
            let wanted = |host: &Key| {
                self.site.host(host).is_some_and(|h| want.roles.values().any(|r| r.selector.matches(&h.labels)))
            };
            if freed.iter().any(wanted) {
                self.schedule.due(&key);
            }
        }
    }

    fn is_past(&self, key: &Key, resource_version: &str) -> bool {
        self.written.get(key).is_some_and(|known| is_past(resource_version, known))
    }

    fn cluster_changed(&mut self, change: Change<SIPCluster>) {
        match change {
            Change::Applied(sip) => {
                self.forget_departed(&sip);
                self.put_cluster(sip);
            }
            Change::Deleted { key, uid } => self.remove_cluster(&key, &uid),
            Change::Unreadable { key, error, .. } => {
                tracing::warn!(cluster = %key, error, "SIPCluster cannot be read and is left alone");
            }
            Change::Listed(_) => self.beginning.listed(&Listing::Clusters),
            Change::Forbidden(why) | Change::Interrupted(why) => self.refused(&Listing::Clusters, &why),
            Change::Absent => self.refused(&Listing::Clusters, "the CRD is not installed"),
        }
    }

    /// Where somebody else wrote the record, what we know of touched hosts is from before it.
    fn forget_departed(&mut self, sip: &SIPCluster) {
        let key = Key::new(sip.namespace().unwrap_or_default(), sip.name_any());
        let hosts = |s: &SIPCluster| s.status.as_ref().map(|s| s.hosts.clone()).unwrap_or_default();
        if self.sips.get(&key).is_some_and(|known| hosts(known) != hosts(sip)) {
            self.departed.remove(&key);
        }
    }

    fn refused(&mut self, listing: &Listing, why: &str) {
        if self.beginning.refused(listing, why) {
            tracing::warn!(?listing, why, "cannot watch");
        }
    }

    fn put_cluster(&mut self, sip: SIPCluster) {
        let want = Want::from(&sip);
        let known = self.sips.get(&want.key).and_then(|s| s.resource_version());
        let past = known.as_ref().is_some_and(|known| is_past(&want.resource_version, known));
        let same = known.as_ref().is_some_and(|known| *known == want.resource_version);
        if (past || same) && self.sips.get(&want.key).and_then(|s| s.uid()) == sip.uid() {
            return;
        }
        self.watch_namespace(&want.key.namespace);
        if self.sources.config_maps_in(&want.key.namespace) {
            self.beginning.expect_config_maps(&want.key.namespace);
        }
        let key = want.key.clone();
        for secret in names_referred(&sip.spec).secrets {
            self.referring.entry(Key::new(&key.namespace, secret)).or_default().insert(key.clone());
        }
        if !sip.spec.services.jump_host.is_empty() {
            // Seen where its namespace is watched for other reasons: the cluster's own, or one of hosts.
            self.referring.entry(secret_of(&want.tenant)).or_default().insert(key.clone());
        }
        self.sips.insert(key, Arc::new(sip));
        self.abandoned.remove(&want.key);
        let moved = self.site.put_cluster(want);
        self.moved(moved);
    }

    fn remove_cluster(&mut self, key: &Key, uid: &str) {
        if !uid.is_empty() && self.sips.get(key).is_some_and(|s| s.uid().as_deref() != Some(uid)) {
            return;
        }
        self.bury(uid);
        self.sips.remove(key);
        self.departed.remove(key);
        self.outlooks.remove(key);
        self.waiting.remove(key);
        self.referring.retain(|_, clusters| {
            clusters.remove(key);
            !clusters.is_empty()
        });
        self.schedule.forget(key);
        let moved = self.site.remove_cluster(key);
        self.moved(moved);
        // What it left behind without our finalizer is looked at by the orphan stage.
        self.due([key]);
    }

    fn host_changed(&mut self, change: Change<BareMetalHost>) {
        match change {
            Change::Applied(host) => self.put_host(host),
            Change::Deleted { key, uid } => {
                self.bury(&uid);
                if self.site.host(&key).is_none_or(|h| uid.is_empty() || h.uid == uid) {
                    self.written.remove(&key);
                    let moved = self.site.remove_host(&key);
                    self.moved(moved);
                }
            }
            Change::Unreadable { key, error, metadata, .. } => {
                tracing::warn!(host = %key, error, "BareMetalHost cannot be read and is left alone");
                let host = Host::unreadable(*metadata, error, self.site.host(&key).map(|known| &**known));
                let moved = self.site.put_host(host);
                self.moved(moved);
            }
            Change::Listed(_) => self.beginning.listed(&Listing::Hosts),
            Change::Forbidden(why) | Change::Interrupted(why) => self.refused(&Listing::Hosts, &why),
            Change::Absent => self.refused(&Listing::Hosts, "the CRD is not installed"),
        }
    }

    /// An object is gone. An answer to a write that is under way, which comes later, must not bring it back.
    fn bury(&mut self, uid: &str) {
        if !self.jobs.is_empty() && !uid.is_empty() {
            self.buried.insert(uid.to_owned());
        }
    }

    pub(super) fn put_host(&mut self, host: BareMetalHost) {
        let host = Host::from(host);
        let key = host.key.clone();
        if self.is_past(&key, &host.resource_version) && self.site.host(&key).is_some_and(|h| h.uid == host.uid) {
            return;
        }
        if self.cx.settings.host_namespaces.is_none() {
            self.watch_namespace(&key.namespace);
        }
        let released = host.released.is_some();
        let known = self.site.host(&key);
        let same = known
            .is_some_and(|known| Host { resource_version: known.resource_version.clone(), ..host.clone() } == **known);
        let moved = self.site.put_host(host);
        // What only moved the resourceVersion concerns nobody; it is needed for the next write.
        if !same {
            self.moved(moved);
        }
        if released {
            self.schedule.host_due(&key);
        }
    }

    fn node_changed(&mut self, change: Change<Node>) {
        let moved = match change {
            Change::Applied(node) => self.cache.put_node(&node.name_any(), Some(&node)),
            Change::Deleted { key, .. } | Change::Unreadable { key, .. } => self.cache.put_node(&key.name, None),
            Change::Listed(_) => {
                self.beginning.listed(&Listing::Nodes);
                false
            }
            Change::Forbidden(why) | Change::Interrupted(why) => {
                self.refused(&Listing::Nodes, &why);
                false
            }
            Change::Absent => false,
        };
        if moved {
            let all: Vec<Key> = self.sips.keys().cloned().collect();
            self.due(&all);
        }
    }

    fn template_changed(&mut self, name: &str, change: Change<ConfigMap>) {
        let (key, moved) = match change {
            Change::Applied(map) => {
                let key = Key::new(map.namespace().unwrap_or_default(), map.name_any());
                let moved = self.cache.put_template(&key, Some(&map));
                (key, moved)
            }
            Change::Deleted { key, .. } | Change::Unreadable { key, .. } => {
                let moved = self.cache.put_template(&key, None);
                (key, moved)
            }
            Change::Listed(_) => {
                self.beginning.listed(&Listing::Templates(name.to_owned()));
                return;
            }
            Change::Forbidden(why) | Change::Interrupted(why) => {
                self.refused(&Listing::Templates(name.to_owned()), &why);
                return;
            }
            Change::Absent => return,
        };
        if moved {
            let everybody = key.namespace == self.cx.installation.namespace;
            let concerned: Vec<Key> =
                self.sips.keys().filter(|k| everybody || k.namespace == key.namespace).cloned().collect();
            self.due(&concerned);
        }
    }

    fn object_changed(&mut self, kind: Kind, namespace: Option<&str>, change: Change<DynamicObject>) {
        match change {
            Change::Applied(object) => {
                let Some(owner) = cache::owner(&object) else { return };
                let name = object.name_any();
                if self.cache.put(&owner, kind, &name, cache::owned(kind, &object)) {
                    self.due([&owner]);
                }
            }
            Change::Deleted { key, uid } | Change::Unreadable { key, uid, .. } => self.object_gone(kind, &key, &uid),
            Change::Listed(listed) => {
                for (owner, name, uid) in self.cache.missing(kind, namespace, &listed) {
                    if self.cache.remove(&owner, kind, &name, &uid) {
                        self.due([&owner]);
                    }
                }
                self.beginning.listed(&listing_of(kind, namespace));
                // They waited for it.
                let here = |key: &&Key| namespace.is_some_and(|namespace| key.namespace == namespace);
                let waited: Vec<Key> = self.sips.keys().filter(here).cloned().collect();
                self.due(&waited);
            }
            // It goes on by itself; what is made in one namespace is waited for until it has been listed.
            Change::Interrupted(_) if namespace.is_some() => {}
            Change::Forbidden(why) | Change::Interrupted(why) => self.refused(&listing_of(kind, namespace), &why),
            Change::Absent => {}
        }
    }

    fn object_gone(&mut self, kind: Kind, key: &Key, uid: &str) {
        self.bury(uid);
        let owners: Vec<Key> = self.cache.owners().filter(|o| o.namespace == key.namespace).cloned().collect();
        for owner in owners {
            if self.cache.remove(&owner, kind, &key.name, uid) {
                self.due([&owner]);
            }
        }
    }

    pub(super) fn finished(&mut self, done: Done) {
        match done {
            Done::Recorded(key, result, plan) => {
                self.schedule.recording = false;
                match *result {
                    Ok(sip) => {
                        if sip.uid().is_none_or(|uid| !self.buried.contains(&uid)) {
                            self.put_cluster(sip);
                        }
                        // A watch may have shown a later version already: what it says of hosts is to be decided about.
                        if !self.records(&key, &plan) {
                            self.schedule.end(&key);
                            self.due([&key]);
                            return;
                        }
                        // The record says what was decided, so nothing of it is left to write before hosts are.
                        let written = Plan { record_first: false, record_moves: false, confirm: Vec::new(), ..*plan };
                        self.begin_turn(&key, written);
                    }
                    Err(error) => {
                        self.schedule.end(&key);
                        self.turn_failed(&key, &error);
                    }
                }
            }
            Done::Turned(outcome) => self.turned(*outcome),
            Done::Proved(result) => self.proof_ended(result),
            Done::Looked(key, found) => self.looked(&key, found),
            Done::Host(key, result) => {
                self.schedule.host_end(&key);
                match *result {
                    Ok(Some(host)) => {
                        self.wrote_host(host);
                        self.schedule.host_due(&key);
                    }
                    Ok(None) => {}
                    Err(error) if error.is_stale() => {}
                    Err(error) => {
                        tracing::warn!(host = %key, %error, "not written");
                        self.schedule.host_again(&key, AFTER_FAILURE);
                        if let Some(Claim::By { cluster, .. }) = self.site.host(&key).map(|host| &host.claim) {
                            self.schedule.again(cluster, AFTER_FAILURE);
                        }
                    }
                }
            }
        }
    }

    /// Whether the SIPCluster as it is known holds the hosts that this plan wrote into it.
    fn records(&self, key: &Key, plan: &Plan) -> bool {
        let known = self.sips.get(key).and_then(|sip| sip.status.as_ref());
        let states = |record: &[HostRecord]| -> Vec<(String, String, HostState)> {
            record.iter().map(|entry| (entry.uid.clone(), entry.role.clone(), entry.state)).collect()
        };
        known.map_or(plan.record.is_empty(), |status| states(&status.hosts) == states(&plan.record))
    }

    fn wrote_host(&mut self, host: BareMetalHost) {
        if host.uid().is_some_and(|uid| self.buried.contains(&uid)) {
            return;
        }
        let key = Key::new(host.namespace().unwrap_or_default(), host.name_any());
        if let Some(version) = host.resource_version() {
            self.written.insert(key, version);
        }
        self.put_host(host);
    }

    fn turned(&mut self, outcome: Outcome) {
        let Outcome { key, sip, hosts, objects, departed, verified, compared, error, again_in, wrote } = outcome;
        self.schedule.end(&key);
        self.look_from_now_on(&key);
        for host in hosts {
            self.wrote_host(host);
        }
        for (kind, name, owned) in objects {
            match owned {
                Some(owned) if self.buried.contains(&owned.uid) => {}
                Some(owned) => {
                    self.cache.put(&key, kind, &name, owned);
                }
                None => {
                    self.cache.remove(&key, kind, &name, "");
                }
            }
        }
        self.cache.verified(&key, &verified, &compared);
        let known = self.departed.entry(key.clone()).or_default();
        known.extend(departed);
        // Only while a host is still in the record does it matter that it was touched.
        let site = &self.site;
        known.retain(|host| site.holders(host).any(|holder| *holder == key));
        if known.is_empty() {
            self.departed.remove(&key);
        }
        if let Some(sip) = sip.filter(|sip| sip.uid().is_none_or(|uid| !self.buried.contains(&uid))) {
            self.figures_due = true;
            self.put_cluster(sip);
        }
        if let Some(error) = error {
            // The pause grows, whatever else asks for another turn.
            self.turn_failed(&key, &error);
            return;
        }
        self.schedule.went_well(&key);
        if wrote {
            self.due([&key]);
        }
        if let Some(after) = again_in {
            self.schedule.again(&key, after.max(Duration::from_secs(1)));
        } else if self.sips.contains_key(&key) {
            self.schedule.again(&key, RESYNC + spread(&key));
        }
    }

    fn turn_failed(&mut self, key: &Key, error: &Error) {
        let least = match error.retry() {
            Retry::Now => {
                // The object is read live where it was met; what changed it is also on its way through a watch.
                tracing::debug!(cluster = %key, %error, "stale");
                Duration::ZERO
            }
            Retry::After(least) => {
                tracing::warn!(cluster = %key, %error, "turn failed");
                least
            }
            Retry::OnChange => {
                tracing::warn!(cluster = %key, %error, "turn failed");
                Duration::from_mins(1)
            }
            Retry::Never => return,
        };
        self.schedule.failed(key, least);
    }

    /// Clusters that wait for hosts are asked again when one becomes free.
    pub(super) fn note_waiting(&mut self, key: &Key, waits: bool) {
        if waits {
            self.waiting.insert(key.clone());
        } else {
            self.waiting.remove(key);
        }
    }
}

/// What a listing of our objects, everywhere or in one namespace, tells the beginning.
fn listing_of(kind: Kind, namespace: Option<&str>) -> Listing {
    match namespace {
        Some(namespace) => Listing::ConfigMaps(namespace.to_owned()),
        None => Listing::Objects(kind.to_string()),
    }
}
