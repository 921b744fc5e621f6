//! Who owns which field: server-side apply and `metadata.managedFields`.
//!
//! Source: Kubernetes' "Server-Side Apply" and structured-merge-diff. A field is written as its path of `f:<name>`,
//! `k:<keys>` (element of a list with keys) and `v:<value>` (element of a set), as in `managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Kind;

type Path = Vec<String>;
type Fields = BTreeSet<Path>;

/// A writer, as far as ownership goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub manager: String,
    pub applies: bool,
    pub subresource: String,
}

/// The fields of an object by owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Owners(BTreeMap<Owner, Fields>);

/// What is not anybody's: identity and what the server keeps.
const NOBODYS: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

impl Owners {
    /// A write that is not an apply: what it changed becomes its own.
    pub fn updated(&mut self, kind: &Kind, owner: &Owner, before: &Value, after: &Value) {
        let (old, new) = (leaves(kind, before), leaves(kind, after));
        let changed: Fields =
            new.iter().filter(|(path, value)| old.get(*path) != Some(value)).map(|(path, _)| path.clone()).collect();
        for fields in self.0.values_mut() {
            fields.retain(|path| new.contains_key(path) && !changed.contains(path));
        }
        self.0.entry(owner.clone()).or_default().extend(changed);
        self.0.retain(|_, fields| !fields.is_empty());
    }

    /// Merges what `owner` applies into `live`. Without `force`, fields of others that would change are returned instead.
    pub fn applied(
        &mut self,
        kind: &Kind,
        owner: &Owner,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> Result<Value, Vec<(String, String)>> {
        let (have, want) = (leaves(kind, live), leaves(kind, config));
        let differs = |path: &Path| have.contains_key(path) && have.get(path) != want.get(path);
        let mut conflicts = Vec::new();
        for (other, fields) in self.0.iter_mut().filter(|(other, _)| *other != owner) {
            for path in fields.iter().filter(|path| want.contains_key(*path) && differs(path)) {
                conflicts.push((other.manager.clone(), dotted(path)));
            }
            fields.retain(|path| !(want.contains_key(path) && differs(path)));
        }
        if !conflicts.is_empty() && !force {
            return Err(conflicts);
        }
        let mut merged = live.clone();
        merge(kind, "", &mut merged, config);
        let before = self.0.insert(owner.clone(), want.keys().cloned().collect()).unwrap_or_default();
        // In their order an element comes before what is in it, and takes it along.
        for path in before.iter().filter(|path| !is_key(path)) {
            if !self.0.values().flatten().any(|owned| owned.starts_with(path)) {
                remove(&mut merged, path);
            }
        }
        self.0.retain(|_, fields| !fields.is_empty());
        Ok(merged)
    }

    /// The object without what is not there any more, as `metadata.managedFields`.
    pub fn managed_fields(&self, api_version: &str, now: &str) -> Value {
        let entries = self.0.iter().map(|(owner, fields)| {
            let mut entry = json!({
                "manager": owner.manager, "operation": if owner.applies { "Apply" } else { "Update" },
                "apiVersion": api_version, "time": now, "fieldsType": "FieldsV1", "fieldsV1": tree(fields),
            });
            if !owner.subresource.is_empty() {
                entry["subresource"] = json!(owner.subresource);
            }
            entry
        });
        entries.collect()
    }
}

/// Every field that has an owner, with its value.
fn leaves(kind: &Kind, object: &Value) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (name, value) in
                    value.as_object().into_iter().flatten().filter(|(n, _)| !NOBODYS.contains(&n.as_str()))
                {
                    let path = vec!["f:metadata".into(), format!("f:{name}")];
                    collect(kind, &format!(".metadata.{name}"), path, value, &mut found);
                }
            }
            _ => collect(kind, &format!(".{name}"), vec![format!("f:{name}")], value, &mut found),
        }
    }
    found
}

fn collect(kind: &Kind, at: &str, path: Path, value: &Value, found: &mut BTreeMap<Path, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                collect(
                    kind,
                    &format!("{at}.{name}"),
                    [path.clone(), vec![format!("f:{name}")]].concat(),
                    value,
                    found,
                );
            }
        }
        Value::Array(elements) => match keys(kind, at, elements) {
            None => {
                found.insert(path, value.clone());
            }
            Some(keys) => {
                for element in elements {
                    let step = [path.clone(), vec![step(&keys, element)]].concat();
                    if keys.is_empty() {
                        found.insert(step, element.clone());
                    } else {
                        found.insert(step.clone(), Value::Null);
                        collect(kind, &format!("{at}[]"), step, element, found);
                    }
                }
            }
        },
        _ => {
            found.insert(path, value.clone());
        }
    }
}

/// The keys that give a list's elements their identity: none if the list is one value, no keys if it is a set.
/// Sources: `+listType` and `+patchMergeKey` of `k8s.io/api`; for custom kinds their schema.
fn keys(kind: &Kind, at: &str, elements: &[Value]) -> Option<Vec<String>> {
    let name = at.rsplit('.').next().unwrap_or_default();
    let have = |keys: &[&str]| {
        let all = elements.iter().all(|element| keys.iter().all(|key| *key == "protocol" || !element[*key].is_null()));
        (all && !elements.is_empty()).then(|| keys.iter().map(|key| (*key).to_owned()).collect())
    };
    if at.starts_with(".metadata.") {
        return match name {
            "finalizers" => Some(Vec::new()),
            "ownerReferences" => have(&["uid"]),
            _ => None,
        };
    }
    if kind.custom {
        return kind.lists.get(at).cloned();
    }
    match name {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" | "secrets" => have(&["name"]),
        "volumeMounts" => have(&["mountPath"]),
        "volumeDevices" => have(&["devicePath"]),
        "hostAliases" => have(&["ip"]),
        "topologySpreadConstraints" => have(&["topologyKey", "whenUnsatisfiable"]),
        "conditions" | "addresses" if at.starts_with(".status.") => have(&["type"]),
        "ports" if at == ".spec.ports" && kind.kind == "Service" => have(&["port", "protocol"]),
        "ports" if at.contains("ontainers[]") => have(&["containerPort", "protocol"]),
        _ => None,
    }
}

/// The step to an element of a list with keys, or of a set.
fn step(keys: &[String], element: &Value) -> String {
    if keys.is_empty() {
        return format!("v:{element}");
    }
    let identity: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let default = if key == "protocol" { json!("TCP") } else { Value::Null };
            (key.clone(), element.get(key).cloned().unwrap_or(default))
        })
        .collect();
    format!("k:{}", Value::Object(identity))
}

fn merge(kind: &Kind, at: &str, live: &mut Value, config: &Value) {
    match (&mut *live, config) {
        (Value::Object(live), Value::Object(config)) => {
            for (name, value) in config {
                merge(kind, &format!("{at}.{name}"), live.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(have), Value::Array(want)) => {
            let both: Vec<Value> = have.iter().chain(want).cloned().collect();
            let Some(keys) = keys(kind, at, &both) else {
                *live = config.clone();
                return;
            };
            for element in want {
                let identity = step(&keys, element);
                match have.iter_mut().find(|other| step(&keys, other) == identity) {
                    Some(other) => merge(kind, &format!("{at}[]"), other, element),
                    None => have.push(element.clone()),
                }
            }
        }
        _ => *live = config.clone(),
    }
}

/// Takes a field out, and the maps that become empty by it.
fn remove(at: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (at, first.split_at(2)) {
        (Value::Object(fields), ("f:", name)) => {
            if rest.is_empty() {
                fields.remove(name);
            } else if let Some(inner) = fields.get_mut(name) {
                remove(inner, rest);
                if inner.as_object().is_some_and(Map::is_empty) || inner.as_array().is_some_and(Vec::is_empty) {
                    fields.remove(name);
                }
            }
        }
        (Value::Array(elements), (sort, identity)) => {
            let wanted: Value = serde_json::from_str(identity).unwrap_or(Value::Null);
            let is = |element: &Value| match (sort, &wanted) {
                ("k:", Value::Object(keys)) => {
                    keys.iter().all(|(key, value)| element.get(key).unwrap_or(&json!("TCP")) == value)
                }
                _ => *element == wanted,
            };
            if rest.is_empty() {
                elements.retain(|element| !is(element));
            } else if let Some(element) = elements.iter_mut().find(|element| is(element)) {
                remove(element, rest);
            }
        }
        _ => {}
    }
}

/// Whether a field is what gives its element its identity: it goes with the element only.
fn is_key(path: &Path) -> bool {
    let [.., element, field] = path.as_slice() else { return false };
    let keys: Option<Value> = element.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok());
    keys.is_some_and(|keys| keys.get(&field[2..]).is_some())
}

fn dotted(path: &Path) -> String {
    path.iter()
        .map(|step| step.strip_prefix("f:").map_or_else(|| format!("[{}]", &step[2..]), |name| format!(".{name}")))
        .collect()
}

fn tree(fields: &Fields) -> Value {
    let mut root = json!({});
    for path in fields {
        let mut at = &mut root;
        for step in path {
            at = &mut at[step.as_str()];
            if at.is_null() {
                *at = json!({});
            }
        }
        if path.last().is_some_and(|step| step.starts_with("k:")) {
            at["."] = json!({});
        }
    }
    root
}
