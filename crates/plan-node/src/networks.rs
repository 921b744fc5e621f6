//! Networks: made, kept, removed; an interface that the node lives on is never taken.

use std::collections::BTreeSet;

use api::vinonode::{Dhcp, NetworkMode};
use base::names::is_dns_label;
use hypervisor::{DhcpHost, DhcpSpec, Forward, Network, NetworkMark, NetworkSpec, NicSource};

use crate::{
    plan::{Object, Plan, Reason, Step},
    seen::Seen,
    want::{Want, WantDhcp, WantNetwork},
};

pub(crate) fn plan(want: &Want, seen: &Seen, plan: &mut Plan) {
    for (name, network) in want.networks.iter().filter(|(_, network)| network.present) {
        if let Err((reason, message)) = make(want, seen, name, network, plan) {
            plan.trouble(Object::Network(name.clone()), reason, message);
        }
    }
}

fn make(want: &Want, seen: &Seen, name: &str, network: &WantNetwork, plan: &mut Plan) -> Result<(), (Reason, String)> {
    let there = ours(want, seen, name)?;
    interfaces(seen, network, there.is_some_and(|there| there.running.is_some()))?;
    let spec = spec(want, name, network);
    match there {
        None => {
            plan.steps.push(Step::DefineNetwork(Box::new(spec)));
            plan.steps.push(Step::StartNetwork(name.to_owned()));
        }
        Some(Network { spec: defined, running, .. }) => keep(seen, &spec, defined, running.as_ref(), plan)?,
    }
    if let Some(physical) = &network.physical
        && seen.interfaces.get(physical).and_then(|port| port.master.as_ref()) != Some(&network.bridge)
    {
        plan.steps.push(Step::PlugInterface { interface: physical.clone(), bridge: network.bridge.clone() });
    }
    Ok(())
}

/// The network of that name, if there is one; it has to be ours.
fn ours<'a>(want: &Want, seen: &'a Seen, name: &str) -> Result<Option<&'a Network>, (Reason, String)> {
    let Some(there) = seen.networks.get(name) else { return Ok(None) };
    match &there.spec.mark {
        Some(mark) if mark.owner == want.owner => Ok(Some(there)),
        Some(mark) => Err((Reason::Foreign, format!("a network of that name belongs to {}", mark.owner))),
        None => Err((Reason::Foreign, "a network of that name is there and is not ours".to_owned())),
    }
}

/// Whether the interfaces of the machine allow it.
fn interfaces(seen: &Seen, network: &WantNetwork, runs: bool) -> Result<(), (Reason, String)> {
    let bridge = seen.interfaces.get(&network.bridge);
    if network.mode == NetworkMode::Bridge {
        return match bridge {
            Some(found) if found.bridge => Ok(()),
            Some(_) => Err((Reason::InterfaceMissing, format!("{} is there and is no bridge", network.bridge))),
            None => Err((Reason::InterfaceMissing, format!("there is no bridge {}", network.bridge))),
        };
    }
    if bridge.is_some() && !runs {
        let message = format!("an interface {} is there, and is not ours to use as the bridge", network.bridge);
        return Err((Reason::Foreign, message));
    }
    if let Some(physical) = &network.physical {
        let Some(found) = seen.interfaces.get(physical) else {
            return Err((Reason::InterfaceMissing, format!("there is no interface {physical}")));
        };
        // A node that gave away the interface it lives on would never be heard of again.
        if found.default_route {
            return Err((Reason::InterfaceInUse, format!("a default route of the node leads over {physical}")));
        }
        if let Some(address) = found.addresses.first() {
            return Err((Reason::InterfaceInUse, format!("{physical} carries the node's address {address}")));
        }
        if let Some(master) = found.master.as_ref().filter(|master| **master != network.bridge) {
            return Err((Reason::InterfaceInUse, format!("{physical} is a port of {master}")));
        }
    }
    for (name, interface) in seen.interfaces.iter().filter(|(name, _)| **name != network.bridge) {
        if let Some(address) = interface
            .addresses
            .iter()
            .find(|address| network.subnet.contains(&address.addr()) || address.contains(&network.subnet.network()))
        {
            let message = format!("the node has {address} on {name}: {} would lead elsewhere", network.subnet);
            return Err((Reason::SubnetInUse, message));
        }
    }
    Ok(())
}

/// What an existing network needs.
fn keep(
    seen: &Seen,
    spec: &NetworkSpec,
    defined: &NetworkSpec,
    running: Option<&NetworkSpec>,
    plan: &mut Plan,
) -> Result<(), (Reason, String)> {
    let name = &spec.name;
    // Whose it is was looked at before; a MAC address that nobody asked for is the hypervisor's.
    let stale = |there: &NetworkSpec| {
        *there != NetworkSpec { mark: there.mark.clone(), mac: spec.mac.or(there.mac), ..spec.clone() }
    };
    let stale_but_for_hosts = |there: &NetworkSpec| {
        let mut there = there.clone();
        if let (Some(dhcp), Some(wanted)) = (&mut there.dhcp, &spec.dhcp) {
            // Hosts without an address are options of the server, which change only with the definition.
            let fixed = |host: &&DhcpHost| host.ip.is_some();
            let mut hosts: Vec<DhcpHost> = wanted.hosts.iter().filter(fixed).cloned().collect();
            hosts.extend(dhcp.hosts.iter().filter(|host| host.ip.is_none()).cloned());
            dhcp.hosts = hosts;
        }
        stale(&there)
    };
    if stale_but_for_hosts(defined) {
        plan.steps.push(Step::DefineNetwork(Box::new(spec.clone())));
    }
    let Some(running) = running else {
        if !stale_but_for_hosts(defined) && stale(defined) {
            plan.steps.push(Step::DefineNetwork(Box::new(spec.clone())));
        }
        plan.steps.push(Step::StartNetwork(name.clone()));
        return Ok(());
    };
    if stale_but_for_hosts(running) {
        let plugged = seen.domains.values().find(|domain| {
            domain
                .running
                .as_ref()
                .is_some_and(|running| running.nics.iter().any(|nic| nic.source == NicSource::Network(name.clone())))
        });
        return match plugged {
            None => {
                plan.steps.push(Step::StopNetwork(name.clone()));
                plan.steps.push(Step::StartNetwork(name.clone()));
                Ok(())
            }
            Some(guest) => {
                let message = format!(
                    "it changes when no guest is plugged into it any more, or the node starts anew: {} is",
                    guest.spec.name
                );
                Err((Reason::NetworkAtNextStart, message))
            }
        };
    }
    if stale(running) || (stale(defined) && !stale_but_for_hosts(defined)) {
        let hosts = spec.dhcp.as_ref().map(|dhcp| dhcp.hosts.clone()).unwrap_or_default();
        plan.steps.push(Step::SetDhcpHosts { network: name.clone(), hosts });
    }
    Ok(())
}

/// The network as it shall be.
fn spec(want: &Want, name: &str, network: &WantNetwork) -> NetworkSpec {
    let WantNetwork { present: _, mode, bridge, mac, physical: _, mtu, subnet, address, dhcp } = network;
    let WantDhcp { server, range, dns_servers, routes, boot, tftp_root } = dhcp;
    let mark = Some(NetworkMark { owner: want.owner.clone(), serial: want.serial });
    let mut spec = NetworkSpec { name: name.to_owned(), mark, bridge: bridge.clone(), ..NetworkSpec::default() };
    if *mode == NetworkMode::Bridge {
        spec.forward = Forward::HostBridge;
        return spec;
    }
    spec.mac = *mac;
    spec.mtu = *mtu;
    spec.address = *address;
    if let Some(address) = address.filter(|_| *server == Dhcp::Node) {
        spec.dns = dns_servers.is_empty();
        let mut routes = routes.clone();
        // A client that is told routes takes no other default (RFC 3442): without this one it would have none.
        let default = |to: &ipnet::IpNet| to.prefix_len() == 0;
        if !routes.is_empty() && *mode != NetworkMode::Isolated && !routes.iter().any(|(to, _)| default(to)) {
            let anywhere = if subnet.addr().is_ipv6() { "::/0" } else { "0.0.0.0/0" };
            routes.push((anywhere.parse().expect("a constant"), address.addr()));
        }
        if subnet.addr().is_ipv6() {
            // DHCPv6 announces none.
            routes.clear();
        }
        let family = |ip: &std::net::IpAddr| ip.is_ipv6() == subnet.addr().is_ipv6();
        spec.dhcp = Some(DhcpSpec {
            range: *range,
            hosts: hosts(want, name),
            dns_servers: dns_servers.iter().copied().filter(family).collect(),
            routes,
            boot: boot.clone(),
        });
        spec.tftp_root.clone_from(tftp_root);
    }
    spec
}

/// Who is answered: the network cards of this node's own machines, and nobody else's.
fn hosts(want: &Want, network: &str) -> Vec<DhcpHost> {
    let mut hosts = Vec::new();
    for vm in want.vms.values().filter(|vm| vm.present) {
        let nics = vm.nics.iter().filter(|nic| nic.network == network);
        for (at, nic) in nics.enumerate() {
            // A name leads to one address.
            let name = (at == 0 && nic.ip.is_some() && is_dns_label(&vm.name)).then(|| vm.name.clone());
            hosts.push(DhcpHost { mac: nic.mac, ip: nic.ip, name });
        }
    }
    // In the order in which they are read back: those with an address first.
    hosts.sort_by_key(|host| (host.ip.is_none(), host.mac));
    let mut seen = BTreeSet::new();
    hosts.retain(|host| seen.insert(host.mac));
    hosts
}

pub(crate) fn remove(want: &Want, seen: &Seen, plan: &mut Plan) {
    for (name, _) in want.networks.iter().filter(|(_, network)| !network.present) {
        // Something of somebody else: ours is gone.
        let Ok(Some(there)) = ours(want, seen, name) else { continue };
        let uses =
            |spec: &hypervisor::DomainSpec| spec.nics.iter().any(|nic| nic.source == NicSource::Network(name.clone()));
        let user = seen.domains.values().find(|domain| {
            !plan.removes(domain.spec.uuid) && (uses(&domain.spec) || domain.running.as_ref().is_some_and(uses))
        });
        if let Some(user) = user {
            let message = format!("it shall go, and {} is plugged into it", user.spec.name);
            plan.trouble(Object::Network(name.clone()), Reason::InUse, message);
            continue;
        }
        if there.running.is_some() {
            plan.steps.push(Step::StopNetwork(name.clone()));
        }
        plan.steps.push(Step::UndefineNetwork(name.clone()));
    }
}
