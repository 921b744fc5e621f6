//! `slipway explain`.

use crate::{
    sample::{claimed, cluster, host, host_with, secrets, with_spec},
    slipway,
};

#[test]
fn every_host_that_matches_is_accounted_for() {
    let input = [
        cluster("edge", 3),
        host("n1", "r1"),
        host_with("n2", "r2", ", annotations: {sip.airshipit.org/maintenance: disk}"),
        host_with("n3", "r2", "").replace("rack: r2", "room: a"),
        claimed("n4", "r3", "edge", true),
        claimed("n5", "r5", "other", false),
        host("n6", "r6").replace("namespace: metal3", "namespace: private"),
    ];
    let said = slipway(&["explain", "tenants/edge", "--host-namespaces=metal3", "-f", "-"], &input.concat());
    let expected = "\
tenants/edge: blocked; 1 host to claim

ControlPlane: 3 hosts asked (3 active, 0 standby), 0 claimed, 1 free
  selector  flavor=cp
  spread    at most 1 per rack; free hosts in r1
  hosts     6 match, 1 of them this cluster's
    1 free: metal3/n1
    1 in a namespace this cluster may not take from: private/n6
    1 in maintenance: metal3/n2
    1 labelled for an unknown cluster: metal3/n5 (tenants/other)
    1 without label rack: metal3/n3

now
  + metal3/n1 ControlPlane (rack=r1)
  ! Unschedulable: ";
    let (before, _) = said.out.split_once("role ControlPlane:").expect("an explanation");
    assert_eq!(before, expected);
    assert_eq!(said.status, 3);
}

#[test]
fn a_cluster_at_rest_shows_its_hosts_and_its_conditions() {
    let status = "\
status:
  observedGeneration: 1
  established: true
  hosts: [{namespace: metal3, name: n1, uid: u1, role: ControlPlane, state: Claimed, domains: {rack: r1}, addresses: {oam: 192.0.2.1}}]
  conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]
";
    let input = [cluster("edge", 1), status.to_owned(), claimed("n1", "r1", "edge", true)];
    let said = slipway(&["explain", "-f", "-", "tenants/edge"], &input.concat());
    let expected = "\
tenants/edge: nothing to do, 1 of 1 hosts claimed

ControlPlane: 1 host asked (1 active, 0 standby), 1 claimed, 0 free
  selector  flavor=cp
  spread    at most 1 per rack
  hosts     1 match, 1 of them this cluster's

hosts of this cluster
  metal3/n1 ControlPlane: Claimed; rack=r1; oam 192.0.2.1; used by Metal3Machine m/x

conditions
  Ready=True ReconciliationSucceeded
";
    assert_eq!((said.out.as_str(), said.status), (expected, 0));
}

#[test]
fn a_missing_address_is_named_with_its_network() {
    let spec = "nodes: {Worker: {count: {active: 1}}}, services: {loadBalancerWorker: [{nodePortRange: {start: 1, end: 2}, nodeInterfaceId: wan}]}";
    let input = [with_spec("edge", spec), host("n1", "r1"), secrets("n1", "192.0.2.1")];
    let said = slipway(&["explain", "tenants/edge", "-f", "-"], &input.concat());
    assert!(said.out.contains("    1 without an address in network wan: metal3/n1\n"), "{}", said.out);
    assert_eq!(said.status, 3);
}

#[test]
fn its_place_among_the_clusters_counts() {
    let input = [cluster("alpha", 1), cluster("beta", 1), host("n1", "r1")];
    let said = slipway(&["explain", "tenants/beta", "-f", "-"], &input.concat());
    assert!(said.out.contains("served as number 2 of 2 clusters"), "{}", said.out);
    assert!(said.out.contains("    1 claimed by tenants/alpha as ControlPlane: metal3/n1\n"), "{}", said.out);
}

#[test]
fn a_cluster_that_is_not_there_is_bad_input() {
    let said = slipway(&["explain", "tenants/nobody", "-f", "-"], &cluster("edge", 1));
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert_eq!(said.err, "slipway: SIPCluster tenants/nobody: is not there; there are: tenants/edge\n");
}

#[test]
fn several_files_after_one_flag_and_the_cluster_in_any_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (a, b) = (file("a.yaml", cluster("edge", 1)), file("b.yaml", host("n1", "r1")));
    for args in [["explain", "-f", &a, &b, "tenants/edge"], ["explain", "tenants/edge", "-f", &a, &b]] {
        let said = slipway(&args, "");
        assert!(said.status == 0 && said.out.starts_with("tenants/edge: 1 host to claim"), "{args:?}: {said:?}");
    }
    let said = slipway(&["explain", "-f", &a, &b], "");
    assert!(said.err.contains("is no SIPCluster: name it as NAMESPACE/NAME"), "{}", said.err);
}
