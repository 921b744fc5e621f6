//! Virtual machines of a node.

use std::net::IpAddr;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{NodeDisk, State};

/// One virtual machine.
///
/// What cannot change while a guest runs (processors, memory, firmware, overlay) takes effect at its next start; until
/// then the status says so.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeVm {
    /// Its UUID: that of the libvirt domain, of the firmware tables and of the Redfish System. It is never used again
    /// for another one.
    #[schemars(regex(pattern = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))]
    pub uuid: String,
    /// `<group>-<number>`: name of the libvirt domain, unique on its node.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether it shall be there.
    #[serde(default)]
    pub state: State,
    /// The machine it is on. An agent passes over the entries of other machines, even those that are `Absent`: they were
    /// on a machine that is gone, and are kept while somebody uses their BareMetalHost.
    #[serde(rename = "machineID")]
    #[schemars(length(min = 1, max = 64))]
    pub machine_id: String,
    /// `spec.serial` with which it was first asked for: a domain whose metadata has a higher one is never touched for the
    /// sake of this entry.
    #[schemars(range(min = 1))]
    pub since: i64,
    /// Group of the Vino that it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub group: String,
    /// Name of its BareMetalHost, in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,

    /// Processors.
    #[schemars(range(min = 1, max = 1024))]
    pub vcpus: i32,
    /// How it gets them.
    #[serde(default)]
    pub cpu_policy: CpuPolicy,
    /// Where its processors and memory are.
    #[serde(default)]
    pub numa_policy: NumaPolicy,
    /// Memory in MiB.
    #[serde(rename = "memoryMiB")]
    #[schemars(range(min = 16, max = 67_108_864))]
    pub memory_mib: i64,
    /// Size of the pages its memory is made of. Absent: the ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepages: Option<Hugepages>,
    /// What starts it, until the BMC is told otherwise.
    #[serde(default)]
    pub firmware: Firmware,

    /// Disks, the root disk first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub disks: Vec<NodeDisk>,
    /// Network interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub interfaces: Vec<NodeInterface>,
    /// The interface by which it boots from the network. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub boot_interface: Option<String>,

    /// Whether it has a VNC display, on the node's loopback address. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vnc: bool,
    /// Domain XML laid over what is generated: elements of the same name and key are replaced, others added. UUID, name,
    /// metadata, processors, memory, disks and interfaces stay what this entry says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub xml_overlay: Option<String>,
}

/// A network interface of a virtual machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeInterface {
    /// Name, unique in its virtual machine.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Network of this node that it is in.
    #[schemars(length(min = 1, max = 50))]
    pub network: String,
    /// Its MAC address, in lower case with colons, unique over all nodes and pools.
    #[schemars(regex(pattern = r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"))]
    pub mac: String,
    /// Its address, which DHCP gives it and nobody else has.
    #[schemars(with = "Option<String>", length(max = 45))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
    /// Largest packet. Absent: that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65535))]
    pub mtu: Option<i32>,
}

/// How a virtual machine gets its processors. `Pinned`, the default: each has a core of the node for itself, hyper-thread
/// siblings together. `Shared`: they run on all cores that nobody has for itself.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuPolicy {
    /// Cores for itself.
    #[default]
    Pinned,
    /// Cores with others.
    Shared,
}

/// Where processors and memory of a virtual machine are. `Strict`, the default: in one cell of the node, or it does not
/// start. `Preferred`: in one cell if there is room in one. `Spread`: wherever there is room.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumaPolicy {
    /// In one cell.
    #[default]
    Strict,
    /// In one cell, if one has room.
    Preferred,
    /// Anywhere.
    Spread,
}

/// Size of huge pages.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hugepages {
    /// 2 MiB.
    #[serde(rename = "2Mi")]
    Mi2,
    /// 1 GiB.
    #[serde(rename = "1Gi")]
    Gi1,
}

impl Hugepages {
    /// Size of one page in KiB.
    pub fn kib(self) -> u64 {
        match self {
            Self::Mi2 => 2 << 10,
            Self::Gi1 => 1 << 20,
        }
    }
}

/// What starts a virtual machine.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmware {
    /// The firmware of PCs before UEFI.
    #[default]
    #[serde(rename = "BIOS")]
    Bios,
    /// UEFI.
    #[serde(rename = "UEFI")]
    Uefi,
}
