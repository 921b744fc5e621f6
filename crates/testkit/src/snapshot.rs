//! Everything there is at one instant, for laws that must hold at every instant.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{log::Verb, server::State};

/// All objects right after a write.
pub struct Snapshot<'a> {
    state: &'a State,
    changed: Option<Changed<'a>>,
}

/// The write that led to a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    /// Who wrote; empty: the test itself, or the garbage collector.
    pub client: &'a str,
    /// How; none: the test itself, or the garbage collector.
    pub verb: Option<Verb>,
    /// Kind of the object.
    pub kind: &'a str,
    /// The object before; none: it was made.
    pub before: Option<&'a Value>,
    /// The object after; none: it is gone.
    pub after: Option<&'a Value>,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(state: &'a State, changed: Option<Changed<'a>>) -> Self {
        Snapshot { state, changed }
    }

    /// What has just changed.
    pub fn changed(&self) -> Option<Changed<'a>> {
        self.changed
    }

    /// All objects of a kind, by namespace and name.
    pub fn all(&self, kind: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.state.of_kind(kind)
    }

    /// One object; `key` is `namespace/name`, or the name of a cluster-wide one.
    pub fn get(&self, kind: &str, key: &str) -> Option<&'a Value> {
        self.state.find(kind, key)
    }

    /// All objects of a kind as a Rust type; those that do not parse are left out.
    pub fn parsed<K: DeserializeOwned>(&self, kind: &str) -> Vec<K> {
        self.all(kind).filter_map(|object| K::deserialize(object).ok()).collect()
    }
}
