//! What the VinoNode's definition accepts and refuses, and how entries read.

use kube::core::cel::Validator;
use rstest::rstest;
use serde_json::{Value, json};

use super::{NetworkMode, NodeNetwork, NodeVm, State, VinoNodeSpec};

fn spec(serial: i64, uid: &str) -> Value {
    json!({
        "serial": serial,
        "vinoRef": {"namespace": "default", "name": "fleet", "uid": uid},
        "machine": {"machineID": "0123456789abcdef0123456789abcdef"},
        "bmc": {"port": 8000, "loginsSecret": "node01-logins"},
    })
}

/// What the CEL rules say of `new` in the place of `old`.
fn refused(new: &Value, old: &Value) -> Vec<String> {
    let crd = crate::crd("VinoNode").expect("our definition");
    let schema = crd.spec.versions[0].schema.clone().expect("a schema").open_api_v3_schema.expect("a schema");
    let schema = serde_json::to_value(schema).expect("a schema is JSON");
    let node = |spec: &Value| json!({"metadata": {"name": "node01"}, "spec": spec});
    match Validator::new().validate(&schema, &node(new), Some(&node(old))) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[rstest]
#[case::rises(8, "u", "")]
#[case::stays(7, "u", "")]
#[case::falls(6, "u", "spec.serial: serial never falls")]
#[case::other_owner(8, "v", "spec.vinoRef: a VinoNode keeps its Vino; another one is made anew")]
fn serials_rise_and_owners_stay(#[case] serial: i64, #[case] uid: &str, #[case] said: &str) {
    assert_eq!(refused(&spec(serial, uid), &spec(7, "u")).join(""), said);
}

#[test]
fn only_the_word_absent_takes_something_away() {
    let vm: NodeVm = serde_json::from_value(json!({
        "uuid": "6f1c0c2e-58a5-4d2e-9b0a-0d5c7a9f0001", "name": "master-0", "machineID": "m", "since": 1,
        "group": "master", "host": "default-fleet-node01-master-0", "vcpus": 1, "memoryMiB": 4096,
    }))
    .expect("an entry that says no more than it must");
    assert_eq!(vm.state, State::Present);
    assert_eq!(serde_json::to_value(&vm).expect("JSON")["state"], "Present", "and it is always said");
}

#[test]
fn a_network_is_joined_by_an_interface_or_a_bridge_of_others() {
    let network = |mode, physical: Option<&str>| NodeNetwork {
        mode,
        physical_interface: physical.map(Into::into),
        ..NodeNetwork::default()
    };
    assert!(network(NetworkMode::Bridge, None).is_joined());
    assert!(network(NetworkMode::Routed, Some("eth1")).is_joined());
    assert!(!network(NetworkMode::Nat, None).is_joined());
}

#[test]
fn a_spec_reads_back_as_it_was_written() {
    let read: VinoNodeSpec = serde_json::from_value(spec(3, "u")).expect("a spec");
    assert_eq!(serde_json::to_value(read).expect("JSON"), spec(3, "u"));
}
