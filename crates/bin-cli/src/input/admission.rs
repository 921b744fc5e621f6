//! What an API server would refuse of a SIPCluster: the schema of its definition, then the CEL rules.

use std::{cell::RefCell, collections::BTreeMap};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::core::cel::{CompiledSchema, Validator, compile_schema};
use regex::Regex;
use serde_json::{Map, Value};

/// A field and what is wrong with it.
pub type Fault = (String, String);

/// Fields that every object has and no definition describes.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Judges objects of one kind as an API server would at their creation.
pub struct Admission {
    schema: JSONSchemaProps,
    rules: CompiledSchema,
    patterns: RefCell<BTreeMap<String, Regex>>,
}

impl Admission {
    /// The rules of SIPClusters.
    pub fn of_sipclusters() -> Self {
        let crd = api::crds().swap_remove(0);
        let version = crd.spec.versions.into_iter().next();
        let schema =
            version.and_then(|version| version.schema?.open_api_v3_schema).expect("our definition has a schema");
        let rules = compile_schema(&serde_json::to_value(&schema).expect("a schema is JSON"));
        Self { schema, rules, patterns: RefCell::default() }
    }

    /// All that is wrong with `object`, whose nulls have been dropped. As on an API server, the CEL rules are asked only
    /// when the schema is satisfied.
    pub fn faults(&self, object: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.check(&self.schema, object, "", &mut faults);
        if faults.is_empty()
            && let Err(errors) = Validator::new().validate_compiled(&self.rules, object, None)
        {
            faults.extend(errors.into_vec().into_iter().map(|error| (error.field_path, error.message)));
        }
        faults
    }

    fn check(&self, schema: &JSONSchemaProps, value: &Value, path: &str, faults: &mut Vec<Fault>) {
        let mut wrong = |message: String| faults.push((path.to_owned(), message));
        match (schema.type_.as_deref(), value) {
            (Some("object"), Value::Object(fields)) => self.object(schema, fields, path, faults),
            (Some("array"), Value::Array(items)) => self.array(schema, items, path, faults),
            (Some("string"), Value::String(text)) => {
                if let Some(why) = self.text(schema, text) {
                    wrong(why);
                }
            }
            (Some("integer"), Value::Number(number)) if number.is_i64() || number.is_u64() => {
                let number = number.as_f64().unwrap_or_default();
                if let Some(least) = schema.minimum.filter(|least| number < *least) {
                    wrong(format!("{number} is below the minimum of {least}"));
                }
                if let Some(most) = schema.maximum.filter(|most| number > *most) {
                    wrong(format!("{number} is above the maximum of {most}"));
                }
            }
            (Some("number"), Value::Number(_)) | (Some("boolean"), Value::Bool(_)) | (None, _) => {}
            (Some(kind), _) => wrong(format!("must be {}, and is {}", a_kind(kind), a_value(value))),
        }
    }

    fn object(&self, schema: &JSONSchemaProps, fields: &Map<String, Value>, path: &str, faults: &mut Vec<Fault>) {
        if let Some(most) = schema.max_properties.filter(|most| longer(fields.len(), *most)) {
            faults.push((path.to_owned(), format!("has {} entries, and may have {most}", fields.len())));
        }
        for missing in schema.required.iter().flatten().filter(|name| !fields.contains_key(*name)) {
            faults.push((join(path, missing), "is missing".to_owned()));
        }
        let properties = schema.properties.as_ref();
        for (name, value) in fields {
            if path.is_empty() && OF_EVERY_OBJECT.contains(&name.as_str()) {
                continue;
            }
            if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                self.check(property, value, &join(path, name), faults);
            } else if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
                self.check(values, value, &format!("{path}[{name}]"), faults);
            } else if let Some(properties) = properties.filter(|_| !path.starts_with("status")) {
                // A status is ours to write: one of another version is no mistake of whoever gives it.
                let similar = properties.keys().find(|known| known.eq_ignore_ascii_case(name));
                let hint = similar.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
                faults.push((join(path, name), format!("there is no such field{hint}")));
            }
        }
    }

    fn array(&self, schema: &JSONSchemaProps, items: &[Value], path: &str, faults: &mut Vec<Fault>) {
        if let Some(most) = schema.max_items.filter(|most| longer(items.len(), *most)) {
            faults.push((path.to_owned(), format!("has {} entries, and may have {most}", items.len())));
        }
        if let Some(least) = schema.min_items.filter(|least| !longer(items.len(), least - 1)) {
            faults.push((path.to_owned(), format!("has {} entries, and needs {least}", items.len())));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(of)) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.check(of, item, &format!("{path}[{index}]"), faults);
            }
        }
    }

    fn text(&self, schema: &JSONSchemaProps, text: &str) -> Option<String> {
        let length = text.chars().count();
        let allowed = || -> Vec<&str> { schema.enum_.iter().flatten().filter_map(|value| value.0.as_str()).collect() };
        if schema.enum_.is_some() && !allowed().contains(&text) {
            return Some(format!("{text:?} is none of {}", allowed().join(", ")));
        }
        if let Some(least) = schema.min_length.filter(|least| !longer(length, least - 1)) {
            return Some(if length == 0 {
                "is empty".to_owned()
            } else {
                format!("is shorter than {least} characters")
            });
        }
        if let Some(most) = schema.max_length.filter(|most| longer(length, *most)) {
            return Some(format!("has {length} characters, and may have {most}"));
        }
        let pattern = schema.pattern.as_ref().filter(|pattern| !self.matches(pattern, text))?;
        Some(format!("{text:?} does not match {pattern}"))
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        let mut patterns = self.patterns.borrow_mut();
        let compiled = patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).expect("the patterns of our definition are tested to compile"));
        compiled.is_match(text)
    }
}

/// Drops the nulls of objects, as API servers do where null is no value.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn longer(length: usize, limit: i64) -> bool {
    i64::try_from(length).is_ok_and(|length| length > limit)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn a_kind(kind: &str) -> String {
    match kind {
        "array" => "a list".to_owned(),
        "string" => "a text".to_owned(),
        "integer" | "object" => format!("an {kind}"),
        other => format!("a {other}"),
    }
}

fn a_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn faults(spec: &Value) -> Vec<String> {
        let object = json!({"apiVersion": "airship.airshipit.org/v1", "kind": "SIPCluster",
                            "metadata": {"name": "edge", "namespace": "tenant"}, "spec": spec});
        let faults = Admission::of_sipclusters().faults(&object);
        faults.into_iter().map(|(field, message)| format!("{field}: {message}")).collect()
    }

    #[rstest]
    #[case::services_missing(json!({}), "spec.services: is missing")]
    #[case::wrong_type(json!({"services": []}), "spec.services: must be an object, and is a list")]
    #[case::unknown_field(json!({"services": {}, "vmFlavor": "x"}), "spec.vmFlavor: there is no such field")]
    #[case::misspelt(json!({"services": {"jumphost": []}}), "spec.services.jumphost: there is no such field; did you mean jumpHost?")]
    #[case::a_text_for_a_number(json!({"services": {}, "nodes": {"Worker": {"count": {"active": "1"}}}}),
        "spec.nodes[Worker].count.active: must be an integer, and is \"1\"")]
    #[case::a_fraction(json!({"services": {}, "nodes": {"Worker": {"count": {"active": 1.5}}}}),
        "spec.nodes[Worker].count.active: must be an integer, and is 1.5")]
    #[case::below(json!({"services": {}, "nodes": {"Worker": {"count": {"standby": -1}}}}),
        "spec.nodes[Worker].count.standby: -1 is below the minimum of 0")]
    #[case::above(json!({"services": {"loadBalancerControlPlane": [{"nodePort": 70000}]}}),
        "spec.services.loadBalancerControlPlane[0].nodePort: 70000 is above the maximum of 65535")]
    #[case::not_of_the_list(json!({"services": {}, "replace": "Always"}), "spec.replace: \"Always\" is none of Never, WhenUnconsumed")]
    #[case::empty(json!({"services": {"auth": [{"nodePort": 0, "externalHost": ""}]}}), "spec.services.auth[0].externalHost: is empty")]
    #[case::too_long(json!({"services": {}, "nodes": {"Worker": {"topologyKey": "a".repeat(318)}}}),
        "spec.nodes[Worker].topologyKey: has 318 characters, and may have 317")]
    #[case::too_many(json!({"services": {}, "nodes": {"Worker": {"spread": vec![json!({"topologyKey": "a", "maxPerDomain": 1}); 9]}}}),
        "spec.nodes[Worker].spread: has 9 entries, and may have 8")]
    #[case::null_in_a_list(json!({"services": {"jumpHost": [null]}}), "spec.services.jumpHost[0]: must be an object, and is null")]
    #[case::a_rule(json!({"services": {"loadBalancerWorker": [{"nodePortRange": {"start": 2, "end": 1}}]}}),
        "spec.services.loadBalancerWorker[0].nodePortRange: start is above end")]
    fn what_an_api_server_refuses_is_refused_with_its_field(#[case] spec: Value, #[case] said: &str) {
        assert_eq!(faults(&spec), [said]);
    }

    #[test]
    fn patterns_are_shown() {
        let said = faults(&json!({"services": {}, "nodes": {"Worker": {"topologyKey": "my rack"}}}));
        assert!(said[0].starts_with("spec.nodes[Worker].topologyKey: \"my rack\" does not match ^(("), "{said:?}");
    }

    #[test]
    fn rules_are_asked_only_of_what_the_schema_accepts() {
        let range = json!({"nodePortRange": {"start": 20, "end": 10}});
        let spec = json!({"services": {"loadBalancerWorker": [range, {"nodePortRange": {"start": 5}}]}});
        assert_eq!(faults(&spec), ["spec.services.loadBalancerWorker[1].nodePortRange.end: is missing"]);
    }

    #[test]
    fn nulls_of_fields_are_not_given_and_those_of_lists_stay() {
        let mut value = json!({"a": null, "b": {"c": null}, "d": [null, {"e": null}]});
        without_nulls(&mut value);
        assert_eq!(value, json!({"b": {}, "d": [null, {}]}));
    }

    /// Every keyword of the definition is one that is checked above, or that checks nothing.
    #[test]
    fn no_keyword_of_the_definition_is_overlooked() {
        const KNOWN: [&str; 18] = [
            "type",
            "properties",
            "additionalProperties",
            "items",
            "required",
            "enum",
            "pattern",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "maxProperties",
            "description",
            "format",
            "x-kubernetes-validations",
            "x-kubernetes-list-type",
        ];
        fn walk(schema: &Value, admission: &Admission) {
            let Value::Object(keywords) = schema else { panic!("{schema} is no schema") };
            for (keyword, value) in keywords {
                assert!(KNOWN.contains(&keyword.as_str()) || keyword == "x-kubernetes-list-map-keys", "{keyword}");
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties.values().for_each(|p| walk(p, admission)),
                    ("items" | "additionalProperties", value) => walk(value, admission),
                    ("pattern", Value::String(pattern)) => assert!(!admission.matches(pattern, "\n")),
                    _ => {}
                }
            }
        }
        let admission = Admission::of_sipclusters();
        assert!(!admission.rules.has_errors(), "{:?}", admission.rules.compilation_errors());
        walk(&serde_json::to_value(&admission.schema).expect("JSON"), &admission);
    }
}
