//! Our own firewall rules, as values and as the text that loads them: no rule of anybody else is touched.
//!
//! *Forwarding* ([`Rules::iptables`]): libvirt makes no rules (forward mode `open`), so ours let networks reach what their
//! mode says. They are chains of our own, with a jump at the head of FORWARD, INPUT and POSTROUTING: behind them other
//! rules may drop what they like. They accept bridged frames too, which pass through FORWARD where kube-proxy runs
//! (`bridge-nf-call-iptables`).
//!
//! *Bridges* ([`Rules::nft`]): DHCPv4, DHCPv6 and router advertisements neither leave through the physical interface of a
//! network nor come in through it. So on joined networks each node answers its own guests and nobody else's (flaw V17 of
//! the original).

use std::fmt::Write as _;

use ipnet::IpNet;

use crate::{
    plan::{Plan, Step},
    seen::Seen,
    want::{Want, WantNetwork},
};
use api::vinonode::{Dhcp, NetworkMode};

/// The rules for all networks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// In the order of their bridges.
    pub networks: Vec<NetworkRules>,
}

/// The rules for one network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkRules {
    /// Its bridge.
    pub bridge: String,
    /// Its subnet.
    pub subnet: IpNet,
    /// How it reaches what is outside.
    pub mode: FirewallMode,
    /// The interface that joins it with those of other nodes.
    pub physical: Option<String>,
    /// Whether DHCP and router advertisements stay on this node.
    pub keep_dhcp: bool,
    /// Whether this node answers DHCP, names and TFTP.
    pub serves: bool,
}

/// What is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FirewallMode {
    /// Everything, both ways.
    Routed,
    /// What guests began, under the address of the node.
    Nat,
    /// Nothing.
    Isolated,
}

impl Rules {
    /// The rules for these networks. An existing bridge gets none: they are its owner's.
    pub(crate) fn of<'a>(networks: impl Iterator<Item = &'a WantNetwork>) -> Self {
        let mut networks: Vec<NetworkRules> = networks
            .filter_map(|network| {
                let mode = match network.mode {
                    NetworkMode::Routed => FirewallMode::Routed,
                    NetworkMode::Nat => FirewallMode::Nat,
                    NetworkMode::Isolated => FirewallMode::Isolated,
                    NetworkMode::Bridge => return None,
                };
                Some(NetworkRules {
                    bridge: network.bridge.clone(),
                    subnet: network.subnet,
                    mode,
                    physical: network.physical.clone(),
                    keep_dhcp: network.dhcp.server != Dhcp::Outside,
                    serves: network.dhcp.server == Dhcp::Node && network.address.is_some(),
                })
            })
            .collect();
        networks.sort();
        Self { networks }
    }

    /// Chains for `iptables-restore --noflush` (IPv4), or `ip6tables-restore --noflush` (IPv6): ours are emptied and filled,
    /// and nothing else is touched. That the jumps are there is another matter ([`Rules::JUMPS`]).
    pub fn iptables(&self, ipv6: bool) -> String {
        let mut forward = String::new();
        let mut input = String::new();
        let mut nat = String::new();
        let mine = self.networks.iter().filter(|network| network.subnet.addr().is_ipv6() == ipv6);
        for NetworkRules { bridge, subnet, mode, physical: _, keep_dhcp: _, serves } in mine {
            let mut rule = |text: String| {
                let _ = writeln!(forward, "-A VINO-FORWARD {text}");
            };
            rule(format!("-i {bridge} -o {bridge} -j ACCEPT"));
            match mode {
                FirewallMode::Routed => {
                    rule(format!("-i {bridge} -j ACCEPT"));
                    rule(format!("-o {bridge} -j ACCEPT"));
                }
                FirewallMode::Nat => {
                    rule(format!("-i {bridge} -s {subnet} -j ACCEPT"));
                    rule(format!("-o {bridge} -d {subnet} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"));
                    rule(format!("-o {bridge} -j REJECT"));
                    let groups = if ipv6 { "ff00::/8" } else { "224.0.0.0/4" };
                    let _ = writeln!(nat, "-A VINO-POSTROUTING -s {subnet} -d {groups} -j RETURN");
                    let _ = writeln!(nat, "-A VINO-POSTROUTING -s {subnet} ! -d {subnet} -j MASQUERADE");
                }
                FirewallMode::Isolated => {
                    rule(format!("-i {bridge} -j REJECT"));
                    rule(format!("-o {bridge} -j REJECT"));
                }
            }
            if *serves {
                let dhcp = if ipv6 { 547 } else { 67 };
                for (protocol, port) in [("udp", dhcp), ("udp", 53), ("tcp", 53), ("udp", 69)] {
                    let _ = writeln!(input, "-A VINO-INPUT -i {bridge} -p {protocol} --dport {port} -j ACCEPT");
                }
            }
        }
        format!(
            "*filter\n:VINO-FORWARD - [0:0]\n:VINO-INPUT - [0:0]\n{forward}{input}COMMIT\n\
             *nat\n:VINO-POSTROUTING - [0:0]\n{nat}COMMIT\n"
        )
    }

    /// Table, chain, and the chain of ours that it jumps to before anything else.
    pub const JUMPS: [(&'static str, &'static str, &'static str); 3] = [
        ("filter", "FORWARD", "VINO-FORWARD"),
        ("filter", "INPUT", "VINO-INPUT"),
        ("nat", "POSTROUTING", "VINO-POSTROUTING"),
    ];

    /// The script for `nft -f -` that makes our table of the bridge family what it shall be, in one transaction.
    pub fn nft(&self) -> String {
        let kept: Vec<&str> = self
            .networks
            .iter()
            .filter(|network| network.keep_dhcp)
            .filter_map(|network| network.physical.as_deref())
            .collect();
        // Adding it first makes deleting it right whether it was there or not.
        let mut script = "add table bridge vino\ndelete table bridge vino\n".to_owned();
        if kept.is_empty() {
            return script;
        }
        let interfaces = kept.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        script.push_str("table bridge vino {\n");
        for (chain, sides) in
            [("forward", &["iifname", "oifname"][..]), ("input", &["iifname"]), ("output", &["oifname"])]
        {
            let _ = writeln!(script, "  chain {chain} {{\n    type filter hook {chain} priority -250; policy accept;");
            for side in sides {
                let _ = writeln!(script, "    {side} {{ {interfaces} }} ether type ip udp dport {{ 67, 68 }} drop");
                let _ = writeln!(script, "    {side} {{ {interfaces} }} ether type ip6 udp dport {{ 546, 547 }} drop");
                let _ = writeln!(
                    script,
                    "    {side} {{ {interfaces} }} ether type ip6 icmpv6 type {{ nd-router-solicit, nd-router-advert }} drop"
                );
            }
            script.push_str("  }\n");
        }
        script.push_str("}\n");
        script
    }
}

/// Rules for what is there after the networks were planned: they come before guests do, and go after them.
pub(crate) fn plan(want: &Want, seen: &Seen, plan: &mut Plan) {
    let there = want.networks.iter().filter(|(name, network)| {
        let ours = seen.networks.get(*name).and_then(|found| found.spec.mark.as_ref());
        let ours = ours.is_some_and(|mark| mark.owner == want.owner);
        let goes = plan.steps.iter().any(|step| matches!(step, Step::UndefineNetwork(gone) if gone == *name));
        let comes = plan.steps.iter().any(|step| matches!(step, Step::DefineNetwork(spec) if spec.name == **name));
        !goes && (ours || (comes && network.present))
    });
    let rules = Rules::of(there.map(|(_, network)| network));
    if rules != seen.rules {
        // First of all: a network whose bridge comes up finds its rules, and DHCP never leaves the node for a moment.
        plan.steps.insert(0, Step::SetRules(rules));
    }
}
