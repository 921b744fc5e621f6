//! Vino: chosen nodes of the base cluster carved into virtual machines that behave like bare metal.

mod bmc;
mod flavors;
mod groups;
mod networks;
mod status;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use bmc::{Bmc, BmcBoot, BmcCredentials, SecretRef};
pub use flavors::{Flavor, RootDisk};
pub use groups::{DiskDrive, DiskOptions, Group, Interface, NamespacedName};
pub use networks::{Network, NetworkDhcp, NetworkPxe, VinoRoute};
pub use status::{Blocked, NodeSummary, ObjectReference, VinoStatus};

/// Which nodes are carved, into how many virtual machines of which kinds, in which networks.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "airship.airshipit.org",
    version = "v1",
    kind = "Vino",
    plural = "vinoes",
    singular = "vino",
    shortname = "vinos",
    category = "slipway",
    namespaced,
    status = "VinoStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A Vino carves nodes of the base cluster into virtual machines, each with a BMC, and registers them as BareMetalHosts.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodesReady"),
    printcolumn(name = "VMs", type_ = "string", json_path = ".status.vmsPresent"),
    printcolumn(name = "Hosts", type_ = "integer", json_path = ".status.hosts"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name becomes part of label values and of the names of BareMetalHosts: at most 63 of a-z, 0-9 and '-', alphanumeric at both ends")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.nodes) || self.nodes.all(g, !has(g.networkInterfaces) || g.networkInterfaces.all(i, !has(i.network) || (has(self.networks) && self.networks.exists(n, n.name == i.network))))")
        .message("an interface in nodes names a network that is not in networks"),
    validation = Rule::new("!has(self.networks) || self.networks.all(n, !has(n.physicalInterface) || self.networks.exists_one(m, has(m.physicalInterface) && m.physicalInterface == n.physicalInterface))")
        .message("two networks have the same physicalInterface"),
    validation = Rule::new("!has(self.networks) || self.networks.all(n, !has(n.bridgeName) || n.bridgeName == '' || self.networks.exists_one(m, has(m.bridgeName) && m.bridgeName == n.bridgeName))")
        .message("two networks have the same bridgeName")
)]
pub struct VinoSpec {
    /// The nodes that are carved. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,

    /// What is kept from virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,

    /// Networks, each on every node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub networks: Vec<Network>,

    /// Groups of virtual machines. Every node gets `count` of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub nodes: Vec<Group>,

    /// Flavors by name, before those of ConfigMap `vino-flavors` and the built-in `master` and `worker`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub flavors: Vec<Flavor>,

    /// The DaemonSet of the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_set_options: Option<DaemonSetOptions>,

    /// Login by which Metal3 manages the virtual machines. Absent: one for each is made, with a password of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc_credentials: Option<BmcCredentials>,

    /// The BMCs of the virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<Bmc>,

    /// Labels of a node that its BareMetalHosts get too. A label that the node lacks they lack too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(
            length(max = 317),
            regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
        )
    )]
    pub node_label_keys_to_copy: Vec<String>,

    /// Server of the boot file `dualboot.ipxe` for machines that boot by network. Absent: the address of the node in the
    /// network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^[0-9A-Za-z:._-]*$"))]
    pub pxe_boot_image_host: Option<String>,
    /// Its port. Absent: 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub pxe_boot_image_host_port: Option<i32>,

    /// Network interface of the nodes for networks that name none themselves, if there is only one such network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = r"^[0-9A-Za-z_.-]*$"))]
    pub vm_bridge: Option<String>,
}

/// Which nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// Labels that a node must have, with exactly these values. Empty: every node.
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"}))]
    #[x_kube(validation = Rule::new("self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))").message("every key must be a label key, such as node-type"))]
    pub match_labels: BTreeMap<String, String>,
}

/// What is kept from virtual machines.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// CPUs of every node that no virtual machine gets, such as `0-4,54-60`. Absent or empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^\s*([0-9]+(-[0-9]+)?(\s*,\s*[0-9]+(-[0-9]+)?)*)?\s*$"))]
    pub cpu_exclude: Option<String>,
}

/// The DaemonSet of the agents.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetOptions {
    /// ConfigMap with its template, key `template`. Absent: ConfigMap `vino-daemonset-template` in the manager's
    /// namespace, and without that the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaced_name: Option<NamespacedName>,
    /// Image of container `libvirt`. Absent: that of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub libvirt_image: Option<String>,
    /// Accepted for manifests of the original, and without effect: the agent answers Redfish itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub sushy_image: Option<String>,
    /// Image of container `agent`, which the original called vino-builder. Absent: that of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub vino_builder_image: Option<String>,
    /// Accepted for manifests of the original, and without effect: the agent labels its node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub node_annotator_image: Option<String>,
}

#[cfg(test)]
mod tests;
