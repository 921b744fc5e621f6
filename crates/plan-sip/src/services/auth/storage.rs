//! Where a provider keeps its signing keys and refresh tokens: chosen once, for its whole life.
//!
//! ```text
//!  has a configuration, a claim or the binding ──────────────────────────────► as it is
//!  new: Dex's definitions are there, no other provider of the namespace ─┬───► Kubernetes: 2 pods
//!       keeps its keys as Kubernetes objects                             └ no ► a volume: 1 pod
//! ```
//!
//! Dex finds its Kubernetes objects by fixed names in the namespace of its pod, so two providers of one namespace would
//! share signing keys, and take each other's refresh tokens. The RoleBinding that gives the right to them has a fixed name
//! too: whose it is, has them. A change of storage means other signing keys, which ends every login and which the
//! tenant's API server notices only after a while. So what comes later (definitions, or their end) changes nothing.

use api::sipcluster::Auth;
use serde_json::{Value, json};

use super::{
    super::{
        Facts, Kind, Object, Seen, Want,
        names::{DEX_BINDING, DEX_ROLE},
        object::Instance,
    },
    config::DATA,
};

/// Pods that share their keys by way of Kubernetes, where the entry says nothing.
const REPLICAS: i32 = 2;

/// Where a provider keeps its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// A file of SQLite on a volume: one pod.
    Volume,
    /// Objects of the group `dex.coreos.com` in the provider's namespace.
    Kubernetes,
}

/// Whose the RoleBinding of the namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Free,
    Ours,
    Anothers,
}

/// How the RoleBinding stands for the provider of this name.
pub(super) fn binding(want: &Want<'_>, seen: &Seen, instance: &str) -> Binding {
    let Some(owned) = seen.objects.get(&(Kind::RoleBinding, DEX_BINDING.to_owned())) else { return Binding::Free };
    let of_account = matches!(&owned.facts, Facts::Binding { account } if account == instance);
    // Under the name of the same SIPCluster before it was made anew it is taken over, like everything else.
    if of_account && owned.owner_name.as_ref() == Some(&want.owner.name) { Binding::Ours } else { Binding::Anothers }
}

impl Storage {
    /// What was chosen for the provider of this name, by what there is of it.
    pub fn chosen(before: Option<&Value>, binding: Binding, seen: &Seen, claim: &str) -> Option<Self> {
        match before.and_then(|before| before["storage"]["type"].as_str()) {
            Some("kubernetes") => return Some(Self::Kubernetes),
            Some(_) => return Some(Self::Volume),
            None => {}
        }
        let has_claim = seen.objects.contains_key(&(Kind::PersistentVolumeClaim, claim.to_owned()));
        match (has_claim, binding) {
            (true, _) => Some(Self::Volume),
            (false, Binding::Ours) => Some(Self::Kubernetes),
            (false, Binding::Free | Binding::Anothers) => None,
        }
    }

    /// What a new provider gets; only the first of a SIPCluster may take the namespace's Kubernetes objects.
    pub fn choose(first: bool, binding: Binding, seen: &Seen) -> Self {
        if first && seen.dex_definitions && binding != Binding::Anothers { Self::Kubernetes } else { Self::Volume }
    }

    /// As status says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "Volume",
            Self::Kubernetes => "Kubernetes",
        }
    }

    /// In Dex's configuration.
    pub fn config(self) -> Value {
        match self {
            Self::Volume => json!({ "type": "sqlite3", "config": { "file": format!("{DATA}/dex.db") } }),
            Self::Kubernetes => json!({ "type": "kubernetes", "config": { "inCluster": true } }),
        }
    }

    /// How many pods.
    pub fn replicas(self, spec: &Auth) -> i32 {
        match self {
            Self::Volume => 1,
            Self::Kubernetes => spec.common.replicas.unwrap_or(REPLICAS),
        }
    }
}

/// The account of the pods, and its right to Dex's objects.
pub(super) fn rights(want: &Want<'_>, instance: &Instance) -> [Object; 2] {
    let account = json!({ "automountServiceAccountToken": false });
    let binding = json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": DEX_ROLE },
        "subjects": [{ "kind": "ServiceAccount", "name": instance.name, "namespace": want.owner.namespace }],
    });
    [
        instance.object(want, Kind::ServiceAccount, &instance.name, account),
        instance.object(want, Kind::RoleBinding, DEX_BINDING, binding),
    ]
}

/// Not all pods at once; with a single pod it would only keep nodes from being drained.
pub(super) fn disruption_budget(want: &Want<'_>, instance: &Instance, replicas: i32) -> Option<Object> {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": instance.selector() } });
    let object = || instance.object(want, Kind::PodDisruptionBudget, &instance.name, json!({ "spec": spec }));
    (replicas > 1).then(object)
}
