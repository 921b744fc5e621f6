//! Networks, interfaces and rules.

use api::vinonode::{AddressRange, Dhcp, NetworkMode, NodeNetwork, NodeVm, Pxe, Route, State, VinoNodeSpec};
use hypervisor::{Network, NetworkSpec};
use ipnet::IpNet;
use plan_node::{Interface, Seen, Step, after};
use rstest::rstest;
use testkit::hypervisor::Shape;

use crate::fixture::{
    OWNER, absent, bare, carried_out, destroys, network, planned, reasons, switch_on, uuid, vm, with,
};

fn with_network(serial: i64, network: NodeNetwork, vms: impl IntoIterator<Item = NodeVm>) -> VinoNodeSpec {
    VinoNodeSpec { networks: vec![network], ..with(serial, vms) }
}

fn defined(seen: &Seen) -> &NetworkSpec {
    &seen.networks["management"].spec
}

fn rules(spec: &VinoNodeSpec) -> plan_node::Rules {
    carried_out(spec, bare(&Shape::cells(1))).rules
}

#[test]
fn only_this_nodes_own_machines_are_answered() {
    let elsewhere = NodeVm { machine_id: "machine-2".into(), ..vm(7) };
    let seen = carried_out(&with(1, [vm(0), elsewhere, absent(vm(3))]), bare(&Shape::cells(1)));
    let hosts = &defined(&seen).dhcp.as_ref().expect("a server").hosts;
    let said: Vec<String> = hosts.iter().map(|host| format!("{} {:?} {:?}", host.mac, host.ip, host.name)).collect();
    assert_eq!(said, ["52:54:00:06:01:00 Some(192.168.3.0) Some(\"worker-0\")"]);
}

#[test]
fn a_machine_more_changes_who_is_answered_and_nothing_else() {
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let spec = with(1, [vm(0), vm(1)]);
    let plan = planned(&spec, &seen);
    let of_network: Vec<String> =
        plan.steps.iter().map(ToString::to_string).filter(|step| step.contains("network")).collect();
    assert_eq!(of_network, ["~ network management answers 2 hosts"]);
    assert_eq!(planned(&spec, &after(seen, &plan)).to_string(), "");
}

#[test]
fn libvirt_forwards_nothing_of_its_own() {
    let seen = carried_out(&with(1, []), bare(&Shape::cells(1)));
    assert_eq!(defined(&seen).forward, hypervisor::Forward::Open);
}

#[test]
fn routes_do_not_take_the_default_route_away() {
    let route = Route { to: "10.0.0.0/24".into(), gateway: [192, 168, 2, 10].into() };
    let spec = with_network(1, NodeNetwork { routes: vec![route], ..network("management") }, []);
    let seen = carried_out(&spec, bare(&Shape::cells(1)));
    let routes: Vec<String> =
        defined(&seen).dhcp.iter().flat_map(|dhcp| &dhcp.routes).map(|(to, by)| format!("{to} by {by}")).collect();
    assert_eq!(routes, ["10.0.0.0/24 by 192.168.2.10", "0.0.0.0/0 by 192.168.2.10"]);
}

#[rstest]
#[case::http(Pxe { boot_url: Some("http://h/dualboot.ipxe".into()), ..Pxe::default() }, "http://h/dualboot.ipxe", None)]
#[case::tftp(Pxe { boot_file: Some("u.kpxe".into()), boot_url: Some("http://h/x".into()), tftp_root: Some("/tftp".into()), ..Pxe::default() }, "u.kpxe", None)]
#[case::another_server(Pxe { boot_file: Some("u.kpxe".into()), tftp_server: Some("10.0.0.9".into()), ..Pxe::default() }, "u.kpxe", Some("10.0.0.9"))]
fn machines_that_boot_by_network_are_told_what(#[case] pxe: Pxe, #[case] file: &str, #[case] server: Option<&str>) {
    let spec = with_network(1, NodeNetwork { pxe: Some(pxe), ..network("management") }, []);
    let seen = carried_out(&spec, bare(&Shape::cells(1)));
    let boot = defined(&seen).dhcp.as_ref().and_then(|dhcp| dhcp.boot.clone()).expect("something to boot");
    assert_eq!((boot.file.as_str(), boot.server.as_deref()), (file, server));
}

#[rstest]
#[case::default_route(Interface { default_route: true, ..Interface::default() }, "InterfaceInUse", "a default route of the node leads over eth1")]
#[case::address(Interface { addresses: vec!["10.9.0.5/24".parse::<IpNet>().expect("an address")], ..Interface::default() }, "InterfaceInUse", "eth1 carries the node's address 10.9.0.5/24")]
#[case::port(Interface { master: Some("br0".into()), ..Interface::default() }, "InterfaceInUse", "eth1 is a port of br0")]
fn an_interface_that_the_node_lives_on_is_refused(#[case] eth1: Interface, #[case] reason: &str, #[case] why: &str) {
    let mut seen = bare(&Shape::cells(1));
    seen.interfaces.insert("eth1".into(), eth1);
    let spec =
        with_network(1, NodeNetwork { physical_interface: Some("eth1".into()), ..network("management") }, [vm(0)]);
    let plan = planned(&spec, &seen);
    assert_eq!(reasons(&plan), [reason, "NetworkMissing"]);
    assert_eq!(plan.troubles[0].message, why);
    assert!(
        !plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::DefineNetwork(_) | Step::PlugInterface { .. } | Step::DefineDomain(_)))
    );
}

#[rstest]
#[case::no_interface(NodeNetwork { physical_interface: Some("eth7".into()), ..network("management") }, "InterfaceMissing")]
#[case::subnet_of_the_node(NodeNetwork { subnet: "10.1.0.0/16".into(), bridge_ip: Some([10, 1, 2, 1].into()), ..network("management") }, "SubnetInUse")]
#[case::bridge_of_others(NodeNetwork { bridge: "eth1".into(), ..network("management") }, "Foreign")]
#[case::no_bridge(NodeNetwork { mode: NetworkMode::Bridge, bridge: "br7".into(), ..network("management") }, "InterfaceMissing")]
#[case::injection(NodeNetwork { bridge: "x -j ACCEPT\n".into(), ..network("management") }, "SpecInvalid")]
#[case::quotes(NodeNetwork { physical_interface: Some("e\" }; drop".into()), ..network("management") }, "SpecInvalid")]
#[case::no_cidr(NodeNetwork { subnet: "10.0.0.0/99".into(), ..network("management") }, "SpecInvalid")]
#[case::outside(NodeNetwork { bridge_ip: Some([10, 0, 0, 1].into()), ..network("management") }, "SpecInvalid")]
fn what_cannot_be_is_refused(#[case] bad: NodeNetwork, #[case] reason: &str) {
    let plan = planned(&with_network(1, bad, []), &bare(&Shape::cells(1)));
    assert_eq!(reasons(&plan), [reason]);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::DefineNetwork(_) | Step::SetRules(_))), "{plan}");
}

#[test]
fn a_free_interface_joins_the_network_and_its_dhcp_stays_here() {
    let joined = NodeNetwork { physical_interface: Some("eth1".into()), ..network("management") };
    let plan = planned(&with_network(1, joined, []), &bare(&Shape::cells(1)));
    assert!(plan.to_string().contains("~ interface eth1 into bridge vm-infra\n"), "{plan}");
    let Step::SetRules(rules) = &plan.steps[0] else { panic!("rules come first: {plan}") };
    assert_eq!(
        rules.nft(),
        "add table bridge vino\ndelete table bridge vino\ntable bridge vino {\n\
        \x20 chain forward {\n    type filter hook forward priority -250; policy accept;\n\
        \x20   iifname { \"eth1\" } ether type ip udp dport { 67, 68 } drop\n\
        \x20   iifname { \"eth1\" } ether type ip6 udp dport { 546, 547 } drop\n\
        \x20   iifname { \"eth1\" } ether type ip6 icmpv6 type { nd-router-solicit, nd-router-advert } drop\n\
        \x20   oifname { \"eth1\" } ether type ip udp dport { 67, 68 } drop\n\
        \x20   oifname { \"eth1\" } ether type ip6 udp dport { 546, 547 } drop\n\
        \x20   oifname { \"eth1\" } ether type ip6 icmpv6 type { nd-router-solicit, nd-router-advert } drop\n  }\n\
        \x20 chain input {\n    type filter hook input priority -250; policy accept;\n\
        \x20   iifname { \"eth1\" } ether type ip udp dport { 67, 68 } drop\n\
        \x20   iifname { \"eth1\" } ether type ip6 udp dport { 546, 547 } drop\n\
        \x20   iifname { \"eth1\" } ether type ip6 icmpv6 type { nd-router-solicit, nd-router-advert } drop\n  }\n\
        \x20 chain output {\n    type filter hook output priority -250; policy accept;\n\
        \x20   oifname { \"eth1\" } ether type ip udp dport { 67, 68 } drop\n\
        \x20   oifname { \"eth1\" } ether type ip6 udp dport { 546, 547 } drop\n\
        \x20   oifname { \"eth1\" } ether type ip6 icmpv6 type { nd-router-solicit, nd-router-advert } drop\n  }\n}\n"
    );
}

#[test]
fn an_outside_server_is_not_kept_out() {
    let outside = NodeNetwork { physical_interface: Some("eth1".into()), dhcp: Dhcp::Outside, ..network("management") };
    let rules = rules(&with_network(1, outside, []));
    assert_eq!(rules.nft(), "add table bridge vino\ndelete table bridge vino\n");
    assert!(!rules.iptables(false).contains("VINO-INPUT -i"));
}

#[test]
fn each_mode_forwards_what_it_says() {
    let mode = |mode| NodeNetwork { mode, dhcp: Dhcp::Off, ..network("management") };
    let text = |network| rules(&with_network(1, network, [])).iptables(false);
    let frame = |forward: &str, nat: &str| {
        format!(
            "*filter\n:VINO-FORWARD - [0:0]\n:VINO-INPUT - [0:0]\n-A VINO-FORWARD -i vm-infra -o vm-infra -j ACCEPT\n{forward}COMMIT\n\
             *nat\n:VINO-POSTROUTING - [0:0]\n{nat}COMMIT\n"
        )
    };
    assert_eq!(
        text(mode(NetworkMode::Nat)),
        frame(
            "-A VINO-FORWARD -i vm-infra -s 192.168.0.0/20 -j ACCEPT\n\
             -A VINO-FORWARD -o vm-infra -d 192.168.0.0/20 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
             -A VINO-FORWARD -o vm-infra -j REJECT\n",
            "-A VINO-POSTROUTING -s 192.168.0.0/20 -d 224.0.0.0/4 -j RETURN\n\
             -A VINO-POSTROUTING -s 192.168.0.0/20 ! -d 192.168.0.0/20 -j MASQUERADE\n"
        )
    );
    assert_eq!(
        text(mode(NetworkMode::Routed)),
        frame("-A VINO-FORWARD -i vm-infra -j ACCEPT\n-A VINO-FORWARD -o vm-infra -j ACCEPT\n", "")
    );
    assert_eq!(
        text(mode(NetworkMode::Isolated)),
        frame("-A VINO-FORWARD -i vm-infra -j REJECT\n-A VINO-FORWARD -o vm-infra -j REJECT\n", "")
    );
}

#[test]
fn an_existing_bridge_is_used_and_gets_no_rules() {
    let mut seen = bare(&Shape::cells(1));
    let bridge = Interface {
        bridge: true,
        addresses: vec!["192.168.1.1/20".parse().expect("an address")],
        ..Interface::default()
    };
    seen.interfaces.insert("br0".into(), bridge);
    let existing =
        NodeNetwork { mode: NetworkMode::Bridge, bridge: "br0".into(), bridge_ip: None, ..network("management") };
    let spec = with_network(1, existing, [vm(0)]);
    let seen = carried_out(&spec, seen);
    assert_eq!((seen.domains.len(), seen.rules.networks.len()), (1, 0));
    assert_eq!((&defined(&seen).forward, defined(&seen).address), (&hypervisor::Forward::HostBridge, None));
    assert_eq!(planned(&spec, &seen).to_string(), "");
}

#[test]
fn a_foreign_network_of_that_name_is_not_touched() {
    for mark in [None, Some(hypervisor::NetworkMark { owner: "another".into(), serial: 1 })] {
        let mut seen = bare(&Shape::cells(1));
        let foreign = Network {
            spec: NetworkSpec { name: "management".into(), mark, bridge: "virbr0".into(), ..NetworkSpec::default() },
            ..Network::default()
        };
        seen.networks.insert("management".into(), foreign.clone());
        for state in [State::Present, State::Absent] {
            let spec = with_network(1, NodeNetwork { state, ..network("management") }, []);
            let after = carried_out(&spec, seen.clone());
            assert_eq!(after.networks["management"], foreign);
        }
    }
}

#[test]
fn a_change_waits_until_no_guest_is_plugged_in() {
    let changed =
        |serial, vms: Vec<NodeVm>| with_network(serial, NodeNetwork { mtu: Some(1400), ..network("management") }, vms);
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let plan = planned(&changed(1, vec![vm(0)]), &seen);
    assert!(plan.to_string().contains("~ network management stops\n~ network management starts\n"), "{plan}");
    switch_on(&mut seen, uuid(0));
    let plan = planned(&changed(1, vec![vm(0)]), &seen);
    assert!(!plan.steps.iter().any(destroys), "{plan}");
    assert_eq!(reasons(&plan), ["NetworkAtNextStart"]);
    let seen = after(seen, &plan);
    assert!(planned(&changed(1, vec![vm(0)]), &seen).steps.is_empty());
}

#[test]
fn a_network_goes_when_its_entry_says_so_and_nobody_uses_it() {
    let gone = |vms: Vec<NodeVm>| with_network(2, NodeNetwork { state: State::Absent, ..network("management") }, vms);
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let plan = planned(&gone(vec![]), &seen);
    assert_eq!(reasons(&plan), ["InUse"]);
    assert!(!plan.steps.iter().any(destroys), "{plan}");
    let plan = planned(&gone(vec![absent(vm(0))]), &seen);
    let seen = after(seen, &plan);
    assert!(seen.networks.is_empty() && seen.rules.networks.is_empty());
    assert_eq!(planned(&gone(vec![absent(vm(0))]), &seen).to_string(), "");
}

#[test]
fn a_network_that_does_not_run_is_started() {
    let mut seen = carried_out(&with(1, []), bare(&Shape::cells(1)));
    seen.networks.get_mut("management").expect("it is there").running = None;
    seen.interfaces.remove("vm-infra");
    assert_eq!(planned(&with(1, []), &seen).to_string(), "~ network management starts\n");
}

#[test]
fn ranges_and_six() {
    let six = NodeNetwork {
        subnet: "2001:db8::/64".into(),
        bridge_ip: Some("2001:db8::1".parse().expect("an address")),
        dhcp_range: Some(AddressRange {
            start: "2001:db8::100".parse().expect("an address"),
            stop: "2001:db8::1ff".parse().expect("an address"),
        }),
        ..network("management")
    };
    let seen = carried_out(&with_network(1, six, []), bare(&Shape::cells(1)));
    assert!(defined(&seen).dhcp.as_ref().is_some_and(|dhcp| dhcp.range.is_some()));
    let text = seen.rules.iptables(true);
    assert!(
        text.contains("-s 2001:db8::/64 ! -d 2001:db8::/64 -j MASQUERADE") && text.contains("--dport 547"),
        "{text}"
    );
    assert!(!seen.rules.iptables(false).contains("vm-infra"));
    assert_eq!(defined(&seen).mark.as_ref().map(|mark| mark.owner.as_str()), Some(OWNER));
}
