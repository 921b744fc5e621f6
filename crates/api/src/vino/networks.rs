//! Networks of a Vino.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::vinonode::{Dhcp, NetworkMode};

/// One network, made on every node of the Vino.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("(has(self.subnet) ? self.subnet : '') == (has(oldSelf.subnet) ? oldSelf.subnet : '')")
        .message("the subnet of a network cannot change, for its addresses are leased; add a network of another name"),
    validation = Rule::new("(has(self.macPrefix) ? self.macPrefix : '') == (has(oldSelf.macPrefix) ? oldSelf.macPrefix : '')")
        .message("the macPrefix of a network cannot change"),
    validation = Rule::new("(has(self.mode) ? self.mode : '') == (has(oldSelf.mode) ? oldSelf.mode : '')")
        .message("the mode of a network cannot change; add a network of another name"),
    validation = Rule::new("!has(self.mode) || self.mode != 'Bridge' || (has(self.bridgeName) && self.bridgeName != '' && !has(self.physicalInterface))")
        .message("mode Bridge uses an existing bridge: bridgeName names it, and physicalInterface is its owner's concern")
)]
pub struct Network {
    /// Name, by which interfaces name it. It is also the id of the network in network data, so the `nodeInterfaceId` of
    /// SIPClusters.
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// The subnet, IPv4 or IPv6, such as `192.168.0.0/20`; host bits may be set. Networks of all Vinos with the same
    /// subnet share one IPPool. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 49))]
    #[x_kube(validation = Rule::new("self == '' || isCIDR(self)").message("is no CIDR such as 192.168.0.0/20"))]
    pub subnet: Option<String>,
    /// First address for nodes and virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)").message("is no IP address"))]
    pub static_allocation_start: Option<String>,
    /// Last address for nodes and virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)").message("is no IP address"))]
    pub static_allocation_stop: Option<String>,
    /// First address that DHCP hands out to others than virtual machines; each node gets a part. Absent: none.
    #[serde(default, rename = "dhcpAllocationStart", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)").message("is no IP address"))]
    pub dhcp_allocation_start: Option<String>,
    /// Last address that DHCP hands out.
    #[serde(default, rename = "dhcpAllocationStop", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)").message("is no IP address"))]
    pub dhcp_allocation_stop: Option<String>,
    /// Each node gets two to the power of this many addresses for DHCP. Absent or 0: 4, so 16 addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32))]
    pub instance_subnet_bit_step: Option<i32>,
    /// First MAC address, such as `06:42:42:00:00:00`. Absent: `02:00:00:00:00:00`. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 17), regex(pattern = r"^([0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5})?$"))]
    pub mac_prefix: Option<String>,
    /// Free text for the network-data template, such as `ipv4`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub kind: Option<String>,
    /// Name servers, for the network-data template and for DHCP.
    #[serde(default, rename = "dns_servers", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 253)))]
    pub dns_servers: Vec<String>,
    /// Routes, for the network-data template and for DHCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub routes: Vec<VinoRoute>,
    /// Network interface of every node that is made a port of the network's bridge: the network is then one over all
    /// nodes. One with an address of the node or a default route is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = r"^[0-9A-Za-z_.-]*$"))]
    pub physical_interface: Option<String>,
    /// Accepted for manifests of the original; `mode` says what it chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub libvirt_template: Option<String>,
    /// The Linux bridge. Absent: `vm-infra-bridge` for the first network that names none, a name made from the network's
    /// for further ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = r"^[0-9A-Za-z_.-]*$"))]
    pub bridge_name: Option<String>,

    /// How it reaches what is outside. Absent: `Routed`. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<NetworkMode>,
    /// Largest packet. Absent: that of the physical interface, else 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65535))]
    pub mtu: Option<i32>,
    /// DHCP. Absent: each node answers its own virtual machines, and those only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp: Option<NetworkDhcp>,
    /// What DHCP tells machines that boot by network, in the place of `pxeBootImageHost` and its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pxe: Option<NetworkPxe>,
}

/// A route. The gateway `$vinobridge` stands for the address of the node in this network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct VinoRoute {
    /// Where it leads, such as `10.0.0.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 49))]
    pub network: Option<String>,
    /// Its mask, such as `255.255.255.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub netmask: Option<String>,
    /// By which neighbour, or `$vinobridge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub gateway: Option<String>,
}

/// DHCP in a network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDhcp {
    /// Who answers. Absent: `Node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Dhcp>,
}

/// What DHCP tells machines that boot by network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPxe {
    /// Server of the boot file. Absent: `pxeBootImageHost`, else the address of the node in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[0-9A-Za-z:._-]+$"))]
    pub host: Option<String>,
    /// Its port. Absent: `pxeBootImageHostPort`, else 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The boot file. Absent: `dualboot.ipxe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[0-9A-Za-z/._-]+$"))]
    pub boot_file: Option<String>,
    /// Directory on every node that is served by TFTP; the boot file is then loaded from there by machines that know no
    /// http. Absent: no TFTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^/[0-9A-Za-z/._-]*$"))]
    pub tftp_root: Option<String>,
}
