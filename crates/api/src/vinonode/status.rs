//! What the agent of a node found and did.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What the agent found and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VinoNodeStatus {
    /// The spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The highest `spec.serial` that the agent of this machine has ever seen; kept on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    /// `Ready` and one condition for each concern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The machine on which the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineStatus>,
    /// Version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub agent_version: Option<String>,
    /// Whether guests run with KVM; tried, not guessed. `false`: they are emulated, slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerated: Option<bool>,
    /// What the node has, and has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,

    /// Networks that exist or are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub networks: Vec<NetworkStatus>,
    /// Storage pools that exist or are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub pools: Vec<PoolStatus>,
    /// Virtual machines of ours that exist or are asked for, those that the spec no longer has included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["uuid".into()]))]
    pub vms: Vec<VmStatus>,
    /// The Redfish service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<BmcStatus>,

    /// `present/asked` virtual machines, for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub present: Option<String>,
}

/// The machine on which the agent runs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// As in `/etc/machine-id`.
    #[serde(rename = "machineID")]
    #[schemars(length(max = 64))]
    pub machine_id: String,
    /// What the marker file of the default pool says. Absent: there is none, though the spec names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub marker: Option<String>,
    /// Changes with every start of the machine.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub boot_id: Option<String>,
}

/// What the node has, and has left.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// CPUs that virtual machines may have, those excluded not counted.
    pub cpus: i32,
    /// Of those, the ones that none has for itself.
    pub free_cpus: i32,
    /// Memory in MiB, huge pages included.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: i64,
    /// Of that, what none has.
    #[serde(rename = "freeMemoryMiB")]
    pub free_memory_mib: i64,
    /// The same for each cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub cells: Vec<CellStatus>,
}

/// One NUMA cell.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CellStatus {
    /// Its number.
    pub id: i32,
    /// CPUs that virtual machines may have, such as `2-15,18-31`.
    #[schemars(length(max = 1024))]
    pub cpus: String,
    /// Of those, the ones that none has for itself.
    #[schemars(length(max = 1024))]
    pub free_cpus: String,
    /// Memory in MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: i64,
    /// Of that, what none has.
    #[serde(rename = "freeMemoryMiB")]
    pub free_memory_mib: i64,
    /// Huge pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub hugepages: Vec<HugepageStatus>,
}

/// Huge pages of one size in one cell.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HugepageStatus {
    /// Size of one in KiB.
    #[serde(rename = "sizeKiB")]
    pub size_kib: i64,
    /// How many there are.
    pub total: i64,
    /// How many are free.
    pub free: i64,
}

/// How far something is that shall be on the node, or shall go. `Pending`: being made, changed or taken away. `Present`: as
/// asked. `Absent`: proved not to be there. `Failed`: the message says why. `DiskLost` (virtual machines only): a disk
/// that was there is missing, and it is not started. `Foreign`: something of that name is there and is not ours.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Being made, changed or taken away.
    #[default]
    Pending,
    /// As asked.
    Present,
    /// Proved not to be there.
    Absent,
    /// The message says why.
    Failed,
    /// A disk that was there is missing.
    DiskLost,
    /// Something of that name is there and is not ours.
    Foreign,
}

/// A network as it is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// Whether it is one layer 2 over several nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// For people: what is wrong, or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

/// A storage pool as it is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<i64>,
    /// Of that, what is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<i64>,
    /// For people: what is wrong, or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

/// A virtual machine as it is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct VmStatus {
    /// Its UUID.
    #[schemars(length(max = 36))]
    pub uuid: String,
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// How far it is. `Absent`: domain, volumes, logins and log are gone, and this UUID never comes back.
    pub phase: Phase,
    /// Whether it runs. Absent: there is no domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// CPUs of the node that it has, such as `2-3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub cpus: Option<String>,
    /// The cells its memory is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub cells: Vec<i32>,
    /// Addresses it was seen with, beside those of its entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 32), inner(length(max = 45)))]
    pub addresses: Vec<IpAddr>,
    /// Its disks. A disk that was once `Created` is never made again by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub disks: Vec<DiskStatus>,
    /// What takes effect at its next start, in words, such as `vcpus 2 to 4`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 253)))]
    pub at_next_start: Vec<String>,
    /// Why it is not as asked: CamelCase, from a closed set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

/// Whether a virtual machine runs.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// It runs.
    On,
    /// It does not.
    Off,
    /// It is held.
    Paused,
    /// It stopped by a fault of its own.
    Crashed,
}

/// A disk of a virtual machine as it is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DiskStatus {
    /// Its name.
    #[schemars(length(max = 40))]
    pub name: String,
    /// How far it is.
    pub phase: DiskPhase,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
}

/// How far a disk is.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskPhase {
    /// Being made.
    #[default]
    Pending,
    /// It was made.
    Created,
    /// It was made, and is missing.
    Lost,
}

/// The Redfish service of a node.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BmcStatus {
    /// `address:port` on which it listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub listening: Vec<String>,
    /// Request (PEM, PKCS #10) for the certificate of the key that was made on this node and never leaves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub certificate_request: Option<String>,
    /// SHA-256 of the certificate that is served, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub certificate_sha256: Option<String>,
    /// resourceVersion of the Secret whose logins are in force; sessions of all others have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub logins_version: Option<String>,
}
