//! What a spec asks for, and what is wrong with one.

use api::sipcluster::SIPClusterSpec;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn want(nodes: &Value, services: &Value) -> Want {
    let spec = serde_json::from_value::<SIPClusterSpec>(json!({"nodes": nodes, "services": services})).expect("a spec");
    Want::from(&SIPCluster::new("edge", spec))
}

#[rstest]
#[case(json!({"count": {"active": 3, "standby": 1}}), 3, 1)]
#[case(json!({"count": {"active": 3}}), 3, 0)]
#[case(json!({"count": {"standby": 1}}), 0, 1)]
#[case(json!({}), 0, 0)]
fn counts_that_are_omitted_are_zero(#[case] set: Value, #[case] active: u32, #[case] standby: u32) {
    let want = want(&json!({"Worker": set}), &json!({}));
    assert_eq!((want.invalid, want.roles["Worker"].active, want.roles["Worker"].standby), (None, active, standby));
}

#[test]
fn the_topology_key_is_a_level_of_one_beside_the_others() {
    let set = json!({"topologyKey": "server", "spread": [{"topologyKey": "rack", "maxPerDomain": 2}]});
    let levels = want(&json!({"Worker": set}), &json!({})).roles["Worker"].levels.clone();
    let level = |key: &str, max_per_domain| Level { key: key.into(), max_per_domain };
    assert_eq!(levels, [level("server", 1), level("rack", 2)]);
    assert!(want(&json!({"Worker": {"topologyKey": ""}}), &json!({})).roles["Worker"].levels.is_empty());
}

#[rstest]
#[case(json!({"a b": {}}), "spec.nodes[a b]: a role has to be a label value")]
#[case(json!({"W": {"topologyKey": "a b"}}), "spec.nodes[W].topologyKey: \"a b\" is not a label key")]
#[case(
    json!({"W": {"spread": [{"topologyKey": "rack", "maxPerDomain": 0}]}}),
    "spec.nodes[W].spread[0]: maxPerDomain has to be at least 1"
)]
#[case(json!({"W": {"count": {"active": -1}}}), "spec.nodes[W].count.active is negative")]
#[case(
    json!({"W": {"count": {"active": 1500}}, "X": {"count": {"standby": 501}}}),
    "spec.nodes: 2001 hosts asked for, a SIPCluster has at most 2000"
)]
#[case(
    json!({"W": {"labelSelector": {"matchExpressions": [{"key": "rack", "operator": "In"}]}}}),
    "spec.nodes[W].labelSelector.matchExpressions[0].values: In and NotIn need at least one"
)]
fn a_wrong_spec_is_named_by_its_field(#[case] nodes: Value, #[case] said: &str) {
    let want = want(&nodes, &json!({}));
    assert_eq!(want.invalid.as_deref(), Some(said));
    assert!(want.roles.is_empty());
}

#[test]
fn a_wrong_spec_does_not_hold_up_a_deletion() {
    let mut sip = SIPCluster::new("edge", SIPClusterSpec::default());
    sip.spec.nodes.insert("a b".into(), api::sipcluster::NodeSet::default());
    sip.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    let want = Want::from(&sip);
    assert!(want.deleting && want.invalid.is_none() && want.roles.is_empty());
}

#[test]
fn a_role_needs_addresses_where_its_services_use_them() {
    let services = json!({
        "loadBalancerControlPlane": [{"image": "", "nodePort": 1, "nodeInterfaceId": "api"}],
        "loadBalancerWorker": [{"image": "", "nodePortRange": {"start": 1, "end": 2}, "nodeInterfaceId": "apps"}],
        "jumpHost": [{"image": "", "nodePort": 1, "nodeSSHPrivateKeys": "k", "nodeInterfaceId": "ssh"}],
    });
    let want = want(&json!({"ControlPlane": {}, "Worker": {}, "Other": {}}), &services);
    let networks = |role: &str| want.roles[role].networks.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(networks("ControlPlane"), ["api", "ssh"]);
    assert_eq!(networks("Worker"), ["apps", "ssh"]);
    assert_eq!(networks("Other"), [""; 0]);
}
