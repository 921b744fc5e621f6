//! What the SIPCluster's definition accepts and refuses, and how it reads; judged by kube-cel, without an API server.

#![expect(clippy::needless_pass_by_value, reason = "cases read better as `json!(..)` than as `&json!(..)`")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::core::cel::Validator;
use rstest::rstest;
use serde_json::{Value, json};

use super::{SIPCluster, SIPClusterSpec};

fn schema() -> JSONSchemaProps {
    let crd = crate::crds().swap_remove(0);
    crd.spec.versions[0].schema.clone().expect("a schema").open_api_v3_schema.expect("a schema")
}

/// What the CEL rules say of this object, each with its field.
fn refused(object: &Value) -> Vec<String> {
    let schema = serde_json::to_value(schema()).expect("a schema is JSON");
    match Validator::new().validate(&schema, object, None) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

fn named(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "airship.airshipit.org/v1", "kind": "SIPCluster",
           "metadata": {"name": name, "namespace": "tenant"}, "spec": spec})
}

fn services(services: Value) -> Vec<String> {
    refused(&named("edge", json!({"services": services})))
}

fn nodes(nodes: Value) -> Vec<String> {
    refused(&named("edge", json!({"nodes": nodes, "services": {}})))
}

#[rstest]
#[case::plain("edge")]
#[case::one_letter("e")]
#[case::as_long_as_a_label(&"a".repeat(63))]
fn names_that_labels_and_services_can_carry(#[case] name: &str) {
    assert_eq!(refused(&named(name, json!({"services": {}}))), [""; 0]);
}

#[rstest]
#[case::a_subdomain("edge.one")]
#[case::a_digit_first("1edge")]
#[case::too_long(&"a".repeat(64))]
fn names_that_labels_or_services_cannot_carry(#[case] name: &str) {
    let said = refused(&named(name, json!({"services": {}})));
    assert_eq!(
        said,
        [
            "metadata.name becomes part of label values and Service names: at most 63 of a-z, 0-9 and '-', beginning with a letter"
        ]
    );
}

#[rstest]
#[case("loadBalancerControlPlane", "loadbalancer-controlplane-", json!({"nodePort": 0}))]
#[case("loadBalancerWorker", "loadbalancer-worker-", json!({"nodePortRange": {"start": 1, "end": 2}}))]
#[case("jumpHost", "jumphost-", json!({"nodePort": 0, "nodeSSHPrivateKeys": "keys"}))]
#[case("auth", "auth-", json!({"nodePort": 0}))]
fn the_name_of_a_service_fits_63_characters(#[case] list: &str, #[case] prefix: &str, #[case] mut entry: Value) {
    let judge =
        |name: usize, entry: &Value| refused(&named(&"a".repeat(name), json!({"services": {list: [entry.clone()]}})));
    let longest = 63 - prefix.len();
    assert_eq!(judge(longest, &entry), [""; 0]);
    assert_eq!(judge(longest + 1, &entry).len(), 1, "one character too many");
    entry["name"] = json!("blue");
    assert_eq!(judge(longest - 5, &entry), [""; 0], "the entry's name and its hyphen count too");
    let said = judge(longest - 4, &entry);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains(&format!("'{prefix}<metadata.name>[-<entry name>]' would be longer")), "{said:?}");
}

#[rstest]
#[case("ControlPlane")]
#[case("Worker")]
#[case("gpu_nodes.v2")]
fn roles_that_are_label_values(#[case] role: &str) {
    assert_eq!(nodes(json!({role: {}})), [""; 0]);
}

#[rstest]
#[case::blank("Control Plane")]
#[case::hyphen_last("Worker-")]
#[case::empty("")]
#[case::not_ascii("W\u{f6}rker")]
#[case::too_long(&"W".repeat(64))]
fn roles_that_are_not(#[case] role: &str) {
    let said = nodes(json!({role: {}}));
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("spec.nodes: a role becomes a label value"), "{said:?}");
}

#[rstest]
#[case("rack")]
#[case("vino.airshipit.org/rack")]
fn label_keys_of_selectors(#[case] key: &str) {
    assert_eq!(nodes(json!({"Worker": {"labelSelector": {"matchLabels": {key: "x"}}}})), [""; 0]);
}

#[rstest]
#[case::blank("my rack")]
#[case::two_slashes("a/b/c")]
#[case::no_name("vino.airshipit.org/")]
#[case::upper_case_prefix("Vino.org/rack")]
fn keys_of_selectors_that_are_no_label_keys(#[case] key: &str) {
    let said = nodes(json!({"Worker": {"labelSelector": {"matchLabels": {key: "x"}}}}));
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("every key must be a label key"), "{said:?}");
}

#[rstest]
#[case("In", json!(["a"]), true)]
#[case("NotIn", json!(["a", "b"]), true)]
#[case("Exists", json!([]), true)]
#[case("DoesNotExist", Value::Null, true)]
#[case("In", json!([]), false)]
#[case("NotIn", Value::Null, false)]
#[case("Exists", json!(["a"]), false)]
#[case("DoesNotExist", json!(["a"]), false)]
fn operators_and_their_values(#[case] operator: &str, #[case] values: Value, #[case] good: bool) {
    let mut expression = json!({"key": "rack", "operator": operator});
    if !values.is_null() {
        expression["values"] = values;
    }
    let said = nodes(json!({"Worker": {"labelSelector": {"matchExpressions": [expression]}}}));
    assert_eq!(said.is_empty(), good, "{said:?}");
    assert!(said.iter().all(|text| text.ends_with("In and NotIn need values, Exists and DoesNotExist take none")));
}

fn range(start: i32, end: i32) -> Value {
    json!({"nodePortRange": {"start": start, "end": end}, "name": format!("from-{start}")})
}

#[rstest]
#[case::one_port(30000, 30000, None)]
#[case::all_node_ports(30000, 32767, None)]
#[case::reversed(30011, 30002, Some("start is above end"))]
#[case::endless(1, 65535, Some("a range has at most 2768 ports, as many as Kubernetes has node ports"))]
fn ranges_of_ports(#[case] start: i32, #[case] end: i32, #[case] why: Option<&str>) {
    let said = services(json!({"loadBalancerWorker": [range(start, end)]}));
    let expected: Vec<String> =
        why.iter().map(|why| format!("spec.services.loadBalancerWorker[0].nodePortRange: {why}")).collect();
    assert_eq!(said, expected);
}

#[rstest]
#[case::apart(json!([range(30000, 30009), range(30010, 30019)]), true)]
#[case::touching(json!([range(30000, 30010), range(30010, 30019)]), false)]
#[case::one_in_the_other(json!([range(30000, 30020), range(30005, 30006)]), false)]
fn ranges_of_several_worker_load_balancers(#[case] entries: Value, #[case] good: bool) {
    let said = services(json!({"loadBalancerWorker": entries}));
    let expected: &[&str] = if good { &[] } else { &["spec.services: port ranges of loadBalancerWorker overlap"] };
    assert_eq!(said, expected);
}

#[rstest]
#[case("loadBalancerControlPlane", json!({}))]
#[case("jumpHost", json!({"nodeSSHPrivateKeys": "keys"}))]
#[case("auth", json!({}))]
fn a_node_port_outside_of_the_worker_ranges(#[case] list: &str, #[case] mut entry: Value) {
    let mut judge = |port: i32| {
        entry["nodePort"] = json!(port);
        services(json!({"loadBalancerWorker": [range(30002, 30011)], list: [entry.clone()]}))
    };
    for port in [0, 30001, 30012] {
        assert_eq!(judge(port), [""; 0], "port {port}");
    }
    for port in [30002, 30007, 30011] {
        assert_eq!(judge(port), [format!("spec.services: a nodePort of {list} lies in a range of loadBalancerWorker")]);
    }
}

#[rstest]
#[case("loadBalancerControlPlane", "jumpHost")]
#[case("loadBalancerControlPlane", "auth")]
#[case("jumpHost", "auth")]
fn services_do_not_share_a_node_port(#[case] one: &str, #[case] other: &str) {
    let judge = |port: i32| {
        let entry = json!({"nodePort": port, "nodeSSHPrivateKeys": "keys"});
        services(json!({one: [entry.clone()], other: [entry]}))
    };
    assert_eq!(judge(0), [""; 0], "each is allocated one");
    assert_eq!(judge(30000), [format!("spec.services: {one} and {other} have the same nodePort")]);
}

#[rstest]
#[case("loadBalancerControlPlane")]
#[case("jumpHost")]
#[case("auth")]
fn entries_of_a_list_do_not_share_a_node_port(#[case] list: &str) {
    let judge = |one: i32, other: i32| {
        let entry = |name: &str, port: i32| json!({"name": name, "nodePort": port, "nodeSSHPrivateKeys": "keys"});
        services(json!({list: [entry("a", one), entry("b", other)]}))
    };
    assert_eq!(judge(0, 0), [""; 0]);
    assert_eq!(judge(30000, 30001), [""; 0]);
    assert_eq!(judge(30000, 30000), [format!("spec.services.{list}: two entries have the same nodePort")]);
}

#[rstest]
#[case("loadBalancerControlPlane", json!({"nodePort": 0}), json!({"nodePort": 0}))]
#[case("loadBalancerWorker", json!({"nodePortRange": {"start": 1, "end": 2}}), json!({"nodePortRange": {"start": 3, "end": 4}}))]
#[case("jumpHost", json!({"nodePort": 0, "nodeSSHPrivateKeys": "k"}), json!({"nodePort": 0, "nodeSSHPrivateKeys": "k"}))]
#[case("auth", json!({"nodePort": 0}), json!({"nodePort": 0}))]
fn entries_of_a_list_have_distinct_names(#[case] list: &str, #[case] one: Value, #[case] other: Value) {
    let judge = |names: [Option<&str>; 2]| {
        let mut entries = [one.clone(), other.clone()];
        for (entry, name) in entries.iter_mut().zip(names) {
            if let Some(name) = name {
                entry["name"] = json!(name);
            }
        }
        services(json!({list: entries}))
    };
    assert_eq!(judge([Some("blue"), Some("green")]), [""; 0]);
    assert_eq!(judge([None, Some("green")]), [""; 0]);
    let said = [format!("spec.services.{list}: entries need distinct names (one may have none)")];
    assert_eq!(judge([None, None]), said);
    assert_eq!(judge([Some("blue"), Some("blue")]), said);
}

#[rstest]
#[case(include_str!("../../../../examples/compat/stock-sample.yaml"))]
#[case(include_str!("../../../../examples/compat/treasuremap-lma.yaml"))]
#[case(include_str!("../../../../examples/compat/treasuremap-wordpress.yaml"))]
#[case(include_str!("../../../../examples/compat/auth-legacy.yaml"))]
fn manifests_written_for_the_original_are_accepted(#[case] text: &str) {
    let object: Value = serde_saphyr::from_str(text).expect("YAML");
    assert_eq!(refused(&object), [""; 0]);
    let typed: SIPCluster = serde_json::from_value(object.clone()).expect("a SIPCluster");
    let written = serde_json::to_value(&typed).expect("JSON");
    assert_eq!(written["spec"], object["spec"], "nothing is lost or added between reading and writing");
}

#[test]
fn the_least_spec_is_written_as_it_was_read() {
    let spec: SIPClusterSpec = serde_json::from_value(json!({"services": {}})).expect("a spec");
    assert_eq!(serde_json::to_value(&spec).expect("JSON"), json!({"services": {}}));
}

/// Calls `look` with every schema below `schema`, and its field.
fn walk(schema: &JSONSchemaProps, field: &str, look: &mut impl FnMut(&str, &JSONSchemaProps)) {
    look(field, schema);
    for (name, property) in schema.properties.iter().flatten() {
        walk(property, &format!("{field}.{name}"), look);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        walk(items, &format!("{field}[]"), look);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        walk(values, &format!("{field}[*]"), look);
    }
}

fn spec() -> JSONSchemaProps {
    schema().properties.expect("properties").remove("spec").expect("a spec")
}

#[test]
fn whatever_may_be_long_in_a_spec_has_a_maximum() {
    let mut open = Vec::new();
    walk(&spec(), "spec", &mut |field, schema| {
        let bounded = match schema.type_.as_deref() {
            Some("array") => schema.max_items.is_some(),
            Some("object") => schema.properties.is_some() || schema.max_properties.is_some(),
            Some("string") => schema.max_length.is_some() || schema.enum_.is_some(),
            Some("integer") => schema.minimum.is_some() && schema.maximum.is_some(),
            _ => true,
        };
        if !bounded {
            open.push(field.to_owned());
        }
    });
    assert_eq!(open, [""; 0]);
}

#[test]
fn every_field_is_explained_in_whole_paragraphs() {
    let mut silent = Vec::new();
    walk(&schema(), "", &mut |field, schema| {
        let own = field.ends_with(']') || field.is_empty() || field.contains(".metadata");
        let text = schema.description.as_deref().unwrap_or_default();
        if !own && (text.is_empty() || text.replace("\n\n", "").contains('\n')) {
            silent.push(field.to_owned());
        }
    });
    assert_eq!(silent, [""; 0]);
}

#[test]
fn there_are_no_defaults_and_null_is_no_value() {
    walk(&schema(), "", &mut |field, schema| {
        assert!(schema.default.is_none(), "{field} has a default, which the original never had");
        assert!(schema.nullable.is_none(), "{field} is nullable");
    });
}
