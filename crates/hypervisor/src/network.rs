//! Virtual networks: a bridge, an address on it, and who gets which address by DHCP.

use std::net::IpAddr;

use base::Mac;
use ipnet::IpNet;

/// Whose a network is: kept in its definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkMark {
    /// Uid of the owner.
    pub owner: String,
    /// Serial of the spec that it was last made equal to.
    pub serial: i64,
}

/// A virtual network.
///
/// What the hypervisor adds by itself (its UUID, a MAC address where none is given) is not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSpec {
    /// Its name.
    pub name: String,
    /// Whose it is; None: not ours.
    pub mark: Option<NetworkMark>,
    /// What the hypervisor does about forwarding.
    pub forward: Forward,
    /// The Linux bridge, at most 15 bytes.
    pub bridge: String,
    /// MAC address of the bridge; None: any.
    pub mac: Option<Mac>,
    /// Largest packet; None: what bridges have by themselves.
    pub mtu: Option<u32>,
    /// Address of this machine on the bridge, and the length of its subnet's prefix.
    pub address: Option<IpNet>,
    /// Whether names are answered on that address.
    pub dns: bool,
    /// Who gets which address; None: nobody is answered.
    pub dhcp: Option<DhcpSpec>,
    /// Directory of this machine that is served by TFTP.
    pub tftp_root: Option<String>,
}

/// What the hypervisor does about packets that leave a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// Nothing, neither rules nor hindrance: the rules are ours.
    #[default]
    Open,
    /// The bridge is there already and somebody else's: it is used, not made.
    HostBridge,
    /// Anything else (`nat`, `route`, ...; empty: isolated by rules of the hypervisor): not a network of ours.
    Other(String),
}

/// DHCP of a network: only those named here are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DhcpSpec {
    /// First and last address for hosts that have none of their own here.
    pub range: Option<(IpAddr, IpAddr)>,
    /// Who is answered.
    pub hosts: Vec<DhcpHost>,
    /// Name servers to announce; none: this machine's address.
    pub dns_servers: Vec<IpAddr>,
    /// Routes to announce: where to, by which neighbour.
    pub routes: Vec<(IpNet, IpAddr)>,
    /// What machines that boot by network are told.
    pub boot: Option<NetBoot>,
}

/// A network card that DHCP answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DhcpHost {
    /// Its MAC address.
    pub mac: Mac,
    /// Its address; None: one of the range.
    pub ip: Option<IpAddr>,
    /// Its name; None: none is told.
    pub name: Option<String>,
}

/// What machines that boot by network are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetBoot {
    /// The boot file, a path for TFTP or a URL.
    pub file: String,
    /// TFTP server; None: this machine.
    pub server: Option<String>,
}

/// A virtual network as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// As it is defined.
    pub spec: NetworkSpec,
    /// As it runs, where it runs: changes of the definition take effect when it is started anew.
    pub running: Option<NetworkSpec>,
    /// Whether it is started with the hypervisor.
    pub autostart: bool,
}

/// An address that DHCP has given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    /// To which network card.
    pub mac: Mac,
    /// The address.
    pub ip: IpAddr,
}
