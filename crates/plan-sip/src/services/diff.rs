//! Compares what shall be with what is there, and says what has to change.
//!
//! ```text
//!  not there ─────────────────────────────────────────► Create
//!  there, another digest, owner or content ───────────► Update (uid, resourceVersion)
//!  there, and what differs can never be changed ──────► Delete; the next plan creates it
//!  there with the owner's labels, not desired ────────► Delete
//!  there with the labels of another SIPCluster ───────► a problem, and hands off
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Facts, Kind, Object, Owned, Problem, Seen, Step, Want, names};

/// What comparison finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// The changes, in no particular order.
    pub steps: Vec<Step>,
    /// Objects whose live form was there to compare with, and holds.
    pub verified: BTreeSet<(Kind, String)>,
    /// Names that another SIPCluster uses.
    pub problems: Vec<Problem>,
}

/// The steps from what `seen` has to `desired`. What `keep` names stays as it is where it is there.
pub(crate) fn difference(
    want: &Want<'_>,
    seen: &Seen,
    desired: Vec<Object>,
    keep: &BTreeSet<(Kind, String)>,
) -> Difference {
    let mut found = Difference::default();
    let wanted: BTreeSet<(Kind, String)> = desired.iter().map(|object| (object.kind, object.name.clone())).collect();
    for object in desired {
        let key = (object.kind, object.name.clone());
        match seen.objects.get(&key) {
            None => found.steps.push(Step::Create(object)),
            Some(owned) if serves_another(want, owned) => found.problems.push(taken(want, &key, owned)),
            Some(owned) if unchangeable(&object, owned) => found.steps.push(delete(&key, owned)),
            Some(owned) => match compare(want, &object, owned) {
                Verdict::Same => {
                    if owned.live.is_some() {
                        found.verified.insert(key);
                    }
                }
                Verdict::Differs { whole } => found.steps.push(Step::Update {
                    object,
                    uid: owned.uid.clone(),
                    resource_version: owned.resource_version.clone(),
                    whole,
                }),
            },
        }
    }
    found.steps.extend(superfluous(want, &seen.objects, &wanted, keep));
    found
}

/// What is there and shall not be: everything with our labels that is neither desired nor kept; at the end also what the
/// original made under the names of the spec.
fn superfluous<'a>(
    want: &'a Want<'_>,
    objects: &'a BTreeMap<(Kind, String), Owned>,
    wanted: &'a BTreeSet<(Kind, String)>,
    keep: &'a BTreeSet<(Kind, String)>,
) -> impl Iterator<Item = Step> + 'a {
    let inherited = if want.gone { names::taken_over(&want.owner.name, want.spec) } else { BTreeSet::new() };
    objects
        .iter()
        .filter(|(key, owned)| !wanted.contains(*key) && !keep.contains(*key) && !serves_another(want, owned))
        .filter(move |(key, owned)| owned.owner_uid.is_some() || inherited.contains(*key))
        .map(|(key, owned)| delete(key, owned))
}

fn delete((kind, name): &(Kind, String), owned: &Owned) -> Step {
    Step::Delete {
        kind: *kind,
        name: name.clone(),
        uid: owned.uid.clone(),
        resource_version: owned.resource_version.clone(),
    }
}

fn serves_another(want: &Want<'_>, owned: &Owned) -> bool {
    owned.owner_name.as_ref().is_some_and(|name| *name != want.owner.name)
}

/// The entry that an object of this name is for.
fn entry(want: &Want<'_>, name: &str) -> String {
    let entries = names::entries(&want.owner.name, want.spec);
    let of = |instance: &str| name.strip_prefix(instance).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let longest = entries.into_iter().filter(|(instance, _)| of(instance)).max_by_key(|(instance, _)| instance.len());
    longest.map_or_else(|| name.to_owned(), |(_, entry)| entry)
}

fn taken(want: &Want<'_>, (kind, name): &(Kind, String), owned: &Owned) -> Problem {
    let other = owned.owner_name.as_deref().unwrap_or_default();
    Problem {
        waiting: false,
        entry: entry(want, name),
        message: format!(
            "{kind} {}/{name} belongs to SIPCluster {other}: give the entry of spec.services another name",
            want.owner.namespace
        ),
    }
}

/// Whether what differs is a field that the API server never lets anyone change.
fn unchangeable(object: &Object, owned: &Owned) -> bool {
    match object.kind {
        Kind::Deployment => {
            let live = owned.live.as_ref().and_then(|live| live.pointer("/spec/selector"));
            live.is_some_and(|live| !exact(&object.body["spec"]["selector"], live))
        }
        Kind::Service => {
            let asked = object.body["spec"]["clusterIP"].as_str();
            match (asked, &owned.facts) {
                (Some(asked), Facts::Service { cluster_ip, .. }) => !cluster_ip.is_empty() && asked != cluster_ip,
                _ => false,
            }
        }
        // Nobody may turn a binding to another role.
        Kind::RoleBinding => {
            let live = owned.live.as_ref().and_then(|live| live.pointer("/roleRef"));
            live.is_some_and(|live| !holds(&object.body["roleRef"], live))
        }
        Kind::Secret
        | Kind::ServiceAccount
        | Kind::ConfigMap
        | Kind::PersistentVolumeClaim
        | Kind::PodDisruptionBudget => false,
    }
}

enum Verdict {
    Same,
    Differs { whole: bool },
}

fn compare(want: &Want<'_>, object: &Object, owned: &Owned) -> Verdict {
    let more =
        owned.live.as_ref().is_some_and(|live| !exact_parts_hold(&object.body, live) || outgrown(&object.body, live));
    let whole = owned.owner_uid.is_none() || more;
    let same = owned.applied.as_deref() == object.applied()
        && owned.owner_uid.as_deref() == Some(&want.owner_uid)
        && owned.live.as_ref().is_none_or(|live| holds(&object.body, live));
    if same && !whole { Verdict::Same } else { Verdict::Differs { whole } }
}

/// Maps that have what we say and nothing else: one label more selects something else, and a key of a Secret that is no
/// longer wanted must not stay.
const EXACT: [&str; 4] = ["/data", "/spec/selector", "/spec/template/spec/nodeSelector", "/spec/podSelector"];

fn exact_parts_hold(desired: &Value, live: &Value) -> bool {
    EXACT.iter().all(|path| {
        let none = Value::Null;
        exact(desired.pointer(path).unwrap_or(&none), live.pointer(path).unwrap_or(&none))
    })
}

/// Whether somewhere a list has more items than we say. An item that others added, or that the original had, survives
/// a server-side apply.
fn outgrown(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().any(|(key, desired)| live.get(key).is_some_and(|live| outgrown(desired, live)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() < live.len() || desired.iter().zip(live).any(|(desired, live)| outgrown(desired, live))
        }
        _ => false,
    }
}

fn exact(one: &Value, other: &Value) -> bool {
    holds(one, other) && holds(other, one)
}

/// Whether everything `desired` says is so in `live`.
///
/// A map may have more keys in `live` (what the API server fills in, and labels and annotations of others); a list may
/// not have more items. Nothing (null, an empty text, list or map) is also there when it is absent: the API server
/// leaves such fields out.
pub fn holds(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().all(|(key, value)| holds(value, live.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len() && desired.iter().zip(live).all(|(desired, live)| holds(desired, live))
        }
        (desired, live) => desired == live || (is_nothing(desired) && is_nothing(live)),
    }
}

/// Whether a value says nothing. A map says nothing if all its values do.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
