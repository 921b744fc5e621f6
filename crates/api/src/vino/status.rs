//! What the controller found and did for one Vino.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What the controller found and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VinoStatus {
    /// The spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `DaemonSetReady`, `BMHReady` and one condition for each further concern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// A field of the original, never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ObjectReference>,

    /// What cannot be done at present, why, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// Nodes that are not as asked, and why; at most as many as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub nodes: Vec<NodeSummary>,

    /// `ready/all` nodes, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub nodes_ready: Option<String>,
    /// `present/asked` virtual machines, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub vms_present: Option<String>,
    /// How many BareMetalHosts are registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<i32>,
}

/// What cannot be done at present.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// CamelCase, from the same closed set as the reason of condition Ready.
    #[schemars(length(max = 63))]
    pub reason: String,
    /// For people: what is asked, what there is, what would do.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// Since when.
    pub since: Time,
}

/// A node that is not as asked.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Why: CamelCase, from a closed set.
    #[schemars(length(max = 63))]
    pub reason: String,
    /// The same for people.
    #[schemars(length(max = 4096))]
    pub message: String,
}

/// A reference to an object, in the shape of `core/v1`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// API version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_version: Option<String>,
    /// Part of the object that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub field_path: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// The version that was meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resource_version: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub uid: Option<String>,
}
