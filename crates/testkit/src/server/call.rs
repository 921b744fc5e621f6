//! A request as the server understands it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, header, request::Parts};
use serde_json::Value;

use super::{Kind, Refused};
use crate::log::Verb;

/// One request about a known kind.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub client: String,
    pub verb: Verb,
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    pub query: BTreeMap<String, String>,
    pub metadata_only: bool,
    pub body: Value,
}

impl Call {
    pub fn parse(client: &str, parts: &Parts, body: &Bytes, kinds: &[Kind]) -> Result<Call, Refused> {
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let place = Place::of(parts.uri.path()).ok_or_else(Refused::no_such_path)?;
        let kind = kinds
            .iter()
            .find(|kind| kind.group == place.group && kind.version == place.version && kind.plural == place.plural)
            .ok_or_else(Refused::no_such_path)?;
        if kind.namespaced == place.namespace.is_none() && place.name.is_some() {
            return Err(Refused::no_such_path());
        }
        if place.subresource.as_deref().is_some_and(|sub| sub != "status" || !kind.status) {
            return Err(Refused::no_such_path());
        }
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let verb = verb(&parts.method, place.name.is_some(), query.contains_key("watch"), content)?;
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body)
                .map_err(|error| Refused::bad_request(format!("the body is not JSON: {error}")))?
        };
        Ok(Call {
            client: client.to_owned(),
            verb,
            kind: kind.clone(),
            namespace: place.namespace,
            name: place.name,
            subresource: place.subresource,
            query,
            metadata_only: accept.contains("as=PartialObjectMetadata"),
            body,
        })
    }

    pub fn dry_run(&self) -> bool {
        self.asked("dryRun") == Some("All")
    }

    pub fn asked(&self, parameter: &str) -> Option<&str> {
        self.query.get(parameter).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn is_status(&self) -> bool {
        self.subresource.is_some()
    }

    /// The object's name, where the URL has one.
    pub fn object(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub fn key(&self) -> (String, String) {
        (self.namespace.clone().unwrap_or_default(), self.object().to_owned())
    }
}

fn verb(method: &Method, named: bool, watch: bool, content: &str) -> Result<Verb, Refused> {
    let patch = content.split(';').next().unwrap_or_default().trim();
    match (method.as_str(), named) {
        ("GET", _) if watch => Ok(Verb::Watch),
        ("GET", true) => Ok(Verb::Get),
        ("GET", false) => Ok(Verb::List),
        ("POST", false) => Ok(Verb::Create),
        ("PUT", true) => Ok(Verb::Replace),
        ("DELETE", true) => Ok(Verb::Delete),
        ("DELETE", false) => Ok(Verb::DeleteCollection),
        ("PATCH", true) => match patch {
            "application/apply-patch+yaml" => Ok(Verb::Apply),
            "application/merge-patch+json" => Ok(Verb::MergePatch),
            "application/json-patch+json" => Ok(Verb::JsonPatch),
            "application/strategic-merge-patch+json" => Ok(Verb::StrategicPatch),
            other => Err(Refused::unsupported(other)),
        },
        _ => Err(Refused::not_allowed()),
    }
}

/// Where a URL points.
struct Place {
    group: String,
    version: String,
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Place {
    fn of(path: &str) -> Option<Place> {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, taken) = match parts.as_slice() {
            ["api", version, ..] => ("", *version, 2),
            ["apis", group, version, ..] => (*group, *version, 3),
            _ => return None,
        };
        parts.drain(..taken);
        let mut namespace = None;
        // A Namespace itself has the same beginning as what is in it.
        if let ["namespaces", inside, rest, ..] = parts.as_slice()
            && !["status", "finalize"].contains(rest)
        {
            namespace = Some((*inside).to_owned());
            parts.drain(..2);
        }
        let mut parts = parts.into_iter().map(str::to_owned);
        let place = Place {
            group: group.into(),
            version: version.into(),
            plural: parts.next()?,
            namespace,
            name: parts.next(),
            subresource: parts.next(),
        };
        parts.next().is_none().then_some(place)
    }
}
