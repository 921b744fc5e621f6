//! SIPCluster: the hosts of one tenant cluster and the services in front of them.

mod nodes;
mod services;
mod status;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use nodes::{Expression, NodeCount, NodeSet, Operator, Selector, Spread};
pub use services::{
    Auth, AuthClient, AuthConnector, Bmc, Common, JumpHost, LoadBalancerControlPlane, LoadBalancerWorker,
    NodePortRange, SecretKey, ServiceType, Services,
};
pub use status::{
    Blocked, Endpoint, EndpointSource, Endpoints, HostRecord, HostState, OidcStatus, Released, RoleStatus,
    SIPClusterStatus,
};

/// Hosts of one tenant cluster, chosen by labels under placement rules, and the load balancers, jump host and OIDC
/// provider that serve it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "airship.airshipit.org",
    version = "v1",
    kind = "SIPCluster",
    plural = "sipclusters",
    singular = "sipcluster",
    shortname = "sip",
    category = "slipway",
    namespaced,
    status = "SIPClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A SIPCluster gathers BareMetalHosts into one tenant cluster under hard placement rules, and gives the tenant load balancers, a jump host and an OIDC provider.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Control plane", type_ = "string", json_path = ".status.controlPlane"),
    printcolumn(name = "Workers", type_ = "string", json_path = ".status.workers"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".status.conditions[?(@.type==\"TenantReachable\")].reason", priority = 1),
    printcolumn(name = "Login", type_ = "string", json_path = ".status.conditions[?(@.type==\"OIDCReady\")].reason", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name becomes part of label values and Service names: at most 63 of a-z, 0-9 and '-', beginning with a letter"),
    validation = Rule::new("!has(self.spec.services.loadBalancerControlPlane) || self.spec.services.loadBalancerControlPlane.all(e, size(self.metadata.name) + (has(e.name) ? size(e.name) + 1 : 0) <= 37)")
        .message("the Service 'loadbalancer-controlplane-<metadata.name>[-<entry name>]' would be longer than 63 characters"),
    validation = Rule::new("!has(self.spec.services.loadBalancerWorker) || self.spec.services.loadBalancerWorker.all(e, size(self.metadata.name) + (has(e.name) ? size(e.name) + 1 : 0) <= 43)")
        .message("the Service 'loadbalancer-worker-<metadata.name>[-<entry name>]' would be longer than 63 characters"),
    validation = Rule::new("!has(self.spec.services.jumpHost) || self.spec.services.jumpHost.all(e, size(self.metadata.name) + (has(e.name) ? size(e.name) + 1 : 0) <= 54)")
        .message("the Service 'jumphost-<metadata.name>[-<entry name>]' would be longer than 63 characters"),
    validation = Rule::new("!has(self.spec.services.auth) || self.spec.services.auth.all(e, size(self.metadata.name) + (has(e.name) ? size(e.name) + 1 : 0) <= 58)")
        .message("the Service 'auth-<metadata.name>[-<entry name>]' would be longer than 63 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct SIPClusterSpec {
    /// Hosts by role. `ControlPlane` and `Worker` are the roles that the services know; hosts of any other role are
    /// claimed and labelled, and no service uses them. The role becomes the value of label
    /// `sip.airshipit.org/node-type`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    #[x_kube(validation = Rule::new("self.all(role, size(role) <= 63 && role.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))").message("a role becomes a label value: at most 63 of A-Z, a-z, 0-9, '-', '_' and '.', alphanumeric at both ends"))]
    pub nodes: BTreeMap<String, NodeSet>,

    /// What serves the tenant in the base cluster. `{}` for none.
    pub services: Services,

    /// What happens to a claimed host that has gone bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<Replace>,

    /// The Cluster of Cluster API that runs on these hosts, whose CA and kubeconfig the services use. Default: same
    /// namespace and name. One in another namespace must name this SIPCluster in its annotation
    /// `sip.airshipit.org/cluster: <namespace>/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,

    /// The CA certificate of the tenant's API server, where no Cluster of Cluster API exists.
    #[serde(default, rename = "tenantCA", skip_serializing_if = "Option::is_none")]
    pub tenant_ca: Option<SecretKey>,
}

/// What happens to a claimed host that has gone bad (error, detached from Metal3, being deleted). `Never`, the default:
/// it is reported and kept. `WhenUnconsumed`: it is replaced as soon as nobody consumes it.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replace {
    /// It is reported and kept.
    #[default]
    Never,
    /// It is replaced as soon as nobody consumes it.
    WhenUnconsumed,
}

/// A Cluster of Cluster API.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// Its namespace; default: that of the SIPCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

#[cfg(test)]
mod tests;
