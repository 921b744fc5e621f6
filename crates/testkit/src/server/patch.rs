//! Merge patch (RFC 7386), JSON patch (RFC 6902) and strategic merge patch.

use serde_json::{Value, json};

use super::{Call, Kind, Refused};
use crate::log::Verb;

/// The object as the patch of `call` makes it.
pub(crate) fn patched(call: &Call, live: &Value) -> Result<Value, Refused> {
    let mut object = live.clone();
    match call.verb {
        Verb::JsonPatch => {
            let patch: json_patch::Patch = serde_json::from_value(call.body.clone())
                .map_err(|error| Refused::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(&mut object, &patch).map_err(|error| {
                Refused::any(
                    422,
                    "Invalid",
                    format!("the server rejected our request due to an error in our request: {error}"),
                )
            })?;
        }
        Verb::StrategicPatch if call.kind.custom => {
            return Err(Refused::unsupported("application/strategic-merge-patch+json"));
        }
        Verb::StrategicPatch => strategic(&call.kind, "", &mut object, &call.body)?,
        _ => json_patch::merge(&mut object, &call.body),
    }
    Ok(object)
}

/// Source: `+patchMergeKey` of `k8s.io/api`, for the lists that our tests patch.
fn merge_key(kind: &Kind, at: &str) -> Option<&'static str> {
    Some(match at.rsplit('.').next()? {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => "name",
        "volumeMounts" => "mountPath",
        "conditions" => "type",
        "ownerReferences" => "uid",
        "ports" if kind.kind == "Service" => "port",
        "ports" => "containerPort",
        _ => return None,
    })
}

fn strategic(kind: &Kind, at: &str, object: &mut Value, patch: &Value) -> Result<(), Refused> {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in fields {
        if name.starts_with('$') {
            return Err(Refused::bad_request(format!("directive {name} is not known to this server")));
        }
        let path = format!("{at}.{name}");
        match (value, merge_key(kind, &path)) {
            (Value::Null, _) => {
                if let Some(object) = object.as_object_mut() {
                    object.remove(name);
                }
            }
            (Value::Array(elements), Some(key)) => {
                let list = &mut object[name];
                if !list.is_array() {
                    *list = json!([]);
                }
                let list = list.as_array_mut().expect("made one just now");
                for element in elements {
                    if element["$patch"] == "delete" {
                        list.retain(|other| other[key] != element[key]);
                    } else if let Some(other) = list.iter_mut().find(|other| other[key] == element[key]) {
                        strategic(kind, &path, other, element)?;
                    } else {
                        list.push(element.clone());
                    }
                }
            }
            (Value::Object(_), _) => strategic(kind, &path, &mut object[name], value)?,
            _ => object[name] = value.clone(),
        }
    }
    Ok(())
}
