//! What serves the tenant in the base cluster: load balancers, jump host, OIDC provider.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The services of a tenant. Each list may have several entries; all but one of a list have a name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.loadBalancerWorker) || self.loadBalancerWorker.all(a, self.loadBalancerWorker.filter(b, a.nodePortRange.start <= b.nodePortRange.end && b.nodePortRange.start <= a.nodePortRange.end).size() <= 1)")
        .message("port ranges of loadBalancerWorker overlap"),
    validation = Rule::new("!has(self.loadBalancerWorker) || !has(self.loadBalancerControlPlane) || self.loadBalancerWorker.all(w, self.loadBalancerControlPlane.all(e, e.nodePort < w.nodePortRange.start || e.nodePort > w.nodePortRange.end))")
        .message("a nodePort of loadBalancerControlPlane lies in a range of loadBalancerWorker"),
    validation = Rule::new("!has(self.loadBalancerWorker) || !has(self.jumpHost) || self.loadBalancerWorker.all(w, self.jumpHost.all(e, e.nodePort < w.nodePortRange.start || e.nodePort > w.nodePortRange.end))")
        .message("a nodePort of jumpHost lies in a range of loadBalancerWorker"),
    validation = Rule::new("!has(self.loadBalancerWorker) || !has(self.auth) || self.loadBalancerWorker.all(w, self.auth.all(e, e.nodePort < w.nodePortRange.start || e.nodePort > w.nodePortRange.end))")
        .message("a nodePort of auth lies in a range of loadBalancerWorker"),
    validation = Rule::new("!has(self.loadBalancerControlPlane) || !has(self.jumpHost) || self.loadBalancerControlPlane.all(a, a.nodePort == 0 || self.jumpHost.all(b, b.nodePort != a.nodePort))")
        .message("loadBalancerControlPlane and jumpHost have the same nodePort"),
    validation = Rule::new("!has(self.loadBalancerControlPlane) || !has(self.auth) || self.loadBalancerControlPlane.all(a, a.nodePort == 0 || self.auth.all(b, b.nodePort != a.nodePort))")
        .message("loadBalancerControlPlane and auth have the same nodePort"),
    validation = Rule::new("!has(self.jumpHost) || !has(self.auth) || self.jumpHost.all(a, a.nodePort == 0 || self.auth.all(b, b.nodePort != a.nodePort))")
        .message("jumpHost and auth have the same nodePort")
)]
pub struct Services {
    /// In front of the tenant's API servers: port 6443 to the hosts of role ControlPlane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, (has(a.name) ? a.name : '') == (has(b.name) ? b.name : '')))").message("entries need distinct names (one may have none)"))]
    #[x_kube(validation = Rule::new("self.all(a, a.nodePort == 0 || self.exists_one(b, b.nodePort == a.nodePort))").message("two entries have the same nodePort"))]
    pub load_balancer_control_plane: Vec<LoadBalancerControlPlane>,

    /// In front of the tenant's node ports: a range of ports to the hosts of role Worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, (has(a.name) ? a.name : '') == (has(b.name) ? b.name : '')))").message("entries need distinct names (one may have none)"))]
    pub load_balancer_worker: Vec<LoadBalancerWorker>,

    /// Where the tenant's administrators log in by ssh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, (has(a.name) ? a.name : '') == (has(b.name) ? b.name : '')))").message("entries need distinct names (one may have none)"))]
    #[x_kube(validation = Rule::new("self.all(a, a.nodePort == 0 || self.exists_one(b, b.nodePort == a.nodePort))").message("two entries have the same nodePort"))]
    pub jump_host: Vec<JumpHost>,

    /// The tenant's OIDC provider (Dex).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, (has(a.name) ? a.name : '') == (has(b.name) ? b.name : '')))").message("entries need distinct names (one may have none)"))]
    #[x_kube(validation = Rule::new("self.all(a, a.nodePort == 0 || self.exists_one(b, b.nodePort == a.nodePort))").message("two entries have the same nodePort"))]
    pub auth: Vec<Auth>,
}

/// What every service entry has.
///
/// It is flattened into the entries, so a manifest has these fields beside the entry's own.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Common {
    /// Distinguishes this entry from the others of its list and ends the names of its objects. One entry may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: Option<String>,

    /// Container image. Empty: the installation's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub image: String,

    /// The id of the network, in the hosts' network data, whose address this service uses. OIDC providers reach no host:
    /// with them it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node_interface_id: Option<String>,

    /// Labels that a node of the base cluster must have to run this service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"}))]
    pub node_labels: BTreeMap<String, String>,

    /// With a service of type NodePort: the virtual address of the base cluster under which this service is published.
    /// With ClusterIP: the address the Service gets. With LoadBalancer it has no effect.
    #[serde(default, rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub cluster_ip: Option<String>,

    /// How the service is reached. Default: NodePort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_type: Option<ServiceType>,

    /// Name or address under which the service is published, whatever its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub external_host: Option<String>,

    /// How many pods. Default: 2 for load balancers and for OIDC providers that keep their keys as Kubernetes objects, 1 for
    /// the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub replicas: Option<i32>,
}

/// How a service is reached. `NodePort`, the default: a port on every node of the base cluster. `LoadBalancer`: an
/// address that a load-balancer controller of the base cluster hands out. `ClusterIP`: inside the base cluster only.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// A port on every node of the base cluster.
    #[default]
    NodePort,
    /// An address that a load-balancer controller of the base cluster hands out.
    LoadBalancer,
    /// Inside the base cluster only.
    ClusterIP,
}

/// A load balancer in front of the tenant's API servers.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerControlPlane {
    /// What every service entry has.
    #[serde(flatten)]
    pub common: Common,
    /// Node port of the tenant's API; 0: one is allocated. With serviceType ClusterIP it has no effect.
    #[schemars(range(min = 0, max = 65535))]
    pub node_port: i32,
}

/// A load balancer in front of the tenant's node ports.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerWorker {
    /// What every service entry has.
    #[serde(flatten)]
    pub common: Common,
    /// Each port of this range is served, and goes to the same port of the hosts.
    pub node_port_range: NodePortRange,
    /// Accepted for manifests of earlier versions, and without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub node_port: Option<i32>,
}

/// An inclusive range of ports.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.start <= self.end").message("start is above end"),
    validation = Rule::new("self.end - self.start < 2768").message("a range has at most 2768 ports, as many as Kubernetes has node ports")
)]
pub struct NodePortRange {
    /// First port.
    #[schemars(range(min = 1, max = 65535))]
    pub start: i32,
    /// Last port.
    #[schemars(range(min = 1, max = 65535))]
    pub end: i32,
}

/// A host of the base cluster from which the tenant's administrators reach their machines.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct JumpHost {
    /// What every service entry has.
    #[serde(flatten)]
    pub common: Common,
    /// Node port of ssh; 0: one is allocated. With serviceType ClusterIP it has no effect.
    #[schemars(range(min = 0, max = 65535))]
    pub node_port: i32,
    /// Secret in this namespace whose every key is a private key with which the jump host logs in to the hosts.
    #[serde(rename = "nodeSSHPrivateKeys")]
    #[schemars(length(max = 253))]
    pub node_ssh_private_keys: String,
    /// Public keys (lines of authorized_keys) that may log in.
    #[serde(default, rename = "sshAuthorizedKeys", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 16384)))]
    pub ssh_authorized_keys: Vec<String>,
    /// How the jump host reaches the hosts' BMCs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<Bmc>,
}

/// How the jump host reaches the hosts' BMCs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Bmc {
    /// Whether the proxies of the installation are used towards BMCs. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<bool>,
    /// Whether the BMC credentials of hosts other than ViNO's are given to the jump host, and so to everybody who may
    /// log in there. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<bool>,
}

/// An OIDC provider (Dex) for the tenant's API servers.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// What every service entry has.
    #[serde(flatten)]
    pub common: Common,
    /// Node port of the issuer; 0: one is allocated. With serviceType ClusterIP it has no effect.
    #[schemars(range(min = 0, max = 65535))]
    pub node_port: i32,
    /// Secret in this namespace with `tls.crt` and `tls.key` of the CA that signs the provider's certificate. Absent:
    /// one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ca_secret: Option<String>,
    /// Where users come from: Dex connectors (LDAP, OIDC, ...).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub connectors: Vec<AuthConnector>,
    /// Programs that may ask for tokens, beside `kubernetes`, the one of `slipway token`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub clients: Vec<AuthClient>,
    /// Secret in this namespace with the local users: each value holds lines `<e-mail>:<bcrypt hash>`, as
    /// `htpasswd -nB` prints them, or a bcrypt hash alone, and then its key is the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub passwords_secret: Option<String>,
    /// Prefix of user names in the tenant's API server. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub username_prefix: Option<String>,
    /// Prefix of groups in the tenant's API server. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub groups_prefix: Option<String>,
}

/// A Dex connector.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AuthConnector {
    /// Dex connector type, such as `ldap` or `oidc`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Identifier, unique in this provider.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,
    /// Shown to people at login.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where its configuration is (YAML or JSON, as in Dex's documentation): it may hold passwords, so it is in a Secret.
    pub config_secret: SecretKey,
}

/// A program that may ask for tokens.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AuthClient {
    /// OAuth2 client id.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
    /// Where the client secret is. Absent: a public client (PKCE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKey>,
    /// Where tokens may be sent.
    #[serde(default, rename = "redirectURIs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 1024)))]
    pub redirect_uris: Vec<String>,
}

/// One key of a Secret in the SIPCluster's namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretKey {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}
