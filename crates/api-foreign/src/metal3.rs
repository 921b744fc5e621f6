//! `metal3.io/v1alpha1` BareMetalHost, as much of it as decides whether and how a host is used.
//!
//! Source: the BareMetalHost API of Metal3's baremetal-operator (`apis/metal3.io/v1alpha1`). Every field is optional
//! here, so that a host of a newer or older version is still read; what is missing is judged where it is needed.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What a host shall be.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "BareMetalHost",
    plural = "baremetalhosts",
    namespaced,
    status = "BareMetalHostStatus",
    derive = "Default",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostSpec {
    /// How its BMC is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<BmcDetails>,
    /// Whether it shall be powered on.
    #[serde(default)]
    pub online: bool,
    /// Who uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ConsumerRef>,
    /// The Secret with its network data, for the provisioned system. Metal3's provider replaces and clears it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretRef>,
    /// The Secret (same namespace) with its network data for the provisioning system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprovisioning_network_data_name: Option<String>,
    /// The image it runs or shall run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Provisioned by something other than Metal3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub externally_provisioned: bool,
}

/// How a BMC is reached.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BmcDetails {
    /// URL, such as `redfish+https://192.0.2.1/redfish/v1/Systems/1`.
    #[serde(default)]
    pub address: String,
    /// Secret (same namespace) with `username` and `password`.
    #[serde(default)]
    pub credentials_name: String,
    /// Whether its certificate is not verified.
    #[serde(default)]
    pub disable_certificate_verification: bool,
}

/// Who uses a host.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerRef {
    /// Its kind, such as `Metal3Machine`.
    #[serde(default)]
    pub kind: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// A reference to a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its namespace; empty: that of the host.
    #[serde(default)]
    pub namespace: String,
}

/// An image on a host.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where it comes from; empty: none.
    #[serde(default)]
    pub url: String,
}

/// What Metal3 found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostStatus {
    /// `OK`, `discovered`, `error`, `delayed`, `detached` or empty.
    #[serde(default)]
    pub operational_status: String,
    /// Kind of the error, if there is one.
    #[serde(default)]
    pub error_type: String,
    /// Text of the error, if there is one.
    #[serde(default)]
    pub error_message: String,
    /// Whether it is on.
    #[serde(default)]
    pub powered_on: bool,
    /// How far its provisioning is.
    #[serde(default)]
    pub provisioning: ProvisionStatus,
}

/// How far the provisioning of a host is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionStatus {
    /// `available`, `ready`, `provisioning`, `provisioned`, `deprovisioning`, ... or empty.
    #[serde(default)]
    pub state: String,
    /// What was written to it last.
    #[serde(default)]
    pub image: Image,
}

/// Label that Metal3's provider sets on a host together with consumerRef, and takes off with it: the name of the Cluster.
pub const CAPI_CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
/// Metal3's annotation that stops its own work on a host.
pub const PAUSED: &str = "baremetalhost.metal3.io/paused";
/// Metal3's annotation that takes a host out of its management.
pub const DETACHED: &str = "baremetalhost.metal3.io/detached";
