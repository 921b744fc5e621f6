//! What an object of a live cluster becomes when a manifest of it is applied, as far as decisions read it.

use serde_json::{Map, Value};

/// The live object with what the manifest says. Who it is, and its status, are the live one's; labels and annotations come
/// to those that are there; of a BareMetalHost other fields of the spec stay, for others write them.
pub(super) fn applied(kind: &str, live: Value, manifest: Value) -> Value {
    let (Value::Object(mut live), Value::Object(mut manifest)) = (live, manifest) else { return Value::Null };
    let (mut metadata, given) = (taken(&mut live, "metadata"), taken(&mut manifest, "metadata"));
    for field in ["labels", "annotations"] {
        let Some(Value::Object(given)) = given.get(field) else { continue };
        let mut all = taken(&mut metadata, field);
        all.extend(given.clone());
        metadata.insert(field.to_owned(), all.into());
    }
    let status = live.remove("status");
    if kind == "BareMetalHost" {
        let mut spec = taken(&mut live, "spec");
        spec.extend(taken(&mut manifest, "spec"));
        manifest.insert("spec".to_owned(), spec.into());
    }
    manifest.insert("metadata".to_owned(), metadata.into());
    manifest.remove("status");
    manifest.extend(status.map(|status| ("status".to_owned(), status)));
    manifest.into()
}

/// A field that is a map, taken out; an empty one if it is not there.
fn taken(of: &mut Map<String, Value>, field: &str) -> Map<String, Value> {
    match of.remove(field) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_changes_what_it_says_and_nothing_that_the_cluster_knows() {
        let live = json!({"metadata": {"name": "edge", "uid": "u", "labels": {"a": "1", "b": "1"}},
            "spec": {"nodes": {"Worker": {}}, "replace": "Never"}, "status": {"established": true}});
        let manifest = json!({"metadata": {"name": "edge", "labels": {"b": "2"}}, "spec": {"nodes": {}}, "status": {}});
        assert_eq!(
            applied("SIPCluster", live, manifest),
            json!({"metadata": {"name": "edge", "uid": "u", "labels": {"a": "1", "b": "2"}},
                "spec": {"nodes": {}}, "status": {"established": true}})
        );
    }

    #[test]
    fn what_others_write_into_the_spec_of_a_host_stays() {
        let live = json!({"metadata": {}, "spec": {"consumerRef": {"name": "m"}, "online": false}});
        let manifest = json!({"metadata": {}, "spec": {"online": true}});
        let spec = json!({"consumerRef": {"name": "m"}, "online": true});
        assert_eq!(applied("BareMetalHost", live, manifest)["spec"], spec);
    }
}
