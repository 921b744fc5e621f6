//! All that decisions about hosts read, indexed and kept up to date object by object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::sipcluster::HostRecord;
use base::Key;

use crate::{
    host::{Claim, Host, Tenancy},
    network::Addresses,
    placement::{self, Fleet, Namespaces, Standing, Unfit},
    quarantine,
    want::Want,
};

/// What the installation settles about claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Namespaces whose hosts every SIPCluster may take; `None`: those of all namespaces. Its own it always may.
    pub host_namespaces: Option<BTreeSet<String>>,
    /// Seconds a released host is nobody's.
    pub quarantine: i64,
    /// Whether Secrets are known. Without them, network data and credentials count as usable.
    pub secrets_known: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { host_namespaces: Some(BTreeSet::new()), quarantine: 60, secrets_known: true }
    }
}

/// What SIP keeps of a Secret in a namespace of hosts: never its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretFacts {
    /// Its key `networkData`, parsed.
    pub network_data: Option<Result<Addresses, String>>,
    /// Whether `username` and `password` are there and not empty.
    pub credentials: bool,
}

impl SecretFacts {
    /// What SIP keeps of a Secret with this data.
    pub fn read<'a>(mut get: impl FnMut(&str) -> Option<&'a [u8]>) -> Self {
        let filled = |v: Option<&[u8]>| v.is_some_and(|v| !v.is_empty());
        let credentials = filled(get("username")) && filled(get("password"));
        Self { network_data: get("networkData").map(crate::network::addresses), credentials }
    }
}

/// Networks for which the hosts without an address in them are kept. Beyond that all are worked out anew.
const NETWORKS_KEPT: usize = 64;

/// All that decisions about hosts read.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// What the installation settles.
    pub settings: Settings,
    hosts: BTreeMap<Key, Arc<Host>>,
    clusters: BTreeMap<Key, Arc<Want>>,
    secrets: BTreeMap<Key, SecretFacts>,
    /// Namespaces whose Secrets may not be read: what would change that, for people.
    ungranted: BTreeMap<String, String>,
    /// Hosts that name a Secret.
    users: BTreeMap<Key, BTreeSet<Key>>,
    /// Clusters whose record holds a host.
    holders: BTreeMap<Key, BTreeSet<Key>>,
    /// Hosts whose labels name a cluster.
    labelled: BTreeMap<Key, BTreeSet<Key>>,
    /// Whose users were seen on hosts labelled for a cluster. Kept while the cluster is: a host that was released does not
    /// tell any more who used it.
    tenancies: BTreeMap<Key, BTreeSet<Tenancy>>,
    /// Candidates without an address in a network that some cluster asks for.
    lacking: BTreeMap<String, BTreeSet<Key>>,
    fleet: Fleet,
}

/// What a change may have moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Clusters whose own hosts are concerned.
    pub clusters: BTreeSet<Key>,
    /// Hosts that became, or as candidates changed, something a blocked cluster may wait for.
    pub freed: BTreeSet<Key>,
}

impl Moved {
    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.clusters.extend(other.clusters);
        self.freed.extend(other.freed);
        self
    }
}

impl Site {
    /// A site without objects.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The host of this key.
    pub fn host(&self, key: &Key) -> Option<&Arc<Host>> {
        self.hosts.get(key)
    }

    /// All hosts, by key.
    pub fn hosts(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.hosts.values()
    }

    /// The cluster of this key.
    pub fn cluster(&self, key: &Key) -> Option<&Arc<Want>> {
        self.clusters.get(key)
    }

    /// All clusters, by key.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<Want>> {
        self.clusters.values()
    }

    /// Whether, and for whom, a host may be chosen.
    pub fn standing(&self, host: &Key) -> Option<&Standing> {
        self.fleet.standing(host)
    }

    /// Clusters whose record holds this host.
    pub fn holders(&self, host: &Key) -> impl Iterator<Item = &Key> {
        self.holders.get(host).into_iter().flatten()
    }

    /// Hosts that name this Secret.
    pub fn users_of(&self, secret: &Key) -> impl Iterator<Item = &Key> {
        self.users.get(secret).into_iter().flatten()
    }

    /// Hosts whose labels name this cluster.
    pub fn labelled(&self, cluster: &Key) -> impl Iterator<Item = &Key> {
        self.labelled.get(cluster).into_iter().flatten()
    }

    /// Whether who uses `host` belongs to the tenant of `cluster`: one like it was seen on a host of the cluster, or it
    /// comes from the Cluster that the cluster's spec names. Metal3's provider takes hosts of its own namespace only, so
    /// its consumers may lie there too.
    pub fn is_user_of(&self, host: &Host, cluster: &Key) -> bool {
        let (Some(user), Some(want)) = (&host.tenancy, self.cluster(cluster)) else { return false };
        let known = self.tenancies.get(cluster);
        let at_home = user.namespace == want.tenant.namespace || user.namespace == host.key.namespace;
        known.is_some_and(|known| known.contains(user))
            || at_home
                && match &user.cluster {
                    Some(name) => *name == want.tenant.name,
                    None => known.is_none(),
                }
    }

    /// The namespaces that a cluster may take hosts from.
    pub fn namespaces(&self, cluster: &Key) -> Namespaces {
        match &self.settings.host_namespaces {
            None => Namespaces::All,
            Some(listed) => Namespaces::Of(listed.iter().cloned().chain([cluster.namespace.clone()]).collect()),
        }
    }

    /// A host is there, or has changed.
    pub fn put_host(&mut self, host: Host) -> Moved {
        let key = host.key.clone();
        self.forget_links(&key);
        for secret in [&host.network_data, &host.credentials].into_iter().flatten() {
            self.users.entry(secret.clone()).or_default().insert(key.clone());
        }
        let mut moved = Moved::default();
        if let Some(old) = self.hosts.get(&key)
            && let Claim::By { cluster, .. } = &old.claim
        {
            moved.clusters.insert(cluster.clone());
        }
        if let Claim::By { cluster, .. } = &host.claim {
            self.labelled.entry(cluster.clone()).or_default().insert(key.clone());
            moved.clusters.insert(cluster.clone());
        }
        if let (Claim::By { cluster, .. }, Some(tenancy)) = (&host.claim, &host.tenancy) {
            self.tenancies.entry(cluster.clone()).or_default().insert(tenancy.clone());
        }
        moved.clusters.extend(self.holders(&key).cloned());
        self.hosts.insert(key.clone(), Arc::new(host));
        moved.and(self.place(&key))
    }

    /// A host is gone.
    pub fn remove_host(&mut self, key: &Key) -> Moved {
        self.forget_links(key);
        let mut moved = Moved::default();
        moved.clusters.extend(self.holders(key).cloned());
        if let Some(old) = self.hosts.remove(key)
            && let Claim::By { cluster, .. } = &old.claim
        {
            moved.clusters.insert(cluster.clone());
        }
        self.fleet.remove(key);
        for hosts in self.lacking.values_mut() {
            hosts.remove(key);
        }
        moved
    }

    /// A cluster is there, or has changed.
    pub fn put_cluster(&mut self, want: Want) -> Moved {
        let key = want.key.clone();
        let mut touched: BTreeSet<Key> = self.recorded(&key);
        let is_new = !self.clusters.contains_key(&key);
        for host in &touched {
            self.unhold(host, &key);
        }
        for HostRecord { namespace, name, .. } in &want.record {
            let host = Key::new(namespace, name);
            self.holders.entry(host.clone()).or_default().insert(key.clone());
            touched.insert(host);
        }
        if is_new {
            touched.extend(self.labelled(&key).cloned());
        }
        self.clusters.insert(key.clone(), Arc::new(want));
        let moved = self.place_all(&touched);
        moved.and(Moved { clusters: [key].into(), freed: BTreeSet::new() })
    }

    /// A cluster is gone.
    pub fn remove_cluster(&mut self, key: &Key) -> Moved {
        let mut touched = self.recorded(key);
        for host in &touched {
            self.unhold(host, key);
        }
        touched.extend(self.labelled(key).cloned());
        self.clusters.remove(key);
        self.tenancies.remove(key);
        self.place_all(&touched)
    }

    /// A Secret is there, has changed, or (`None`) is gone.
    pub fn put_secret(&mut self, key: &Key, facts: Option<SecretFacts>) -> Moved {
        let changed = match facts {
            Some(facts) => self.secrets.insert(key.clone(), facts.clone()).as_ref() != Some(&facts),
            None => self.secrets.remove(key).is_some(),
        };
        if !changed {
            return Moved::default();
        }
        let users = self.users.get(key).cloned().unwrap_or_default();
        self.place_all(&users)
    }

    /// Secrets of a namespace may not be read, and what would change that; `None`: they may.
    pub fn put_namespace(&mut self, namespace: &str, ungranted: Option<&str>) -> Moved {
        let before = match ungranted {
            Some(remedy) => self.ungranted.insert(namespace.to_owned(), remedy.to_owned()),
            None => self.ungranted.remove(namespace),
        };
        if before.as_deref() == ungranted {
            return Moved::default();
        }
        let named = self.users.iter().filter(|(secret, _)| secret.namespace == namespace);
        let hosts = named.flat_map(|(_, hosts)| hosts.iter().cloned()).collect();
        self.place_all(&hosts)
    }

    /// The addresses of a host: from its network data, else those kept when it was claimed.
    pub fn addresses(&self, host: &Host) -> Result<Addresses, String> {
        if !self.settings.secrets_known {
            return Ok(host.kept_addresses.clone().unwrap_or_default());
        }
        let kept = || host.kept_addresses.clone();
        let Some(secret) = &host.network_data else {
            return kept().ok_or_else(|| "spec.networkData names no Secret".to_owned());
        };
        match self.secrets.get(secret).map(|s| &s.network_data) {
            Some(Some(Ok(found))) => Ok(found.clone()),
            Some(Some(Err(why))) => Err(format!("Secret {secret}: key networkData {why}")),
            Some(None) => Err(format!("Secret {secret} has no key networkData")),
            None => kept().ok_or_else(|| self.absent(secret)),
        }
    }

    /// Whether the BMC credentials of a host can be used.
    pub fn credentials(&self, host: &Host) -> Result<(), String> {
        if !self.settings.secrets_known {
            return Ok(());
        }
        let Some(secret) = &host.credentials else {
            return Err("spec.bmc.credentialsName names no Secret".to_owned());
        };
        match self.secrets.get(secret) {
            Some(facts) if facts.credentials => Ok(()),
            Some(_) => Err(format!("Secret {secret} lacks username or password")),
            None => Err(self.absent(secret)),
        }
    }

    /// Why nothing is known of a Secret.
    fn absent(&self, secret: &Key) -> String {
        if self.ungranted.contains_key(&secret.namespace) {
            format!("Secrets of namespace {} may not be read", secret.namespace)
        } else {
            format!("Secret {secret} does not exist")
        }
    }

    /// Namespaces whose Secrets may not be read, though hosts that this cluster may take name some there; and what would
    /// change that.
    pub fn ungranted_for(&self, cluster: &Key) -> BTreeMap<&str, &str> {
        let allowed = self.namespaces(cluster);
        let named = |namespace: &str| {
            let mut users = self.users.iter().filter(|(secret, _)| secret.namespace == namespace);
            users.any(|(_, hosts)| hosts.iter().any(|host| allowed.allow(&host.namespace)))
        };
        let all = self.ungranted.iter().map(|(namespace, remedy)| (namespace.as_str(), remedy.as_str()));
        all.filter(|(namespace, _)| named(namespace)).collect()
    }

    /// Candidates that lack an address in one of these networks, with the first such network.
    pub fn without_address(&mut self, networks: &BTreeSet<String>) -> BTreeMap<Key, String> {
        if !self.settings.secrets_known {
            return BTreeMap::new();
        }
        let mut found = BTreeMap::new();
        for network in networks {
            if !self.lacking.contains_key(network) {
                let lacking = self.hosts.values().filter(|h| self.lacks(h, network)).map(|h| h.key.clone()).collect();
                if self.lacking.len() >= NETWORKS_KEPT {
                    self.lacking.clear();
                }
                self.lacking.insert(network.clone(), lacking);
            }
            for host in &self.lacking[network] {
                found.entry(host.clone()).or_insert_with(|| network.clone());
            }
        }
        found
    }

    fn lacks(&self, host: &Host, network: &str) -> bool {
        self.fleet.standing(&host.key) == Some(&Standing::Candidate)
            && self.addresses(host).is_ok_and(|found| !found.contains_key(network))
    }

    pub(crate) fn fleet_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }

    /// Computes the standing of hosts anew; all that hold one of them are concerned.
    fn place_all(&mut self, hosts: &BTreeSet<Key>) -> Moved {
        hosts.iter().fold(Moved::default(), |moved, host| {
            let clusters = self.holders(host).cloned().collect();
            moved.and(self.place(host)).and(Moved { clusters, freed: BTreeSet::new() })
        })
    }

    /// Computes the standing of a host anew.
    fn place(&mut self, key: &Key) -> Moved {
        let Some(host) = self.hosts.get(key).cloned() else { return Moved::default() };
        let standing = self.judge(&host);
        let before = self.fleet.get(key);
        let after = placement::Host { key: key.clone(), labels: host.labels.clone(), standing };
        let mut moved = Moved::default();
        if before.as_ref() != Some(&after) {
            if after.standing == Standing::Candidate {
                moved.freed.insert(key.clone());
            }
            self.fleet.insert(after);
        }
        let mut lacking = std::mem::take(&mut self.lacking);
        for (network, hosts) in &mut lacking {
            if self.lacks(&host, network) {
                hosts.insert(key.clone());
            } else if hosts.remove(key) && self.fleet.standing(key) == Some(&Standing::Candidate) {
                moved.freed.insert(key.clone());
            }
        }
        self.lacking = lacking;
        moved
    }

    fn judge(&self, host: &Host) -> Standing {
        if let Some((by, record)) = self.holders(&host.key).find_map(|by| Some((by, self.record_of(by, host)?))) {
            return Standing::Taken { by: by.clone(), role: record.role.clone() };
        }
        let unfit = match &host.claim {
            Claim::By { cluster, role } if self.clusters.contains_key(cluster) => {
                return Standing::Taken { by: cluster.clone(), role: role.clone() };
            }
            Claim::By { cluster, .. } => Some(Unfit::ClaimedByUnknown(cluster.to_string())),
            Claim::Torn => Some(Unfit::ClaimedByUnknown("some of the claim labels are missing".to_owned())),
            Claim::Free => None,
        };
        let quarantine = || {
            let released = host.released.as_ref()?;
            if released.forced && released.at.is_none() {
                return Some(Unfit::ForceReleased);
            }
            let end = released.at.and_then(|at| quarantine::end(at, self.settings.quarantine));
            Some(Unfit::Quarantine(end.map(|end| format!("until {end}")).unwrap_or_default()))
        };
        let used = || match &host.consumer {
            Some(by) => Some(Unfit::Consumed { by: by.clone() }),
            None => host.provisioned.then_some(Unfit::Provisioned),
        };
        let unreadable = || host.unfit.clone().filter(|why| matches!(why, Unfit::Unreadable(_)));
        let unfit = unfit
            .or_else(unreadable)
            .or_else(quarantine)
            .or_else(used)
            .or_else(|| host.unfit.clone())
            .or_else(|| self.addresses(host).err().map(Unfit::NoNetworkData))
            .or_else(|| self.credentials(host).err().map(Unfit::NoCredentials));
        unfit.map_or(Standing::Candidate, Standing::Dropped)
    }

    fn record_of(&self, cluster: &Key, host: &Host) -> Option<&HostRecord> {
        let want = self.clusters.get(cluster)?;
        want.record.iter().find(|r| r.namespace == host.key.namespace && r.name == host.key.name && r.uid == host.uid)
    }

    fn recorded(&self, cluster: &Key) -> BTreeSet<Key> {
        let want = self.clusters.get(cluster);
        want.into_iter().flat_map(|w| &w.record).map(|r| Key::new(&r.namespace, &r.name)).collect()
    }

    fn unhold(&mut self, host: &Key, cluster: &Key) {
        if let Some(holders) = self.holders.get_mut(host) {
            holders.remove(cluster);
            if holders.is_empty() {
                self.holders.remove(host);
            }
        }
    }

    fn forget_links(&mut self, key: &Key) {
        let Some(old) = self.hosts.get(key).cloned() else { return };
        for secret in [&old.network_data, &old.credentials].into_iter().flatten() {
            if let Some(users) = self.users.get_mut(secret) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(secret);
                }
            }
        }
        if let Claim::By { cluster, .. } = &old.claim
            && let Some(labelled) = self.labelled.get_mut(cluster)
        {
            labelled.remove(key);
            if labelled.is_empty() {
                self.labelled.remove(cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests;
