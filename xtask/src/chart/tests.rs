//! The chart renders to what the kustomization installs, and every value moves something.

use std::collections::BTreeMap;

use gotemplate::{Limits, Template};
use serde_json::{Value, json};

use super::*;

fn repo() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Objects by kind and name, of the documents in these texts.
fn objects<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for document in texts.into_iter().flat_map(|text| text.split("\n---")) {
        let object: Value = serde_saphyr::from_str(document).expect("YAML");
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        if object.is_object() {
            assert!(found.insert(id.clone(), object).is_none(), "{id} is there twice");
        }
    }
    found
}

fn values() -> Value {
    serde_saphyr::from_str(VALUES).expect("YAML")
}

/// What Helm makes of the chart.
fn rendered(values: &Value, namespace: &str) -> BTreeMap<String, Value> {
    let data = json!({"Values": values, "Release": {"Namespace": namespace}, "Chart": {"AppVersion": "1"}});
    let render = |(path, text): &(String, String)| {
        let template = Template::parse(path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        template.render(&data, Limits::default()).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let files = files(repo()).expect("the chart");
    let templates = files.iter().filter(|(path, _)| path.contains("/templates/") && !path.contains("NOTES"));
    let texts: Vec<String> = templates.map(render).collect();
    objects(texts.iter().map(String::as_str))
}

/// What `kubectl apply -k deploy` installs: it lists files and patches nothing.
fn installed() -> BTreeMap<String, Value> {
    let read = |path: &str| fs::read_to_string(repo().join("deploy").join(path)).expect("a manifest");
    let paths = resources(&read("kustomization.yaml")).expect("resources");
    let texts: Vec<String> = paths.iter().filter(|path| !path.starts_with("crds/")).map(|path| read(path)).collect();
    let mut objects = objects(texts.iter().map(String::as_str));
    objects.remove("Namespace /slipway-system").expect("the kustomization makes its namespace");
    objects
}

#[test]
fn with_the_values_as_they_are_it_installs_what_the_kustomization_does() {
    let (chart, kustomization) = (rendered(&values(), NAMESPACE), installed());
    assert_eq!(chart.keys().collect::<Vec<_>>(), kustomization.keys().collect::<Vec<_>>());
    for (id, object) in &chart {
        assert_eq!(object, &kustomization[id], "{id}");
    }
    assert!(chart.len() > 8);
}

#[test]
fn a_release_in_another_namespace_leaves_nothing_in_the_usual_one() {
    let all = json!(rendered(&values(), "metal")).to_string();
    assert!(!all.contains(NAMESPACE) && all.contains("system:serviceaccount:metal:slipway-manager"));
}

#[test]
fn every_value_reaches_its_place() {
    let mut chosen = values();
    let usual = rendered(&chosen, NAMESPACE);
    for (pointer, value) in [
        ("/replicas", json!(2)),
        ("/images/slipway", json!("registry.example/slipway:1")),
        ("/images/haproxy", json!("registry.example/haproxy:3")),
        ("/images/jumpHost", json!("registry.example/jump-host:1")),
        ("/images/dex", json!("registry.example/dex:2")),
        ("/imagePullSecrets", json!([{"name": "pull"}])),
        ("/hostNamespaces", json!(["metal3", "racks"])),
        ("/grants/hosts", json!(["metal3"])),
        ("/grants/tenants", json!(["blue", "green"])),
        ("/quarantineSeconds", json!(5)),
        ("/env", json!({"SLIPWAY_LOG_FORMAT": "json"})),
        ("/hostAdmins", json!(["ops"])),
        ("/resources", json!({"limits": {"memory": "1Gi"}})),
    ] {
        let place = chosen.pointer_mut(pointer).expect(pointer);
        assert_ne!(*place, value, "{pointer}");
        *place = value;
        assert_ne!(rendered(&chosen, NAMESPACE), usual, "{pointer} moves nothing");
    }
    let all = rendered(&chosen, NAMESPACE);
    let container = &all["Deployment slipway-system/slipway-manager"]["spec"]["template"]["spec"]["containers"][0];
    let env: BTreeMap<&str, &str> = container["env"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|variable| Some((variable["name"].as_str()?, variable["value"].as_str()?)))
        .collect();
    assert_eq!(container["image"], "registry.example/slipway:1");
    assert_eq!(env["SLIPWAY_IMAGE"], "registry.example/slipway:1");
    assert_eq!((env["SLIPWAY_HOST_NAMESPACES"], env["SLIPWAY_QUARANTINE_SECONDS"]), ("metal3,racks", "5"));
    assert_eq!((env["SLIPWAY_DEX_IMAGE"], env["SLIPWAY_LOG_FORMAT"]), ("registry.example/dex:2", "json"));
    assert_eq!(container["resources"], json!({"limits": {"memory": "1Gi"}}));
    assert_eq!(all["ConfigMap slipway-system/slipway-claims"]["data"]["hostAdmins"], "ops\n");
    let grants: Vec<&String> =
        all.keys().filter(|id| id.starts_with("RoleBinding ") && !id.contains(NAMESPACE)).collect();
    let expected =
        ["RoleBinding blue/slipway-tenant", "RoleBinding green/slipway-tenant", "RoleBinding metal3/slipway-hosts"];
    assert_eq!(grants, expected);
    assert_eq!(all[expected[0]]["subjects"][0]["namespace"], NAMESPACE);
}

#[test]
fn a_manifest_that_no_longer_has_what_is_chosen_is_found_out() {
    let said = template("manager.yaml", "kind: Deployment\n".to_owned()).unwrap_err().to_string();
    assert!(said.starts_with("deploy/manager.yaml has \"  replicas: 1\\n\" 0 times"), "{said}");
}

#[test]
fn the_notes_say_what_is_left_to_do() {
    let template = Template::parse("NOTES.txt", NOTES).expect("a template");
    let mut values = values();
    let notes = |values: &Value| {
        let data = json!({"Values": values, "Release": {"Namespace": "metal"}, "Chart": {"AppVersion": "1"}});
        template.render(&data, Limits::default()).expect("notes")
    };
    assert!(notes(&values).contains("grants.tenants"));
    values["grants"]["tenants"] = json!(["blue"]);
    assert!(!notes(&values).contains("grants.tenants") && notes(&values).contains("namespace metal"));
}
