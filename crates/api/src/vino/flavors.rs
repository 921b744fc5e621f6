//! Flavors: how large virtual machines are, and how they sit on their node.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::vinonode::{CpuPolicy, Firmware, Hugepages, Image, NumaPolicy};

/// How large a virtual machine is, and how it sits on its node. A change takes effect at the next start of each.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Flavor {
    /// Name, by which groups name it.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// Processors.
    #[schemars(range(min = 1, max = 1024))]
    pub vcpus: i32,
    /// Memory, such as `512Mi` or `4Gi`.
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]{0,7}(Mi|Gi|Ti)$"))]
    pub memory: String,
    /// Size of the pages its memory is made of. Absent: the ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepages: Option<Hugepages>,
    /// How it gets its processors. Absent: `Pinned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_policy: Option<CpuPolicy>,
    /// Where its processors and memory are. Absent: `Strict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_policy: Option<NumaPolicy>,
    /// What starts it. Absent: `BIOS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Firmware>,
    /// Its root disk. Absent: 10 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<RootDisk>,
    /// Domain XML laid over what is generated: elements of the same name and key are replaced, others added. It is data:
    /// nothing in it is rendered. UUID, name, metadata, processors, memory, disks and interfaces stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub xml_overlay: Option<String>,
}

/// The root disk of a virtual machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RootDisk {
    /// Size in GiB. Absent: 10. It may grow, never shrink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gb: Option<i32>,
    /// Whether space is taken only when it is written to. Absent: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse: Option<bool>,
    /// Directory on the nodes in which it is made. Absent: that of pool `vino-default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^(/[0-9A-Za-z/._-]*)?$"))]
    pub path: Option<String>,
    /// What is on it at first. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}
