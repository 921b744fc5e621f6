//! BMCs of virtual machines: logins, certificates, how they boot.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Login by which Metal3 manages the virtual machines: a Secret, or user and password in the clear as the original asked
/// for. With neither, one for each is made, with a password of its own.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.secretRef) || ((!has(self.username) || self.username == '') && (!has(self.password) || self.password == ''))")
        .message("secretRef and a login in the clear exclude each other")
)]
pub struct BmcCredentials {
    /// User, readable by everybody who may read this object: use `secretRef`, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub username: Option<String>,
    /// Password, readable by everybody who may read this object: use `secretRef`, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub password: Option<String>,
    /// Secret in this namespace with keys `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// A Secret in the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The BMCs of the virtual machines.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Bmc {
    /// How Metal3 boots them. Absent: `Network`. For hosts that are registered already it cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BmcBoot>,
    /// Whether Metal3 verifies their certificates; it has then to be given the CA bundle. Absent: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// Whether they speak http without TLS, as the original did. Absent: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_http: Option<bool>,
    /// Port on the nodes' InternalIPs. Absent: 8000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Where images of virtual media may come from: host names (`*.example.org` with all below it) or CIDRs. Empty: from
    /// anywhere but loopback, link-local and the service range of the base cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub media_allowed: Vec<String>,
}

/// How Metal3 boots a virtual machine. `Network`, the default: by DHCP and iPXE. `VirtualMedia`: by an image that its BMC
/// inserts.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BmcBoot {
    /// By DHCP and iPXE.
    #[default]
    Network,
    /// By an image that the BMC inserts.
    VirtualMedia,
}
