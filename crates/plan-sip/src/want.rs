//! What one SIPCluster asks for, checked once, so that nothing below can meet a bad value.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    SIPCluster, SIPClusterSpec, keys,
    sipcluster::{HostRecord, Operator, Replace},
};
use base::{Key, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::placement::{Level, Selector};

/// Most hosts a SIPCluster may ask for, all roles together: its record has to fit into one object.
pub const HOSTS_MAX: u32 = 2000;

/// What one SIPCluster asks of placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The SIPCluster.
    pub key: Key,
    /// The Cluster of Cluster API that is its tenant: what the spec refers to, else the one of its own name.
    pub tenant: Key,
    /// Its uid.
    pub uid: String,
    /// The resourceVersion this was read at.
    pub resource_version: String,
    /// The generation of the spec.
    pub generation: Option<i64>,
    /// Seconds since the epoch at which it was created.
    pub created: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// Its roles. Empty when it is being deleted.
    pub roles: BTreeMap<String, Role>,
    /// What happens to claimed hosts that have gone bad.
    pub replace: Replace,
    /// The record: `status.hosts`.
    pub record: Vec<HostRecord>,
    /// Whether it has once been whole: `status.established`.
    pub established: bool,
    /// What is wrong with the spec; then nothing is claimed and nothing released.
    pub invalid: Option<String>,
}

/// What one role asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Which hosts are eligible.
    pub selector: Selector,
    /// At most so many per domain.
    pub levels: Vec<Level>,
    /// Hosts asked for.
    pub active: u32,
    /// Hosts asked for beside those.
    pub standby: u32,
    /// Networks in which a host of this role needs an address, because a service uses it there.
    pub networks: BTreeSet<String>,
}

impl Role {
    /// Hosts asked for, active and standby.
    pub fn asked(&self) -> u32 {
        self.active + self.standby
    }
}

impl From<&SIPCluster> for Want {
    fn from(sip: &SIPCluster) -> Self {
        let metadata = &sip.metadata;
        let status = sip.status.clone().unwrap_or_default();
        let deleting = metadata.deletion_timestamp.is_some();
        let (roles, invalid) = match roles(&sip.spec) {
            Ok(roles) if !deleting => (roles, None),
            Ok(_) => (BTreeMap::new(), None),
            Err(_) if deleting => (BTreeMap::new(), None),
            Err(why) => (BTreeMap::new(), Some(why)),
        };
        let own = metadata.namespace.clone().unwrap_or_default();
        let tenant = match &sip.spec.cluster_ref {
            None => Key::new(own, metadata.name.clone().unwrap_or_default()),
            Some(named) => Key::new(named.namespace.clone().unwrap_or(own), named.name.clone()),
        };
        Self {
            tenant,
            key: Key::new(metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default()),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation,
            created: metadata.creation_timestamp.as_ref().map_or(0, |t| t.0.as_second()),
            deleting,
            finalizer: metadata.finalizers.iter().flatten().any(|f| f == keys::FINALIZER),
            roles,
            replace: sip.spec.replace.unwrap_or_default(),
            record: status.hosts,
            established: status.established,
            invalid,
        }
    }
}

/// The roles of a spec. What admission refuses is refused here too: files and old objects have not met it.
fn roles(spec: &SIPClusterSpec) -> Result<BTreeMap<String, Role>, String> {
    let networks = networks(spec);
    let mut roles = BTreeMap::new();
    let mut all: u32 = 0;
    for (name, set) in &spec.nodes {
        let field = format!("spec.nodes[{name}]");
        if name.is_empty() || !names::is_label_value(name) {
            return Err(format!("{field}: a role has to be a label value"));
        }
        let selector = selector(set.label_selector.as_ref()).map_err(|e| format!("{field}.labelSelector.{e}"))?;
        let mut levels = Vec::new();
        if let Some(key) = set.topology_key.as_deref().filter(|k| !k.is_empty()) {
            levels.push(level(key, 1).map_err(|e| format!("{field}.topologyKey: {e}"))?);
        }
        for (index, spread) in set.spread.iter().enumerate() {
            levels.push(
                level(&spread.topology_key, spread.max_per_domain)
                    .map_err(|e| format!("{field}.spread[{index}]: {e}"))?,
            );
        }
        let count = set.count.unwrap_or_default();
        let number = |n: Option<i32>, which: &str| {
            u32::try_from(n.unwrap_or(0)).map_err(|_| format!("{field}.count.{which} is negative"))
        };
        let (active, standby) = (number(count.active, "active")?, number(count.standby, "standby")?);
        all = all.saturating_add(active).saturating_add(standby);
        let networks = networks.get(name.as_str()).cloned().unwrap_or_default();
        roles.insert(name.clone(), Role { selector, levels, active, standby, networks });
    }
    if all > HOSTS_MAX {
        return Err(format!("spec.nodes: {all} hosts asked for, a SIPCluster has at most {HOSTS_MAX}"));
    }
    Ok(roles)
}

fn level(key: &str, max: i32) -> Result<Level, String> {
    if !names::is_label_key(key) {
        return Err(format!("{key:?} is not a label key"));
    }
    let max_per_domain = u32::try_from(max).ok().filter(|m| *m > 0).ok_or("maxPerDomain has to be at least 1")?;
    Ok(Level { key: key.to_owned(), max_per_domain })
}

fn selector(selector: Option<&api::sipcluster::Selector>) -> Result<Selector, String> {
    let Some(api::sipcluster::Selector { match_labels, match_expressions }) = selector else {
        return Ok(Selector::everything());
    };
    let expressions = match_expressions.iter().map(|e| LabelSelectorRequirement {
        key: e.key.clone(),
        operator: match e.operator {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
        }
        .to_owned(),
        values: Some(e.values.clone()),
    });
    let selector =
        LabelSelector { match_labels: Some(match_labels.clone()), match_expressions: Some(expressions.collect()) };
    Selector::parse(&selector).map_err(|e| e.to_string())
}

/// Which role needs an address in which network.
fn networks(spec: &SIPClusterSpec) -> BTreeMap<&'static str, BTreeSet<String>> {
    let services = &spec.services;
    let mut needed: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let mut need = |role, id: &Option<String>| {
        if let Some(id) = id.as_ref().filter(|id| !id.is_empty()) {
            needed.entry(role).or_default().insert(id.clone());
        }
    };
    for entry in &services.load_balancer_control_plane {
        need(keys::CONTROL_PLANE, &entry.common.node_interface_id);
    }
    for entry in &services.load_balancer_worker {
        need(keys::WORKER, &entry.common.node_interface_id);
    }
    for entry in &services.jump_host {
        need(keys::CONTROL_PLANE, &entry.common.node_interface_id);
        need(keys::WORKER, &entry.common.node_interface_id);
    }
    needed
}

#[cfg(test)]
impl Want {
    /// The same in this namespace, for tests.
    pub(crate) fn of(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.key.namespace);
        namespace.clone_into(&mut self.tenant.namespace);
        self
    }
}

#[cfg(test)]
mod tests;
