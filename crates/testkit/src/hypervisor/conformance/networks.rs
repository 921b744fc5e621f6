//! Cases about networks.

use ::hypervisor::{DhcpHost, DhcpSpec, Error, Network, NetworkMark, NetworkSpec};

use super::{Lab, mac};

fn spec(lab: &Lab, case: &str, subnet: u8) -> NetworkSpec {
    NetworkSpec {
        name: format!("case-{case}"),
        mark: lab.can_all().then(|| NetworkMark { owner: "owner".to_owned(), serial: 1 }),
        bridge: format!("case{subnet}"),
        mac: Some(mac(subnet)),
        mtu: Some(1400),
        address: Some(format!("10.254.{subnet}.1/24").parse().expect("an address")),
        dns: false,
        dhcp: Some(DhcpSpec { hosts: vec![host(subnet, 10)], ..DhcpSpec::default() }),
        ..NetworkSpec::default()
    }
}

fn host(subnet: u8, last: u8) -> DhcpHost {
    let ip = Some([10, 254, subnet, last].into());
    DhcpHost { mac: mac(last), ip, name: Some(format!("host-{last}")) }
}

async fn defined(lab: &Lab, spec: &NetworkSpec) -> Network {
    lab.hypervisor.define_network(spec).await.expect("it can be defined");
    found(lab, &spec.name).await.expect("it is there")
}

async fn found(lab: &Lab, name: &str) -> Option<Network> {
    lab.hypervisor.networks().await.expect("a list").found.into_iter().find(|network| network.spec.name == name)
}

async fn gone(lab: &Lab, spec: &NetworkSpec) {
    lab.hypervisor.stop_network(&spec.name).await.expect("it can be stopped");
    lab.hypervisor.undefine_network(&spec.name).await.expect("it can be undefined");
    assert_eq!(found(lab, &spec.name).await, None);
}

pub(super) async fn a_network_is_as_it_was_asked_for(lab: &Lab) {
    let spec = spec(lab, "net-asked", 1);
    let network = defined(lab, &spec).await;
    assert_eq!((network.spec, network.running, network.autostart), (spec.clone(), None, true));
    assert_eq!(defined(lab, &spec).await.spec, spec, "and again");
    gone(lab, &spec).await;
}

pub(super) async fn it_starts_stops_and_goes(lab: &Lab) {
    let spec = spec(lab, "net-starts", 2);
    defined(lab, &spec).await;
    for _ in 0..2 {
        lab.hypervisor.start_network(&spec.name).await.expect("it starts, and stays started");
    }
    let network = found(lab, &spec.name).await.expect("it is there");
    assert_eq!(network.running, Some(spec.clone()));
    let error = lab.hypervisor.undefine_network(&spec.name).await.expect_err("it runs");
    assert!(matches!(error, Error::WrongState { .. }), "{error}");
    for _ in 0..2 {
        lab.hypervisor.stop_network(&spec.name).await.expect("it stops, and stays stopped");
    }
    assert_eq!(found(lab, &spec.name).await.expect("it is there").running, None);
    gone(lab, &spec).await;
}

pub(super) async fn dhcp_hosts_change_while_it_runs(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let spec = spec(lab, "net-hosts", 3);
    defined(lab, &spec).await;
    lab.hypervisor.start_network(&spec.name).await.expect("it starts");
    for hosts in [vec![host(3, 10), host(3, 11)], vec![host(3, 12)], vec![], vec![host(3, 10)]] {
        lab.hypervisor.set_dhcp_hosts(&spec.name, &hosts).await.expect("hosts");
        let network = found(lab, &spec.name).await.expect("it is there");
        for now in [network.spec, network.running.expect("it runs")] {
            let mut now = now.dhcp.map(|dhcp| dhcp.hosts).unwrap_or_default();
            now.sort();
            assert_eq!(now, hosts);
        }
    }
    assert_eq!(lab.hypervisor.leases(&spec.name).await, Ok(Vec::new()));
    gone(lab, &spec).await;
}

pub(super) async fn its_mark_is_kept(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let hostile = NetworkMark { owner: "\"'><evil/>".to_owned(), serial: i64::MAX };
    let spec = NetworkSpec { mark: Some(hostile), ..spec(lab, "net-mark", 4) };
    assert_eq!(defined(lab, &spec).await.spec, spec);
    gone(lab, &spec).await;
}
