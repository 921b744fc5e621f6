//! Writes: creation, replacement, patches, server-side apply, deletion, and the checks they share.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call, Kind, Refused, State,
    garbage::{self, FOREGROUND, finalizers},
    owners::{Owner, Owners},
    patch, rules,
    selector::Selection,
    state::{Author, Stored},
};
use crate::log::{Effect, Verb};

/// What a write is answered with.
pub(crate) struct Written {
    pub code: u16,
    pub body: Arc<Value>,
    pub effect: Effect,
}

/// Metadata that only the server sets.
const SERVERS: [&str; 6] =
    ["uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Carries out a write, and what follows from it.
pub(crate) fn write(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let written = match call.verb {
        Verb::Create => create(state, call),
        Verb::Replace => replace(state, call),
        Verb::Apply => apply(state, call),
        Verb::Delete => delete(state, call),
        Verb::DeleteCollection => delete_collection(state, call),
        _ => patch(state, call),
    }?;
    garbage::collect(state);
    Ok(written)
}

fn create(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let mut object = typed(call, call.body.clone())?;
    if object["metadata"]["name"].as_str().unwrap_or_default().is_empty()
        && let Some(prefix) = object["metadata"]["generateName"].as_str()
    {
        let uid = state.uid();
        object["metadata"]["name"] = json!(format!("{prefix}{}", &uid[uid.len() - 5..]));
    }
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty() && version != "0") {
        return Err(Refused::internal("resourceVersion should not be set on objects to be created"));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let key = (call.namespace.clone().unwrap_or_default(), name);
    if let Some(stored) = state.stored(&call.kind, &key) {
        let deleting = !stored.object["metadata"]["deletionTimestamp"].is_null();
        return Err(Refused::already_exists(&call.kind, &key.1, deleting));
    }
    let owner = owner(call, false);
    make(state, call, &key, object, |owners, kind, object| {
        owners.updated(kind, &owner, &Value::Null, object);
    })
}

/// Makes an object that is not there.
fn make(
    state: &mut State,
    call: &Call,
    key: &(String, String),
    mut object: Value,
    own: impl FnOnce(&mut Owners, &Kind, &Value),
) -> Result<Written, Refused> {
    let kind = &call.kind;
    namespace_takes(state, call, &key.1)?;
    let metadata =
        object["metadata"].as_object_mut().ok_or_else(|| Refused::bad_request("metadata is not an object"))?;
    for field in SERVERS.iter().chain(&["managedFields", "selfLink"]) {
        metadata.remove(*field);
    }
    if kind.namespaced {
        metadata.insert("namespace".into(), json!(key.0));
    }
    tidy(metadata);
    metadata.insert("uid".into(), json!(state.uid()));
    metadata.insert("creationTimestamp".into(), json!(state.now()));
    if kind.generation {
        metadata.insert("generation".into(), json!(1));
    }
    if kind.status {
        object.as_object_mut().expect("it has metadata").remove("status");
    }
    match kind.kind.as_str() {
        "Namespace" => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(key.1);
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        "Pod" => object["status"] = json!({ "phase": "Pending" }),
        _ => {}
    }
    rules::settle(state, kind, None, &mut object)?;
    let mut owners = Owners::default();
    own(&mut owners, kind, &object);
    object["metadata"]["managedFields"] = owners.managed_fields(&kind.api_version(), &state.now());
    if call.dry_run() {
        return Ok(Written { code: 201, body: object.into(), effect: Effect::NoOp });
    }
    let body = state.commit(kind, key, Some(Stored { object: object.into(), owners }), author(call));
    Ok(Written { code: 201, body, effect: Effect::Wrote })
}

fn namespace_takes(state: &State, call: &Call, name: &str) -> Result<(), Refused> {
    let (true, Some(namespace)) = (call.kind.namespaced, &call.namespace) else { return Ok(()) };
    let Some(found) = state.find("Namespace", namespace) else {
        let kind = state.kind("Namespace").cloned().unwrap_or_else(|| call.kind.clone());
        return Err(Refused::not_found(&kind, namespace));
    };
    if found["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    Err(Refused::forbidden(&call.kind, name, &why))
}

fn replace(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let kind = &call.kind;
    let object = typed(call, call.body.clone())?;
    let key = call.key();
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let Some(stored) = state.stored(kind, &key).cloned() else {
        if !kind.create_on_update || call.is_status() {
            return Err(Refused::not_found(kind, &key.1));
        }
        if !uid.is_empty() {
            return Err(Refused::conflict(kind, &key.1, &uid_differs(uid, "")));
        }
        let owner = owner(call, false);
        return make(state, call, &key, object, |owners, kind, object| {
            owners.updated(kind, &owner, &Value::Null, object);
        });
    };
    let have = stored.object["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != have {
        return Err(Refused::conflict(kind, &key.1, &uid_differs(uid, have)));
    }
    let unconditional = kind.unconditional && !call.is_status();
    if version(&object).is_none() && !unconditional {
        let why = "Invalid value: 0: must be specified for an update";
        return Err(Refused::invalid(kind, &key.1, "metadata.resourceVersion", why));
    }
    update(state, call, &stored, object)
}

fn patch(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let key = call.key();
    let Some(stored) = state.stored(&call.kind, &key).cloned() else {
        return Err(Refused::not_found(&call.kind, &key.1));
    };
    let object = typed(call, patch::patched(call, &stored.object)?)?;
    update(state, call, &stored, object)
}

/// What replacement and patches share: `object` is how the whole object shall be.
fn update(state: &mut State, call: &Call, stored: &Stored, object: Value) -> Result<Written, Refused> {
    let new = reconciled(state, call, &stored.object, object)?;
    let mut owners = stored.owners.clone();
    owners.updated(&call.kind, &owner(call, false), &stored.object, &new);
    Ok(keep(state, call, stored, new, owners))
}

fn apply(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let kind = call.kind.clone();
    let key = call.key();
    if call.asked("fieldManager").is_none() {
        return Err(Refused::bad_request(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ));
    }
    let mut config = typed(call, call.body.clone())?;
    if config["metadata"]["managedFields"].as_array().is_some_and(|fields| !fields.is_empty()) {
        return Err(Refused::bad_request("metadata.managedFields must be nil"));
    }
    if call.body["apiVersion"].is_null() || call.body["kind"].is_null() {
        return Err(Refused::bad_request("invalid object type: apiVersion and kind must be set"));
    }
    only(call, &mut config);
    let force = call.asked("force") == Some("true");
    let owner = owner(call, true);
    let uid = config["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let Some(stored) = state.stored(&kind, &key).cloned() else {
        if call.is_status() {
            return Err(Refused::not_found(&kind, &key.1));
        }
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Refused::conflict(&kind, &key.1, &why));
        }
        if call.body["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
            return Err(nameless(&key.1));
        }
        let applied = config.clone();
        return make(state, call, &key, config, |owners, kind, _| {
            let merged = owners.applied(kind, &owner, &Value::Null, &applied, true);
            merged.map(drop).unwrap_or_default();
        });
    };
    let mut owners = stored.owners.clone();
    let merged = owners.applied(&kind, &owner, &stored.object, &config, force);
    let mut merged = merged.map_err(|conflicts| Refused::manager_conflict(&kind, &key.1, &conflicts))?;
    // The version that the apply names is the one it is checked against.
    for field in ["uid", "resourceVersion"] {
        if !config["metadata"][field].is_null() {
            merged["metadata"][field] = config["metadata"][field].clone();
        }
    }
    let new = reconciled(state, call, &stored.object, merged)?;
    Ok(keep(state, call, &stored, new, owners))
}

/// An apply to the object leaves its status alone, one to the status everything else.
fn only(call: &Call, config: &mut Value) {
    let Some(fields) = config.as_object_mut() else { return };
    if call.is_status() {
        fields.retain(|name, _| ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| ["name", "namespace", "uid", "resourceVersion"].contains(&name.as_str()));
        }
    } else if call.kind.status {
        fields.remove("status");
    }
}

/// The object as it may become: checks versions, keeps what is not the request's to change, counts generations.
fn reconciled(state: &State, call: &Call, before: &Value, mut object: Value) -> Result<Value, Refused> {
    let kind = &call.kind;
    let name = call.object();
    if version(&object).is_some_and(|version| before["metadata"]["resourceVersion"] != version) {
        return Err(Refused::modified(kind, name));
    }
    let uid = &object["metadata"]["uid"];
    if !uid.is_null() && *uid != "" && *uid != before["metadata"]["uid"] {
        let why = format!("Invalid value: {uid}: field is immutable");
        return Err(Refused::invalid(kind, name, "metadata.uid", &why));
    }
    if call.is_status() {
        let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
        object = before.clone();
        match status {
            Some(status) => object["status"] = status,
            None => drop(object.as_object_mut().and_then(|fields| fields.remove("status"))),
        }
        return Ok(object);
    }
    if kind.status {
        match before.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => drop(object.as_object_mut().and_then(|fields| fields.remove("status"))),
        }
    }
    let metadata =
        object["metadata"].as_object_mut().ok_or_else(|| Refused::bad_request("metadata is not an object"))?;
    metadata.remove("managedFields");
    for field in SERVERS {
        match before["metadata"].get(field) {
            Some(value) => drop(metadata.insert(field.into(), value.clone())),
            None => drop(metadata.remove(field)),
        }
    }
    if kind.namespaced {
        metadata.insert("namespace".into(), before["metadata"]["namespace"].clone());
    }
    tidy(metadata);
    new_finalizers(kind, name, before, &object)?;
    rules::settle(state, kind, Some(before), &mut object)?;
    if kind.generation && rest(before) != rest(&object) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
        object["metadata"]["generation"] = json!(generation + 1);
    }
    Ok(object)
}

fn new_finalizers(kind: &Kind, name: &str, before: &Value, after: &Value) -> Result<(), Refused> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let had = finalizers(before);
    let new: Vec<String> = finalizers(after).into_iter().filter(|f| !had.contains(f)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let why = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {new:?}"
    );
    Err(Refused::invalid(kind, name, "metadata.finalizers", &why))
}

/// Keeps an updated object, unless nothing changed; one that is being deleted goes with its last finalizer.
fn keep(state: &mut State, call: &Call, stored: &Stored, mut new: Value, owners: Owners) -> Written {
    let mut old = (*stored.object).clone();
    let managed =
        |object: &mut Value| object["metadata"].as_object_mut().and_then(|fields| fields.remove("managedFields"));
    managed(&mut old);
    managed(&mut new);
    if old == new && owners == stored.owners {
        return Written { code: 200, body: stored.object.clone(), effect: Effect::NoOp };
    }
    new["metadata"]["managedFields"] = owners.managed_fields(&call.kind.api_version(), &state.now());
    if call.dry_run() {
        return Written { code: 200, body: new.into(), effect: Effect::NoOp };
    }
    let leaves = !new["metadata"]["deletionTimestamp"].is_null() && finalizers(&new).is_empty();
    let object: Arc<Value> = new.into();
    let after = (!leaves).then(|| Stored { object: object.clone(), owners });
    let written = state.commit(&call.kind, &call.key(), after, author(call));
    Written { code: 200, body: if leaves { object } else { written }, effect: Effect::Wrote }
}

fn delete(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let kind = &call.kind;
    let key = call.key();
    let Some(stored) = state.stored(kind, &key).cloned() else {
        return Err(Refused::not_found(kind, &key.1));
    };
    let wanted = &call.body["preconditions"];
    for (field, called) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (want, have) =
            (wanted[field].as_str().unwrap_or_default(), stored.object["metadata"][field].as_str().unwrap_or_default());
        if !want.is_empty() && want != have {
            let how = if field == "uid" { "deleted and then recreated" } else { "modified" };
            let why = format!(
                "the {called} in the precondition ({want}) does not match the {called} in record ({have}). The object might have been {how}"
            );
            return Err(Refused::conflict(kind, &key.1, &why));
        }
    }
    if call.dry_run() || call.body["dryRun"][0] == "All" {
        return Ok(Written { code: 200, body: stored.object, effect: Effect::NoOp });
    }
    let policy = call.asked("propagationPolicy").or_else(|| call.body["propagationPolicy"].as_str());
    let mut object = (*stored.object).clone();
    let mut held = finalizers(&object);
    if policy == Some("Foreground") && !held.iter().any(|f| f == FOREGROUND) {
        held.push(FOREGROUND.to_owned());
        object["metadata"]["finalizers"] = json!(held);
    }
    let marked = !object["metadata"]["deletionTimestamp"].is_null();
    let held = !held.is_empty() || kind.kind == "Namespace";
    if !held {
        let uid = stored.object["metadata"]["uid"].clone();
        state.commit(kind, &key, None, author(call));
        let details = json!({ "name": key.1, "group": kind.group, "kind": kind.plural, "uid": uid });
        let done =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
        return Ok(Written { code: 200, body: done.into(), effect: Effect::Wrote });
    }
    if !marked {
        garbage::mark(state, kind, &mut object);
        if kind.kind == "Namespace" {
            object["status"]["phase"] = json!("Terminating");
        }
    }
    if object == *stored.object {
        return Ok(Written { code: 200, body: stored.object, effect: Effect::NoOp });
    }
    let body = state.commit(kind, &key, Some(Stored { object: object.into(), owners: stored.owners }), author(call));
    Ok(Written { code: 200, body, effect: Effect::Wrote })
}

fn delete_collection(state: &mut State, call: &Call) -> Result<Written, Refused> {
    let selection = Selection::parse(call.asked("labelSelector"), call.asked("fieldSelector"))?;
    let objects = state.objects.get(&call.kind.resource());
    let keys: Vec<_> = objects
        .into_iter()
        .flatten()
        .filter(|(key, stored)| {
            call.namespace.as_ref().is_none_or(|ns| *ns == key.0) && selection.takes(&stored.object)
        })
        .map(|(key, _)| key.clone())
        .collect();
    let mut effect = Effect::NoOp;
    for (namespace, name) in keys {
        let one = Call {
            namespace: call.kind.namespaced.then_some(namespace),
            name: Some(name),
            verb: Verb::Delete,
            ..call.clone()
        };
        if delete(state, &one)?.effect == Effect::Wrote {
            effect = Effect::Wrote;
        }
    }
    let done = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" });
    Ok(Written { code: 200, body: done.into(), effect })
}

/// The body as an object of the kind that the URL names.
fn typed(call: &Call, mut object: Value) -> Result<Value, Refused> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Refused::bad_request("the body is not an object"));
    };
    for (field, value) in [("apiVersion", call.kind.api_version()), ("kind", call.kind.kind.clone())] {
        let given = fields.entry(field).or_insert_with(|| json!(value));
        if *given != value.as_str() {
            let message = format!("the {field} in the data ({given}) does not match the expected {field} ({value})");
            return Err(Refused::bad_request(message));
        }
    }
    if !fields.entry("metadata").or_insert_with(|| json!({})).is_object() {
        return Err(Refused::bad_request("metadata is not an object"));
    }
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !given.is_empty() && call.namespace.as_deref() != Some(given) {
        return Err(Refused::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let given = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(name) = &call.name {
        if given.is_empty() && call.verb == Verb::Replace {
            return Err(nameless(name));
        }
        if given.is_empty() {
            object["metadata"]["name"] = json!(name);
        } else if given != *name {
            let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
            return Err(Refused::bad_request(message));
        }
    }
    Ok(object)
}

fn nameless(url: &str) -> Refused {
    let message = format!("the name of the object ({url} based on URL) was undeterminable: name must be provided");
    Refused::bad_request(message)
}

/// Empty labels, annotations and so on are the same as none.
fn tidy(metadata: &mut serde_json::Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Everything that a generation counts.
fn rest(object: &Value) -> Vec<(&String, &Value)> {
    let counted = |name: &str| !["metadata", "status", "apiVersion", "kind"].contains(&name);
    object.as_object().into_iter().flatten().filter(|(name, _)| counted(name)).collect()
}

fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty() && *version != "0")
}

fn uid_differs(want: &str, have: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Precondition failed: UID in precondition: {want}, UID in object meta: {have}"
    )
}

fn author(call: &Call) -> Author<'_> {
    Author { client: &call.client, verb: Some(call.verb) }
}

fn owner(call: &Call, applies: bool) -> Owner {
    Owner {
        manager: call.asked("fieldManager").unwrap_or(&call.client).to_owned(),
        applies,
        subresource: call.subresource.clone().unwrap_or_default(),
    }
}
