//! IPPool: the ledger of one subnet, which says who has which address.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Who has which address of one subnet. Lists are replaced as a whole.
#[allow(clippy::duplicated_attributes, reason = "each printer column has a type")]
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "airship.airshipit.org",
    version = "v1",
    kind = "IPPool",
    plural = "ippools",
    singular = "ippool",
    shortname = "vpool",
    category = "slipway",
    namespaced,
    status = "IPPoolStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An IPPool is the ledger of one subnet: which addresses may be leased, and who has which IP and MAC address. It is written by the manager; those in the manager's namespace count.",
    printcolumn(name = "Subnet", type_ = "string", json_path = ".spec.subnet"),
    printcolumn(name = "Next MAC", type_ = "string", json_path = ".spec.nextMAC"),
    printcolumn(name = "Serial", type_ = "integer", json_path = ".spec.serial", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct IPPoolSpec {
    /// The subnet, IPv4 or IPv6; host bits may be set.
    #[schemars(length(max = 49))]
    pub subnet: String,
    /// Ranges of addresses that may be leased. They grow; an address that is leased stays in one.
    #[schemars(length(max = 256))]
    pub ranges: Vec<Range>,
    /// Leases.
    #[serde(rename = "allocatedIPs")]
    #[schemars(length(max = 16384))]
    pub allocated_ips: Vec<Lease>,
    /// Ranges of addresses that DHCP servers of nodes hand out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16384))]
    pub allocated_ranges: Vec<NodeRange>,
    /// First MAC address that is leased.
    #[schemars(length(max = 23))]
    pub mac_prefix: String,
    /// MAC address from which the next one is searched.
    #[serde(rename = "nextMAC")]
    #[schemars(length(max = 23))]
    pub next_mac: String,
    /// Rises with every change of this spec. Absent: a pool of the original operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub serial: Option<i64>,
}

/// Nothing is said there.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct IPPoolStatus {}

/// An inclusive range of addresses.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// First address.
    #[schemars(length(max = 45))]
    pub start: String,
    /// Last address.
    #[schemars(length(max = 45))]
    pub stop: String,
}

/// One lease: an IP address and the MAC address that goes with it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The IP address.
    #[schemars(length(max = 45))]
    pub ip: String,
    /// The MAC address.
    #[schemars(length(max = 23))]
    pub mac: String,
    /// Who has it: `<node>` for the bridge of a node, `<BareMetalHost>/<network>` for the first interface of a virtual
    /// machine in a network, and `<BareMetalHost>/<network>/<interface>` for a further one.
    #[schemars(length(max = 512))]
    pub allocated_to: String,
    /// UUID of the virtual machine. Absent: the lease is that of a bridge, or of the original operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36))]
    pub uuid: Option<String>,
    /// The interface of the virtual machine. Absent: as `uuid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub interface: Option<String>,
    /// uid of the Vino for which it was leased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub vino: Option<String>,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// machineID of a machine that left without being heard and may still run with this address. The lease ends when
    /// that machine's agent says that the virtual machine is gone, or an administrator that the machine is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub lost: Option<String>,
}

/// A range of addresses that the DHCP server of one node hands out.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeRange {
    /// The node; empty: nobody.
    #[schemars(length(max = 253))]
    pub allocated_to: String,
    /// First address.
    #[schemars(length(max = 45))]
    pub start: String,
    /// Last address.
    #[schemars(length(max = 45))]
    pub stop: String,
    /// machineID of a machine that left without being heard and may still hand them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub lost: Option<String>,
}
