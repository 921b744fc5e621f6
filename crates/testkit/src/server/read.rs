//! Reads: one object, and lists, whole or page by page.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, Refused, State, selector::Selection};

/// One object.
pub(crate) fn get(state: &State, call: &Call) -> Result<Value, Refused> {
    not_from_the_future(state, call)?;
    let stored = state.stored(&call.kind, &call.key());
    let stored = stored.ok_or_else(|| Refused::not_found(&call.kind, call.object()))?;
    Ok(shown(call, &stored.object))
}

/// All objects of a kind.
pub(crate) fn list(state: &mut State, call: &Call) -> Result<Value, Refused> {
    not_from_the_future(state, call)?;
    let selection = Selection::parse(call.asked("labelSelector"), call.asked("fieldSelector"))?;
    let (version, found) = match call.asked("continue") {
        Some(token) => {
            let (version, rest) = state.pages.remove(token).ok_or_else(expired)?;
            if version < state.oldest {
                return Err(expired());
            }
            (version, rest)
        }
        None => (state.version, matching(state, call, &selection)),
    };
    let limit = call.asked("limit").and_then(|limit| limit.parse::<usize>().ok()).filter(|limit| *limit > 0);
    let (page, rest) = match limit {
        Some(limit) if limit < found.len() => (found[..limit].to_vec(), found[limit..].to_vec()),
        _ => (found, Vec::new()),
    };
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if !rest.is_empty() {
        let token = format!("page-{}", state.uid());
        metadata["continue"] = json!(token);
        metadata["remainingItemCount"] = json!(rest.len());
        state.pages.insert(token, (version, rest));
    }
    let items: Vec<Value> = page
        .iter()
        .map(|object| {
            let mut item = shown(call, object);
            // As the real server: items of built-in kinds do not repeat their type.
            if !call.kind.custom && !call.metadata_only {
                let fields = item.as_object_mut().expect("an object");
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            item
        })
        .collect();
    let (api_version, kind) = if call.metadata_only {
        ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned())
    } else {
        (call.kind.api_version(), format!("{}List", call.kind.kind))
    };
    Ok(json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items }))
}

fn expired() -> Refused {
    Refused::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    )
}

/// The objects of the kind and namespace of `call` that a selection takes, by namespace and name.
pub(crate) fn matching(state: &State, call: &Call, selection: &Selection) -> Vec<Arc<Value>> {
    let objects = state.objects.get(&call.kind.resource());
    objects
        .into_iter()
        .flatten()
        .filter(|(key, _)| call.namespace.as_ref().is_none_or(|namespace| *namespace == key.0))
        .filter(|(_, stored)| selection.takes(&stored.object))
        .map(|(_, stored)| stored.object.clone())
        .collect()
}

/// The object as this request sees it: in the version it asks for, or its metadata only.
pub(crate) fn shown(call: &Call, object: &Value) -> Value {
    if call.metadata_only {
        return json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] });
    }
    let mut object = object.clone();
    object["apiVersion"] = json!(call.kind.api_version());
    object
}

fn not_from_the_future(state: &State, call: &Call) -> Result<(), Refused> {
    let asked = call.asked("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
    if asked > state.version { Err(Refused::too_new(asked, state.version)) } else { Ok(()) }
}
