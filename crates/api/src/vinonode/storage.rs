//! Storage pools and disks of a node.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::State;

/// A directory in which disks are.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// Name of the libvirt storage pool; `vino-default` has the marker file of the machine.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether it shall be there. A pool that goes leaves its directory, with whatever is not ours.
    #[serde(default)]
    pub state: State,
    /// The directory on the node.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
}

/// A disk of a virtual machine, made once, together with it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeDisk {
    /// Name, unique in its virtual machine. The root disk is called `root` and is the first.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// The pool it is in.
    #[schemars(length(min = 1, max = 63))]
    pub pool: String,
    /// Name of its volume in the pool.
    #[schemars(length(min = 1, max = 253))]
    pub volume: String,
    /// Size in bytes. A disk grows to it at once, or at the next start of the virtual machine, and never shrinks.
    #[schemars(range(min = 1_048_576_i64, max = 70_368_744_177_664_i64))]
    pub size_bytes: i64,
    /// How it is stored.
    #[serde(default)]
    pub format: DiskFormat,
    /// Whether space is taken only when it is written to. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// What is on it at first. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// How a disk is stored.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// Allows backing files and snapshots.
    #[default]
    Qcow2,
    /// Byte by byte.
    Raw,
}

/// A disk image.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where it is fetched from, by http or https: an image in qcow2 or raw format.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^https?://[^\s]+$"))]
    pub url: String,
    /// Its SHA-256 in hexadecimal digits. Absent: it is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: Option<String>,
    /// How a disk comes from it. Default: `Copy`.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub usage: Option<ImageUse>,
}

/// How a disk comes from an image. `Copy`, the default: each disk is a copy. `Backing`: the disks of a node share one copy
/// of the image and hold only what differs from it.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageUse {
    /// Each disk is a copy.
    #[default]
    Copy,
    /// One copy for all disks of the node, which hold only what differs from it.
    Backing,
}
