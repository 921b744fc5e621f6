//! Storage pools and the volumes in them.

use std::path::PathBuf;

/// A storage pool that is a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// The directory; made when the pool is started.
    pub path: String,
}

/// A storage pool as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Name and directory. The directory of a pool that is no directory is empty.
    pub spec: PoolSpec,
    /// Whether it can be used.
    pub active: bool,
    /// Whether it is started with the hypervisor.
    pub autostart: bool,
    /// Size of the file system in bytes; 0 while it is not active.
    pub capacity: u64,
    /// What is free of it, in bytes; 0 while it is not active.
    pub available: u64,
}

/// How the content of a volume is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeFormat {
    /// QEMU's own: sparse, allows backing files.
    #[default]
    Qcow2,
    /// Byte by byte.
    Raw,
}

impl VolumeFormat {
    /// Its name in XML.
    pub fn name(self) -> &'static str {
        match self {
            VolumeFormat::Qcow2 => "qcow2",
            VolumeFormat::Raw => "raw",
        }
    }
}

/// What is in a volume at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumeSource {
    /// Nothing: zeros.
    #[default]
    Blank,
    /// What is in another volume of the same pool.
    CopyOf(String),
    /// What is in another volume of the same pool, which is shared and must stay: only what differs is stored. Needs
    /// [`VolumeFormat::Qcow2`].
    On(String),
    /// What is in a file of this process's file system, which has the volume's format.
    File(PathBuf),
}

/// A volume to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeSpec {
    /// The pool.
    pub pool: String,
    /// Name, unique in the pool; no slash.
    pub name: String,
    /// How it is stored.
    pub format: VolumeFormat,
    /// Size in bytes that a guest sees. A copy has at least the size of what it was copied from.
    pub capacity: u64,
    /// Whether space is taken only when it is written to.
    pub sparse: bool,
    /// What is in it at first.
    pub source: VolumeSource,
}

/// A volume as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its path on the machine.
    pub path: String,
    /// How it is stored; None: in a format we do not use.
    pub format: Option<VolumeFormat>,
    /// Size in bytes that a guest sees.
    pub capacity: u64,
    /// Space it takes, in bytes.
    pub allocation: u64,
    /// Path of the volume it stores only the difference to.
    pub backing: Option<String>,
}
