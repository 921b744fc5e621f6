//! Networks of a node.

use std::net::IpAddr;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::State;

/// One network of a node, with everything that is this node's own in it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetwork {
    /// Name: that of the network in the Vino and of the libvirt network.
    #[schemars(length(min = 1, max = 50))]
    pub name: String,
    /// Whether it shall be there.
    #[serde(default)]
    pub state: State,
    /// How it reaches what is outside.
    #[serde(default)]
    pub mode: NetworkMode,
    /// The Linux bridge: ours, or with mode `Bridge` one that is there already and is only used.
    #[schemars(length(min = 1, max = 15))]
    pub bridge: String,
    /// Network interface of the node that is made a port of the bridge: the network is then joined with those of all nodes
    /// that have such an interface. One with an address of the node or a default route is refused. Never with mode
    /// `Bridge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub physical_interface: Option<String>,
    /// Largest packet. Absent: what the bridge has by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65535))]
    pub mtu: Option<i32>,
    /// The subnet in its canonical form, IPv4 or IPv6, no host bits set.
    #[schemars(length(min = 1, max = 49))]
    pub subnet: String,
    /// Address of this node in it, on the bridge. Absent with mode `Bridge`: the bridge is somebody else's.
    #[serde(default, rename = "bridgeIP", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 45))]
    pub bridge_ip: Option<IpAddr>,
    /// MAC address of the bridge. Absent with mode `Bridge`.
    #[serde(default, rename = "bridgeMAC", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 17))]
    pub bridge_mac: Option<String>,
    /// Who answers DHCP.
    #[serde(default)]
    pub dhcp: Dhcp,
    /// Addresses that this node, and no other, may hand out beside those of its virtual machines. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp_range: Option<AddressRange>,
    /// Name servers that DHCP announces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 8), inner(length(max = 45)))]
    pub dns_servers: Vec<IpAddr>,
    /// Routes that DHCP announces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub routes: Vec<Route>,
    /// What DHCP tells machines that boot by network. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pxe: Option<Pxe>,
}

impl NodeNetwork {
    /// Whether it is one layer 2 over several nodes.
    pub fn is_joined(&self) -> bool {
        self.physical_interface.is_some() || self.mode == NetworkMode::Bridge
    }
}

/// How a network reaches what is outside. `Routed`, the default: the node forwards, and others know the way back. `NAT`:
/// the node forwards under its own address. `Isolated`: it does not. `Bridge`: an existing bridge is used, and addresses,
/// rules and forwarding are its owner's.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkMode {
    /// The node forwards, and others know the way back.
    #[default]
    Routed,
    /// The node forwards under its own address.
    #[serde(rename = "NAT")]
    Nat,
    /// Nothing is forwarded.
    Isolated,
    /// An existing bridge.
    Bridge,
}

/// Who answers DHCP in a network. `Node`, the default: each node its own virtual machines, by their leases, and rules keep
/// requests and answers on the node. `Outside`: a server outside, and nothing is kept from it. `Off`: nobody.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dhcp {
    /// Each node its own virtual machines.
    #[default]
    Node,
    /// A server outside of the nodes.
    Outside,
    /// Nobody, and requests do not leave the node.
    Off,
}

/// An inclusive range of addresses.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct AddressRange {
    /// First address.
    #[schemars(with = "String", length(max = 45))]
    pub start: IpAddr,
    /// Last address.
    #[schemars(with = "String", length(max = 45))]
    pub stop: IpAddr,
}

/// A route.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Where it leads, in CIDR form.
    #[schemars(length(min = 1, max = 49))]
    pub to: String,
    /// By which neighbour.
    #[schemars(with = "String", length(max = 45))]
    pub gateway: IpAddr,
}

/// What DHCP tells machines that boot by network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Pxe {
    /// URL of the boot file for clients that load by http (iPXE). Absent: none.
    #[serde(default, rename = "bootURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub boot_url: Option<String>,
    /// Directory of the node that is served by TFTP. Absent: no TFTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub tftp_root: Option<String>,
    /// Boot file in that directory, or on `tftp_server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub boot_file: Option<String>,
    /// TFTP server. Absent: this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tftp_server: Option<String>,
}
