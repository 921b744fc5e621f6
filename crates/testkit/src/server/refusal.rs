//! `Status` bodies, word for word as the real server's.

use serde_json::{Value, json};

use super::Kind;

/// A request that is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Value,
}

impl Refused {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Refused { code, reason, message: message.into(), details: json!({}) }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = json!({ "name": name, "group": kind.group, "kind": kind.plural });
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource())).about(kind, name)
    }

    pub fn already_exists(kind: &Kind, name: &str, deleting: bool) -> Self {
        let prefix = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} {name:?} already exists", kind.resource());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).about(kind, name)
    }

    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} {name:?} is forbidden: {why}", kind.resource())).about(kind, name)
    }

    pub fn invalid(kind: &Kind, name: &str, field: &str, why: &str) -> Self {
        let called = if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
        let mut refused = Self::new(422, "Invalid", format!("{called} {name:?} is invalid: {field}: {why}"));
        let causes = json!([{ "reason": "FieldValueInvalid", "message": why, "field": field }]);
        refused.details = json!({ "name": name, "group": kind.group, "kind": kind.kind, "causes": causes });
        refused
    }

    pub fn unsupported(content_type: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types do not include {content_type}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub fn not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn too_new(asked: u64, current: u64) -> Self {
        let mut refused = Self::new(504, "Timeout", format!("Too large resource version: {asked}, current: {current}"));
        refused.details = json!({ "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }], "retryAfterSeconds": 1 });
        refused
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    pub fn manager_conflict(kind: &Kind, name: &str, conflicts: &[(String, String)]) -> Self {
        let told: Vec<String> =
            conflicts.iter().map(|(who, field)| format!("conflict with {who:?}: {field}")).collect();
        let mut refused =
            Self::new(409, "Conflict", format!("Apply failed with {} conflicts: {}", told.len(), told.join(", ")));
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(who, field)| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {who:?}"), "field": field }))
            .collect();
        refused.details = json!({ "name": name, "group": kind.group, "kind": kind.plural, "causes": causes });
        refused
    }

    /// Any status, for injected faults.
    pub fn any(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, reason, message)
    }

    pub fn body(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": self.details, "code": self.code,
        })
    }
}
