//! VinoNode: what one node of the base cluster shall carry for a Vino, and what it carries.
//!
//! The manager writes the spec, the node's agent the status; nobody else writes either. Everything in the spec is
//! settled: addresses are leased, templates are rendered, names are composed. The agent decides only what the node alone
//! can know: cores, cells, what exists.
//!
//! ```text
//!                       manager                                  agent
//!   entry of a VM:  (absent) ─► Present ──────────────────────► phase Pending ─► Present ─► (BareMetalHost is made)
//!                                  │ its BareMetalHost is gone
//!                                  ▼
//!                               Absent ───────────────────────► phase Absent: domain, volumes and log are gone
//!                                  │ leases freed
//!                                  ▼
//!                              (absent)
//! ```
//!
//! Absence destroys nothing: what is on the node and not in the spec stays, and is reported. Networks and pools go the
//! same way as VMs.

mod network;
mod status;
mod storage;
mod vm;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use network::{AddressRange, Dhcp, NetworkMode, NodeNetwork, Pxe, Route};
pub use status::{
    BmcStatus, Capacity, CellStatus, DiskPhase, DiskStatus, HugepageStatus, MachineStatus, NetworkStatus, Phase,
    PoolStatus, Power, VinoNodeStatus, VmStatus,
};
pub use storage::{DiskFormat, Image, ImageUse, NodeDisk, NodePool};
pub use vm::{CpuPolicy, Firmware, Hugepages, NodeInterface, NodeVm, NumaPolicy};

/// Networks, storage pools and virtual machines that one node shall have.
#[allow(clippy::duplicated_attributes, reason = "each printer column has a type")]
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "airship.airshipit.org",
    version = "v1",
    kind = "VinoNode",
    plural = "vinonodes",
    singular = "vinonode",
    shortname = "vnode",
    category = "slipway",
    namespaced,
    status = "VinoNodeStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A VinoNode says what one node of the base cluster shall carry for a Vino: networks, storage pools and virtual machines, each with a BMC. Its name is that of the node. The manager writes the spec, the agent on that node the status.",
    printcolumn(name = "Vino", type_ = "string", json_path = ".spec.vinoRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "VMs", type_ = "string", json_path = ".status.present"),
    printcolumn(name = "Free CPUs", type_ = "integer", json_path = ".status.capacity.freeCpus"),
    printcolumn(name = "Free MiB", type_ = "integer", json_path = ".status.capacity.freeMemoryMiB"),
    printcolumn(name = "KVM", type_ = "boolean", json_path = ".status.accelerated", priority = 1),
    printcolumn(name = "Agent", type_ = "string", json_path = ".status.agentVersion", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VinoNodeSpec {
    /// Rises with every change of this spec. Agents keep the highest they have seen: one that sees a lower one changes
    /// nothing and reports, for then a backup was restored.
    #[schemars(range(min = 1))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("serial never falls"))]
    pub serial: i64,

    /// Whose this node is.
    #[x_kube(validation = Rule::new("self.uid == oldSelf.uid").message("a VinoNode keeps its Vino; another one is made anew"))]
    pub vino_ref: VinoRef,

    /// The machine that is meant. On another one the agent changes nothing and reports.
    pub machine: Machine,

    /// CPUs of the node that no virtual machine gets, such as `0-1,32`. Absent: none is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub cpu_exclude: Option<String>,

    /// Networks, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub networks: Vec<NodeNetwork>,

    /// Storage pools, by name: directories in which the disks of the virtual machines are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub pools: Vec<NodePool>,

    /// Virtual machines, by UUID. Two entries may have the same name only while at least one of them is `Absent` or of
    /// another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uuid".into()]))]
    pub vms: Vec<NodeVm>,

    /// The Redfish service for these virtual machines.
    pub bmc: NodeBmc,
}

/// The Vino that a node serves.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct VinoRef {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 63))]
    pub uid: String,
}

/// What tells one machine from another of the same node name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// `status.nodeInfo.machineID` of the node.
    #[serde(rename = "machineID")]
    #[schemars(length(min = 1, max = 64))]
    pub machine_id: String,
    /// What the agent found in, or once wrote to, the marker file of the default pool. Absent until it was first
    /// reported. Where the file is missing or says something else, the pool is not mounted or not the same: nothing is
    /// created, nothing destroyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub marker: Option<String>,
}

/// Whether something shall be on the node. Only `Absent` ever takes something away.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It shall be there.
    #[default]
    Present,
    /// It shall go, with all that belongs to it.
    Absent,
}

/// The Redfish service of a node, one for all its virtual machines, on the node's InternalIPs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeBmc {
    /// Its port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Whether it speaks http without TLS. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
    /// Secret in this namespace with the logins. Key `<uuid>.metal3` is the login by which Metal3 manages a virtual
    /// machine, `<uuid>.tenant` the one that may read its System and switch its power, nothing else. A value is
    /// `<user>:<hash>`, the hash in PHC form of a slow function. A key that is not there is a login that is disabled: its
    /// sessions end.
    #[schemars(length(min = 1, max = 253))]
    pub logins_secret: String,
    /// Its certificate and those that lead to its CA (PEM), for the key whose request is in the status. Absent until
    /// signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub certificate: Option<String>,
    /// Where images of virtual media may come from, host names (`*.example.org` with all below it) or CIDRs. Empty: from
    /// anywhere but loopback, link-local and `media_denied`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub media_allowed: Vec<String>,
    /// CIDRs from which images never come, such as the service range of the base cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub media_denied: Vec<String>,
}

#[cfg(test)]
mod tests;
