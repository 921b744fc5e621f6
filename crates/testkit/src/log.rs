//! What was asked of the API server, by whom, and what came of it.

use std::fmt;

use jiff::Timestamp;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// All objects of a kind.
    List,
    /// What happens to the objects of a kind.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Replace,
    /// PATCH: server-side apply.
    Apply,
    /// PATCH: merge patch (RFC 7386).
    MergePatch,
    /// PATCH: JSON patch (RFC 6902).
    JsonPatch,
    /// PATCH: strategic merge patch.
    StrategicPatch,
    /// DELETE of one object.
    Delete,
    /// DELETE of all objects of a kind.
    DeleteCollection,
}

impl Verb {
    /// Whether it can change something.
    pub fn writes(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing was to be changed.
    Read,
    /// Something changed.
    Wrote,
    /// The write found everything as it should be, or was a dry run.
    NoOp,
    /// Refused with this HTTP status and message.
    Refused(u16, String),
    /// Never reached the server.
    Lost,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position in the log, from 0.
    pub number: usize,
    /// When, by the server's clock.
    pub at: Timestamp,
    /// Who: the name given to [`crate::Api::client_named`].
    pub client: String,
    /// What.
    pub verb: Verb,
    /// Of which kind.
    pub kind: String,
    /// In which namespace; none for cluster-wide kinds and all namespaces.
    pub namespace: Option<String>,
    /// Which object; none for lists, watches and creations by generated name.
    pub name: Option<String>,
    /// Which part of it, such as `status`.
    pub subresource: Option<String>,
    /// Whether nothing was to be kept.
    pub dry_run: bool,
    /// What came of it.
    pub effect: Effect,
    /// Body of a write as sent; null for reads. Tests look here for secrets and preconditions.
    pub body: serde_json::Value,
}

impl Entry {
    /// Whether it changed something.
    pub fn wrote(&self) -> bool {
        self.effect == Effect::Wrote
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4} {} {:?} {}", self.number, self.client, self.verb, self.kind)?;
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        let namespace = self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        write!(f, " {namespace}{}: ", self.name.as_deref().unwrap_or("*"))?;
        match &self.effect {
            Effect::Refused(code, message) => write!(f, "{code} {message}"),
            other => write!(f, "{other:?}"),
        }
    }
}
