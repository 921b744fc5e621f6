//! Groups of virtual machines.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::RootDisk;
use crate::vinonode::{DiskFormat, Image};

/// Virtual machines that are alike. Every node gets `count` of them, called `<name>-0`, `<name>-1`, ...
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.bootInterfaceName) || self.bootInterfaceName == '' || (has(self.networkInterfaces) && self.networkInterfaces.exists(i, i.name == self.bootInterfaceName))")
        .message("bootInterfaceName names none of networkInterfaces")
)]
pub struct Group {
    /// Name of the group: part of the names of its virtual machines, and their flavor where `flavor` names none.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// How many on each node. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 256))]
    pub count: Option<i32>,
    /// Labels for their BareMetalHosts. They override those that are copied from the node or set by ViNO.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"}))]
    #[x_kube(validation = Rule::new("self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))").message("every key must be a label key, such as vino.airshipit.org/flavor"))]
    pub bmh_labels: BTreeMap<String, String>,
    /// Secret with the template of their network data (Go template, key `template`). Absent: they get no network data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data_template: Option<NamespacedName>,
    /// Their network interfaces, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub network_interfaces: Vec<Interface>,
    /// The interface by which they boot from the network. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub boot_interface_name: Option<String>,
    /// The disk on which Metal3 installs. Absent: `/dev/vda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub root_device_name: Option<String>,
    /// Whether they have a VNC display, on the node's loopback address. Default: no.
    #[serde(default, rename = "enableVNC", skip_serializing_if = "Option::is_none")]
    pub enable_vnc: Option<bool>,
    /// Disks beside the root disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 15))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub disk_drives: Vec<DiskDrive>,
    /// Accepted for manifests of the original, and without effect: flavors say what differs, with an `xmlOverlay` where
    /// fields do not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libvirt_template: Option<NamespacedName>,

    /// Their flavor. Absent: the one called as the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub flavor: Option<String>,
    /// Their root disk, where it differs from that of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<RootDisk>,
}

/// An object by namespace and name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedName {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its namespace. Absent: that of the Vino.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
}

/// A network interface.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Name, for the network-data template.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// `network`, or free text for the network-data template.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// The network it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub network: Option<String>,
    /// Largest packet. Absent: that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub mtu: Option<i32>,
    /// Free keys and values for the network-data template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 1024}))]
    pub options: BTreeMap<String, String>,
}

/// A disk beside the root disk. It is made with its virtual machine and goes with it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DiskDrive {
    /// Name, unique in the group; not `root`.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    #[x_kube(validation = Rule::new("self != 'root'").message("root is the name of the root disk"))]
    pub name: String,
    /// How it is stored: `qcow2` or `raw`. Absent or anything else: `qcow2`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// Directory on the nodes in which it is made. Absent: that of pool `vino-default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^(/[0-9A-Za-z/._-]*)?$"))]
    pub path: Option<String>,
    /// Size and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<DiskOptions>,
    /// What is on it at first. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

impl DiskDrive {
    /// How it is stored.
    pub fn format(&self) -> DiskFormat {
        match self.kind.as_deref() {
            Some("raw") => DiskFormat::Raw,
            _ => DiskFormat::Qcow2,
        }
    }
}

/// Size of a disk and more.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DiskOptions {
    /// Size in GiB. Absent: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gb: Option<i32>,
    /// Whether space is taken only when it is written to. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse: Option<bool>,
}
