//! The garbage collector: what it removes by owner references, namespaces that are deleted, foreground deletion.

use serde_json::{Value, json};

use super::{
    Kind, State,
    state::{Author, Stored},
};

/// The finalizer of an owner that waits for what it owns.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Carries on until nothing is left to do.
pub(crate) fn collect(state: &mut State) {
    while std::mem::take(&mut state.litter) {
        while step(state) {}
    }
}

type Place = (Kind, (String, String));

fn step(state: &mut State) -> bool {
    empty_namespaces(state) || (state.collects_garbage && (orphans(state) || foreground(state)))
}

fn everything(state: &State) -> impl Iterator<Item = (Place, &Value)> {
    state.objects.iter().flat_map(|(resource, objects)| {
        let kind = state.kinds.iter().find(|kind| kind.resource() == *resource);
        kind.into_iter().flat_map(move |kind| {
            objects.iter().map(move |(key, stored)| ((kind.clone(), key.clone()), &*stored.object))
        })
    })
}

fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

fn deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// An object whose owners are all gone goes.
fn orphans(state: &mut State) -> bool {
    let uids = state.uids();
    let lost = everything(state).find(|(_, object)| {
        let owners = owners(object);
        let gone = |owner: &Value| owner["uid"].as_str().is_none_or(|uid| !uids.contains(uid));
        !owners.is_empty() && !deleting(object) && owners.iter().all(gone)
    });
    let Some((place, _)) = lost else { return false };
    delete(state, &place);
    true
}

/// An owner deleted in the foreground: what it owns is deleted, then its finalizer goes.
fn foreground(state: &mut State) -> bool {
    let waits = |object: &Value| deleting(object) && finalizers(object).iter().any(|f| f == FOREGROUND);
    let waiting: Vec<(Place, String)> = everything(state)
        .filter(|(_, object)| waits(object))
        .map(|(place, object)| (place, object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()))
        .collect();
    for (place, uid) in waiting {
        let owned = |object: &Value| owners(object).iter().any(|owner| owner["uid"] == uid.as_str());
        let next = everything(state).find(|(_, object)| owned(object) && !deleting(object)).map(|(place, _)| place);
        if let Some(next) = next {
            delete(state, &next);
            return true;
        }
        let blocked = everything(state).any(|(_, object)| {
            owners(object).iter().any(|owner| owner["uid"] == uid.as_str() && owner["blockOwnerDeletion"] == true)
        });
        if !blocked {
            drop_finalizer(state, &place, FOREGROUND);
            return true;
        }
    }
    false
}

/// What is in a deleted namespace goes, then the namespace.
fn empty_namespaces(state: &mut State) -> bool {
    let names: Vec<String> = state
        .of_kind("Namespace")
        .filter(|namespace| deleting(namespace))
        .filter_map(|namespace| namespace["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    for name in names {
        let inside: Vec<(Place, bool)> = everything(state)
            .filter(|((_, (namespace, _)), _)| *namespace == name)
            .map(|(place, object)| (place, deleting(object)))
            .collect();
        if let Some((place, _)) = inside.iter().find(|(_, deleting)| !deleting) {
            delete(state, place);
            return true;
        }
        if inside.is_empty() {
            let kind = state.kind("Namespace").cloned().expect("it has objects");
            let (client, verb) = (Author::NOBODY.client, Author::NOBODY.verb);
            state.commit(&kind, &(String::new(), name), None, Author { client, verb });
            return true;
        }
    }
    false
}

/// Deletes as DELETE with background propagation does.
pub(crate) fn delete(state: &mut State, (kind, key): &Place) {
    let Some(stored) = state.stored(kind, key).cloned() else { return };
    if finalizers(&stored.object).is_empty() {
        state.commit(kind, key, None, Author::NOBODY);
    } else if !deleting(&stored.object) {
        let mut object = (*stored.object).clone();
        mark(state, kind, &mut object);
        state.commit(kind, key, Some(Stored { object: object.into(), owners: stored.owners }), Author::NOBODY);
    }
}

/// Marks an object as being deleted.
pub(crate) fn mark(state: &State, kind: &Kind, object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = json!(state.now());
    object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    if kind.generation {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

fn drop_finalizer(state: &mut State, (kind, key): &Place, finalizer: &str) {
    let Some(stored) = state.stored(kind, key).cloned() else { return };
    let mut object = (*stored.object).clone();
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|other| other != finalizer);
    }
    let after = (!finalizers(&object).is_empty()).then(|| Stored { object: object.into(), owners: stored.owners });
    state.commit(kind, key, after, Author::NOBODY);
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
}
