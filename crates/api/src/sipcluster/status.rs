//! What the controller found and did for one SIPCluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::ServiceType;

/// What the controller found and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SIPClusterStatus {
    /// The spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Ready` and one condition for each phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The hosts of this cluster. It is written before any host is labelled, and is the record by which an interrupted
    /// claim or release is completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub hosts: Vec<HostRecord>,

    /// Counts for each role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub roles: Vec<RoleStatus>,

    /// Whether this cluster has once had all its hosts. Until then it gets all of them or none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub established: bool,

    /// What cannot be done at present, why, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,

    /// Where the services are reached. Once published, an endpoint does not change by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,

    /// What the tenant's API server is configured with so that it trusts the OIDC provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub oidc: Vec<OidcStatus>,

    /// `claimed/desired` of role ControlPlane, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,
    /// `claimed/desired` of role Worker, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<String>,
    /// `host:port` of the tenant's API, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// One host of a cluster.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// Namespace of the BareMetalHost.
    pub namespace: String,
    /// Name of the BareMetalHost.
    pub name: String,
    /// uid of the BareMetalHost.
    pub uid: String,
    /// The role it was chosen for.
    pub role: String,
    /// How far its claim or release is.
    pub state: HostState,
    /// Values of the role's topology labels when it was chosen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// Addresses by network id, read when it was chosen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, String>,
}

/// How far the claim or release of a host is.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// Chosen; its labels are being set.
    Chosen,
    /// Its labels have been seen.
    Claimed,
    /// It is leaving: first the backends, then the labels.
    Releasing,
}

/// Counts of one role.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RoleStatus {
    /// The role.
    pub name: String,
    /// Hosts asked for: active and standby.
    pub desired: i32,
    /// Hosts claimed.
    pub claimed: i32,
    /// Of the desired ones, those asked for as standby.
    pub standby: i32,
    /// Surplus hosts that wait until nobody consumes them.
    pub waiting: i32,
}

/// What cannot be done at present.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// CamelCase, from the same closed set as the reason of condition Ready.
    pub reason: String,
    /// The role that is short of hosts, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// For people: what is asked, what there is, what would do.
    pub message: String,
    /// Since when.
    pub since: Time,
}

/// Where the services are reached.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// The tenant's API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub control_plane: Vec<Endpoint>,
    /// The tenant's node ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub worker: Vec<Endpoint>,
    /// ssh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub jump_host: Vec<Endpoint>,
    /// The OIDC issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub auth: Vec<Endpoint>,
}

/// Where one service is reached.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Name of the Service object, in the SIPCluster's namespace.
    pub service: String,
    /// Name or address.
    pub host: String,
    /// Port; of a range, the first.
    pub port: i32,
    /// Of a range, the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_port: Option<i32>,
    /// Whether it is reached from inside the base cluster only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
    /// The type of the Service it was published for: another type is another endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_type: Option<ServiceType>,
    /// Where `host` comes from. What an entry names is followed when the entry is edited; what was found stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EndpointSource>,
}

/// Where the host of an endpoint comes from: `externalHost` or `clusterIP` of its entry, a `Node` of the base cluster,
/// the `Service` itself (its own address, or what a load-balancer controller gave it).
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointSource {
    /// `externalHost` of the entry.
    #[serde(rename = "externalHost")]
    ExternalHost,
    /// `clusterIP` of the entry.
    #[serde(rename = "clusterIP")]
    ClusterIP,
    /// A node of the base cluster.
    Node,
    /// The Service: its own address, or what a load-balancer controller gave it.
    Service,
}

/// What the tenant's API server is configured with so that it trusts one OIDC provider.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct OidcStatus {
    /// The issuer's URL.
    #[serde(rename = "issuerURL")]
    pub issuer_url: String,
    /// OAuth2 client id that kubectl logs in with.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// ConfigMap in this namespace with `authentication-config.yaml` (AuthenticationConfiguration), `flags` (the
    /// `--oidc-*` flags of older API servers), `kubeadm-patch.yaml` and `ca.crt`.
    pub config_map: String,
    /// Where the provider keeps its signing keys: `Volume` or `Kubernetes`. It is chosen once, when the provider is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// Value of annotation `sip.airshipit.org/released`: whose a host was, and when its quarantine began.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Released {
    /// Namespace of the SIPCluster that had it.
    pub namespace: String,
    /// Name of that SIPCluster.
    pub cluster: String,
    /// The role it had.
    pub role: String,
    /// When its quarantine began; absent while a force-released host is still in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Whether an administrator gave it up while it was in use: its labels never come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}
