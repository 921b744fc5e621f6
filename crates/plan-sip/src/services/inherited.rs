//! Addresses of hosts as load balancers and jump hosts that are already there name them.
//!
//! The original operator kept the addresses of a host nowhere but in what it made: `server <host> <address>:<port>` in its
//! `haproxy.cfg`, `hostAliases` in the Deployment of its jump host. Where Metal3's provider has cleared the host's network
//! data since, they are found nowhere else.

use std::{collections::BTreeMap, net::IpAddr};

use api::sipcluster::{Common, SIPClusterSpec};
use serde_json::Value;

use super::{Facts, Kind, Owned, names};
use crate::network::Addresses;

/// Addresses by name of the BareMetalHost, by the network that the entry names. Where two entries do not agree about a
/// network of a host, neither counts.
pub fn inherited(
    sip: &str,
    spec: &SIPClusterSpec,
    objects: &BTreeMap<(Kind, String), Owned>,
) -> BTreeMap<String, Addresses> {
    let mut found: BTreeMap<(String, String), Option<IpAddr>> = BTreeMap::new();
    let mut add = |common: &Common, host: &str, address: IpAddr| {
        let Some(network) = common.node_interface_id.as_deref().filter(|network| !network.is_empty()) else { return };
        let known = found.entry((host.to_owned(), network.to_owned())).or_insert(Some(address));
        *known = known.filter(|known| *known == address);
    };
    let services = &spec.services;
    let control_plane = services.load_balancer_control_plane.iter().map(|it| &it.common);
    let control_plane = control_plane.map(|it| (names::load_balancer_control_plane(sip, it.name.as_deref()), it));
    let worker = services.load_balancer_worker.iter().map(|it| &it.common);
    let worker = worker.map(|it| (names::load_balancer_worker(sip, it.name.as_deref()), it));
    for (name, common) in control_plane.chain(worker) {
        let Some(Facts::Secret { data }) = objects.get(&(Kind::Secret, name)).map(|owned| &owned.facts) else {
            continue;
        };
        let config = data.get("haproxy.cfg").map(|text| String::from_utf8_lossy(text));
        for (host, address) in config.iter().flat_map(|config| config.lines().filter_map(server)) {
            add(common, host, address);
        }
    }
    for entry in &services.jump_host {
        let name = names::jump_host(sip, entry.common.name.as_deref());
        let live = objects.get(&(Kind::Deployment, name)).and_then(|owned| owned.live.as_deref());
        let aliases = live.and_then(|live| live.pointer("/spec/template/spec/hostAliases")).and_then(Value::as_array);
        for alias in aliases.into_iter().flatten() {
            let Some(address) = alias["ip"].as_str().and_then(|ip| ip.parse().ok()) else { continue };
            for host in alias["hostnames"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                add(&entry.common, host, address);
            }
        }
    }
    let mut hosts: BTreeMap<String, Addresses> = BTreeMap::new();
    for ((host, network), address) in found {
        let Some(address) = address else { continue };
        hosts.entry(host).or_default().insert(network, address.to_string());
    }
    hosts
}

/// Name and address in a line `server <name> <address>:<port> ...`.
fn server(line: &str) -> Option<(&str, IpAddr)> {
    let mut words = line.split_ascii_whitespace();
    let (Some("server"), Some(name), Some(at)) = (words.next(), words.next(), words.next()) else { return None };
    let (address, _port) = at.rsplit_once(':')?;
    Some((name, address.trim_start_matches('[').trim_end_matches(']').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::sipcluster::{JumpHost, LoadBalancerControlPlane, LoadBalancerWorker};
    use serde_json::json;

    use super::*;
    use crate::services::carried_out::texts;

    fn common(network: &str) -> Common {
        Common { node_interface_id: Some(network.to_owned()), ..Common::default() }
    }

    fn secret(config: &str) -> Owned {
        Owned { facts: Facts::Secret { data: texts(&[("haproxy.cfg", config)]) }, ..Owned::default() }
    }

    fn of(control_plane: &str, worker: &str, aliases: &Value) -> BTreeMap<String, Addresses> {
        let mut spec = SIPClusterSpec::default();
        let (api, jump) = (common("oam"), common("pxe"));
        spec.services.load_balancer_control_plane.push(LoadBalancerControlPlane { common: api, node_port: 30_000 });
        spec.services.load_balancer_worker.push(LoadBalancerWorker { common: common("oam"), ..Default::default() });
        spec.services.jump_host.push(JumpHost { common: jump, ..JumpHost::default() });
        let pod = json!({ "spec": { "template": { "spec": { "hostAliases": aliases } } } });
        let objects = BTreeMap::from([
            ((Kind::Secret, "loadbalancer-controlplane-blue".to_owned()), secret(control_plane)),
            ((Kind::Secret, "loadbalancer-worker-blue".to_owned()), secret(worker)),
            ((Kind::Deployment, "jumphost-blue".to_owned()), Owned { live: Some(Arc::new(pod)), ..Owned::default() }),
        ]);
        inherited("blue", &spec, &objects)
    }

    #[test]
    fn configurations_and_aliases_of_the_original_name_addresses() {
        let found = of(
            "backend api\n  server n1 192.0.2.1:6443 check\n  server n2 [2001:db8::2]:6443\n  # server n3 192.0.2.3:1\n",
            "backend a\n  server n4 192.0.2.4:30001\nbackend b\n  server n4 192.0.2.4:30002\n",
            &json!([{ "ip": "172.16.0.1", "hostnames": ["n1"] }, { "ip": "no address", "hostnames": ["n2"] }]),
        );
        let text: Vec<String> = found
            .iter()
            .flat_map(|(host, addresses)| addresses.iter().map(move |(network, at)| format!("{host} {network} {at}")))
            .collect();
        assert_eq!(text, ["n1 oam 192.0.2.1", "n1 pxe 172.16.0.1", "n2 oam 2001:db8::2", "n4 oam 192.0.2.4"]);
    }

    #[test]
    fn of_two_that_do_not_agree_neither_counts() {
        let found = of("server n1 192.0.2.1:6443\n", "server n1 192.0.2.9:30001\n", &Value::Null);
        assert!(found.is_empty(), "{found:?}");
    }
}
