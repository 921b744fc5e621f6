//! Why the API server did not do what was asked, and what to do about it.

use std::{fmt, time::Duration};

use kube::core::Status;

/// A request that failed: what was to be done, to which object, and why it was not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {verb} {target}: {cause}")]
pub struct Error {
    /// What was to be done.
    pub verb: Verb,
    /// To which object.
    pub target: Target,
    /// Why it was not.
    pub cause: Cause,
}

/// What was to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read all objects of a kind.
    List,
    /// Make an object.
    Create,
    /// Update the fields that are ours, by server-side apply.
    Apply,
    /// Update some fields, by merge patch.
    Patch,
    /// Replace an object.
    Replace,
    /// Replace the status of an object.
    Status,
    /// Delete an object.
    Delete,
}

impl Verb {
    /// The verb as a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Create => "create",
            Verb::Apply => "apply",
            Verb::Patch => "patch",
            Verb::Replace => "replace",
            Verb::Status => "status",
            Verb::Delete => "delete",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Get => "read",
            Verb::Status => "write the status of",
            Verb::Apply => "update",
            other => other.label(),
        })
    }
}

/// The object of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind, such as `Service`.
    pub kind: String,
    /// Its namespace; none for cluster-wide kinds.
    pub namespace: Option<String>,
    /// Its name; empty for all objects of the kind.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(if self.name.is_empty() { "*" } else { &self.name })
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The object is not what the decision was made on. Nothing was written.
    #[error("it changed since it was read ({0})")]
    Conflict(String),
    /// The object, its namespace or its kind is not there. Nothing was written.
    #[error("it does not exist")]
    Gone,
    /// An object of this name is there already. Nothing was written.
    #[error("it exists already")]
    AlreadyExists,
    /// The server refuses the content; only a change of it helps. Nothing was written.
    #[error("{0}")]
    Invalid(String),
    /// We may not, or an admission rule or quota says no. Nothing was written.
    #[error("{0}")]
    Forbidden(String),
    /// The server did not answer, or not now. **The write may have taken effect**: read before deciding anew.
    #[error("the API server is unavailable: {0}")]
    Unavailable(String),
    /// This process does not lead (any more). Nothing was sent.
    #[error("this process does not lead")]
    NotLeading,
    /// Something else; the text says what. The write may have taken effect.
    #[error("{0}")]
    Other(String),
}

/// When to try again. A request is never resent as it was: the object is read live and everything is decided anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Now: read live, decide anew.
    Now,
    /// After this long, doubling each time.
    After(Duration),
    /// Only when an object changes.
    OnChange,
    /// Not at all: another process leads.
    Never,
}

impl Error {
    /// Condition reason, event reason and metric label; one of a closed set.
    pub fn reason(&self) -> &'static str {
        self.cause.reason()
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match &self.cause {
            Cause::Conflict(_) | Cause::Gone | Cause::AlreadyExists => Retry::Now,
            Cause::Unavailable(_) => Retry::After(Duration::from_secs(1)),
            Cause::Forbidden(_) | Cause::Other(_) => Retry::After(Duration::from_secs(15)),
            Cause::Invalid(_) => Retry::OnChange,
            Cause::NotLeading => Retry::Never,
        }
    }

    /// Whether the object was not what the decision was made on: it changed, vanished or appeared.
    pub fn is_stale(&self) -> bool {
        matches!(self.cause, Cause::Conflict(_) | Cause::Gone | Cause::AlreadyExists)
    }

    /// Whether the object is not there.
    pub fn is_gone(&self) -> bool {
        self.cause == Cause::Gone
    }
}

impl Cause {
    /// One of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Cause::Conflict(_) => "Conflict",
            Cause::Gone => "NotFound",
            Cause::AlreadyExists => "AlreadyExists",
            Cause::Invalid(_) => "Invalid",
            Cause::Forbidden(_) => "Forbidden",
            Cause::Unavailable(_) => "Unavailable",
            Cause::NotLeading => "NotLeading",
            Cause::Other(_) => "Other",
        }
    }

    /// Sorts what the client library reports.
    pub fn of(error: &kube::Error) -> Cause {
        match error {
            kube::Error::Api(status) => Cause::of_status(status),
            kube::Error::Service(source) => Cause::Unavailable(chain(source.as_ref())),
            kube::Error::HyperError(source) => Cause::Unavailable(chain(source)),
            kube::Error::ReadEvents(source) => Cause::Unavailable(chain(source)),
            kube::Error::SerdeError(source) => Cause::Other(format!("the answer does not parse: {source}")),
            other => Cause::Other(chain(other)),
        }
    }

    /// Sorts the server's own report. Source: Kubernetes API conventions, "HTTP Status codes".
    pub fn of_status(status: &Status) -> Cause {
        let text = || status.message.clone();
        if status.is_already_exists() {
            return Cause::AlreadyExists;
        }
        if status.is_not_found() {
            return Cause::Gone;
        }
        if status.is_conflict() {
            // An apply that names the uid of an object that is no more is refused as a conflict.
            let vanished = status.message.contains("no existing object was found");
            return if vanished { Cause::Gone } else { Cause::Conflict(text()) };
        }
        if status.is_invalid() {
            // A patch that names the uid of an earlier object of the same name.
            let uid =
                status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.field == "metadata.uid");
            return if uid { Cause::Conflict(text()) } else { Cause::Invalid(text()) };
        }
        match status.code {
            401 | 403 => Cause::Forbidden(text()),
            400 | 413 | 415 => Cause::Invalid(text()),
            408 | 410 | 429 | 500..=599 => Cause::Unavailable(text()),
            _ => Cause::Other(text()),
        }
    }
}

/// The text of an error with those that caused it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u16, reason: &str, message: &str) -> Cause {
        Cause::of_status(&Status::failure(message, reason).with_code(code))
    }

    #[test]
    fn the_servers_answers_are_told_apart() {
        assert_eq!(said(409, "Conflict", "the object has been modified").reason(), "Conflict");
        assert_eq!(said(409, "AlreadyExists", "already exists").reason(), "AlreadyExists");
        assert_eq!(said(404, "NotFound", "not found").reason(), "NotFound");
        assert_eq!(said(422, "Invalid", "spec.ports: Required").reason(), "Invalid");
        assert_eq!(said(403, "Forbidden", "quota").reason(), "Forbidden");
        assert_eq!(said(503, "ServiceUnavailable", "starting").reason(), "Unavailable");
        assert_eq!(said(500, "InternalError", "etcd").reason(), "Unavailable");
        assert_eq!(said(429, "TooManyRequests", "slow down").reason(), "Unavailable");
    }

    #[test]
    fn an_apply_to_an_object_that_is_gone_says_gone() {
        let message = "Operation cannot be fulfilled on services \"a\": uid mismatch: the provided object specified uid 1, and no existing object was found";
        assert_eq!(said(409, "Conflict", message), Cause::Gone);
    }

    #[test]
    fn an_error_names_object_and_cause() {
        let target = Target { kind: "Service".into(), namespace: Some("tenants".into()), name: "lb".into() };
        let error = Error { verb: Verb::Apply, target, cause: Cause::Invalid("spec.ports: Required value".into()) };
        assert_eq!(error.to_string(), "cannot update Service tenants/lb: spec.ports: Required value");
    }
}
