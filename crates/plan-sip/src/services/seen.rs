//! What is there: the objects, pods and reports that a plan is made from.

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::sipcluster::Endpoints;
use base::Key;
use serde_json::Value;

use super::Kind;

/// One object that is there under a name that we use, or with the owner's labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owned {
    /// Its uid.
    pub uid: String,
    /// The resourceVersion that this was read at.
    pub resource_version: String,
    /// Label [`api::keys::OWNER_NAME`]; `None` on an object of the original operator. A name other than the owner's:
    /// the object serves another SIPCluster of the namespace and is not touched.
    pub owner_name: Option<String>,
    /// Label [`api::keys::OWNER_UID`]; `None` on an object of the original operator.
    pub owner_uid: Option<String>,
    /// Annotation [`api::keys::APPLIED`].
    pub applied: Option<String>,
    /// The live object, where it has not been compared with the desired one since it last changed.
    pub live: Option<Arc<Value>>,
    /// What its status says.
    pub facts: Facts,
}

/// What the status of an object, or the state we keep in it, says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Facts {
    /// Nothing is read of it.
    #[default]
    None,
    /// Addresses and ports of a Service.
    Service {
        /// `spec.clusterIP`.
        cluster_ip: String,
        /// Node ports in the order of `spec.ports`.
        node_ports: Vec<i32>,
        /// Host name or address that a load-balancer controller gave.
        ingress: Option<String>,
    },
    /// Availability of a Deployment.
    Deployment {
        /// Whether its pods serve, those of an earlier generation included.
        available: bool,
        /// Whether pods of the present generation are still to take the place of earlier ones.
        rolling: bool,
        /// What keeps it from being available or rolled out, as conditions ReplicaFailure, Progressing or Available say.
        message: String,
    },
    /// Whom a RoleBinding gives its rights to.
    Binding {
        /// Name of the first subject.
        account: String,
    },
    /// Data of a Secret that holds state of ours (load-balancer configuration, host keys, certificates).
    Secret {
        /// `data`, decoded; only of Secrets with the owner's labels.
        data: BTreeMap<String, Arc<[u8]>>,
    },
}

/// One pod of a service, with what its sidecar reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The resourceVersion that this was read at.
    pub resource_version: String,
    /// Instance name: label `app.kubernetes.io/instance`.
    pub instance: String,
    /// Whether it is going already (`metadata.deletionTimestamp`).
    pub deleting: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// Seconds since the epoch at which `ready` last changed.
    pub ready_since: i64,
    /// Annotation with the checksum of what its Secret shall hold ([`Step::AnnotatePod`](super::Step::AnnotatePod)).
    pub wanted: Option<String>,
    /// What its sidecar reports; `None` where it could not be asked.
    pub report: Option<Report>,
    /// Why its containers do not run (image missing, crash), for people; empty when they do.
    pub trouble: String,
}

/// What the sidecar of a load balancer reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Checksum of the configuration that HAProxy serves.
    pub serving: String,
    /// Checksum of a configuration that HAProxy refused, and what it said.
    pub refused: Option<(String, String)>,
    /// Sessions left, by server that is leaving. One that the served configuration still has, or whose sessions some
    /// worker could not tell, is not in it.
    pub leaving: BTreeMap<String, u64>,
}

/// User and password of a BMC. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `username`.
    pub username: String,
    /// `password`.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// A Secret that the spec names.
#[derive(Clone, PartialEq, Eq)]
pub struct Referred {
    /// `data`, decoded.
    pub data: BTreeMap<String, Arc<[u8]>>,
}

impl fmt::Debug for Referred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.data.keys()).finish()
    }
}

/// A HAProxy template that people gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTemplate {
    /// The ConfigMap it comes from.
    pub config_map: Key,
    /// The template.
    pub text: Arc<str>,
}

/// Reads that failed, each with what the API server said. What they would have shown is not known, which is not the same
/// as absent: what was made from it before stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Secrets that the spec names.
    pub referred: BTreeMap<String, String>,
    /// BMC credentials, by host.
    pub credentials: BTreeMap<Key, String>,
    /// The tenant's kubeconfig.
    pub tenant_kubeconfig: Option<String>,
    /// Whether Dex's definitions are there.
    pub dex_definitions: Option<String>,
}

/// Seconds after which what could not be read is read again.
pub(crate) const READ_AGAIN: u64 = 30;

/// What is there.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Objects with the owner's labels, or under names that [`names::taken_over`](super::names::taken_over) lists.
    pub objects: BTreeMap<(Kind, String), Owned>,
    /// Pods of the owner's instances.
    pub pods: Vec<Pod>,
    /// HAProxy templates: the tenant namespace's, else the operator-wide one's; by key in the ConfigMap
    /// (`loadBalancerControlPlane.cfg`, `loadBalancerWorker.cfg`).
    pub templates: BTreeMap<String, CustomTemplate>,
    /// Secrets in the tenant namespace that the spec names; a missing one is not in it.
    pub referred: BTreeMap<String, Referred>,
    /// BMC credentials of the hosts, where a jump host may have them.
    pub credentials: BTreeMap<Key, Credentials>,
    /// InternalIPs of Ready nodes of the base cluster, in the order of their names.
    pub node_ips: Vec<String>,
    /// Endpoints already published.
    pub published: Option<Endpoints>,
    /// Whether the base cluster has Dex's definitions (`*.dex.coreos.com`). It counts only until a provider has chosen
    /// where it keeps its keys.
    pub dex_definitions: bool,
    /// Kubeconfig of the tenant, where its Cluster has one.
    pub tenant_kubeconfig: Option<Arc<[u8]>>,
    /// What could not be read.
    pub unread: Unread,
    /// Seconds since the epoch.
    pub now: i64,
}
