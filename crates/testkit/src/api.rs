//! The in-memory API server as a test holds it: clients, faults, laws, log, and a way in without requests.

use std::{collections::BTreeMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    clock::Clock,
    faults::Faults,
    log::{Entry, Verb},
    server::{self, Connection, Kind, Server},
    snapshot::Snapshot,
};

/// An API server in memory. Clones are the same server.
///
/// When a handle is dropped, a law that did not hold makes the test fail.
#[derive(Clone)]
pub struct Api {
    server: Arc<Server>,
}

impl Default for Api {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = self.violations();
            self.server.state().violations.clear();
            assert!(violations.is_empty(), "laws that did not hold:\n{}", violations.join("\n"));
        }
    }
}

impl Api {
    /// A server with the kinds of Kubernetes that we touch, those of Metal3 and Cluster API, and all of ours; with the
    /// namespaces `default`, `kube-system` and `kube-public`.
    pub fn new() -> Self {
        Self::with_clock(Clock::new())
    }

    /// The same on a clock of the test's.
    pub fn with_clock(clock: Clock) -> Self {
        Api { server: Server::new(clock, server::known()) }
    }

    pub(crate) fn over(server: Arc<Server>) -> Self {
        Api { server }
    }

    /// A client; its name is `test`.
    pub fn client(&self) -> kube::Client {
        self.client_named("test")
    }

    /// A client with an identity of its own, for faults and the log.
    pub fn client_named(&self, name: &str) -> kube::Client {
        kube::Client::new(Connection { server: self.server.clone(), client: name.into() }, "default")
    }

    /// Where faults are arranged.
    pub fn faults(&self) -> Faults {
        Faults::new(self.server.clone())
    }

    /// The server's clock.
    pub fn clock(&self) -> Clock {
        self.server.clock.clone()
    }

    /// Adds a kind, as installing a CRD does.
    pub fn register(&self, kind: Kind) {
        self.server.state().kinds.push(kind);
    }

    /// Takes a kind away with all its objects, as removing a CRD does.
    pub fn unregister(&self, kind: &str) {
        let mut state = self.server.state();
        let Some(resource) = state.kind(kind).map(Kind::resource) else { return };
        state.kinds.retain(|known| known.resource() != resource);
        state.objects.remove(&resource);
        drop(state);
        self.faults().close_watches();
    }

    /// Whether owner references are acted on. They are, unless said otherwise.
    pub fn collects_garbage(&self, collects: bool) {
        self.server.state().collects_garbage = collects;
    }

    /// A law that must hold right after every write, whoever made it.
    pub fn invariant(&self, name: &str, holds: impl Fn(&Snapshot<'_>) -> Result<(), String> + Send + Sync + 'static) {
        self.server.state().laws.push((name.to_owned(), Arc::new(holds)));
    }

    /// Laws that did not hold so far, one line each.
    pub fn violations(&self) -> Vec<String> {
        let state = self.server.state();
        state.violations.iter().map(|violation| format!("{}: {}", violation.law, violation.how)).collect()
    }

    /// Looks at everything there is now.
    pub fn look<T>(&self, look: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        look(&Snapshot::new(&self.server.state(), None))
    }
}

/// Objects, without requests: nothing of this is in the log or subject to faults; watches see it and laws judge it.
impl Api {
    /// Puts an object there as it is, status included, replacing what had its name. Its namespace is made if missing.
    /// Returns it as it is kept.
    pub fn seed(&self, object: Value) -> Value {
        self.server.state().put(object)
    }

    /// Puts several objects there.
    pub fn seed_all(&self, objects: impl IntoIterator<Item = Value>) {
        let mut state = self.server.state();
        for object in objects {
            state.put(object);
        }
    }

    /// Changes an object in place; `key` is `namespace/name`, or the name of a cluster-wide one.
    pub fn edit(&self, kind: &str, key: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut object = self.get(kind, key).unwrap_or_else(|| panic!("{kind} {key} is not there"));
        change(&mut object);
        self.seed(object)
    }

    /// Takes an object away at once, finalizers or not.
    pub fn remove(&self, kind: &str, key: &str) {
        assert!(self.server.state().take(kind, key), "{kind} {key} is not there");
    }

    /// One object, as it is kept.
    pub fn get(&self, kind: &str, key: &str) -> Option<Value> {
        self.server.state().find(kind, key).cloned()
    }

    /// One object as a Rust type.
    pub fn get_as<K: DeserializeOwned>(&self, kind: &str, key: &str) -> Option<K> {
        self.get(kind, key).map(|object| serde_json::from_value(object).expect("the object has the shape of its type"))
    }

    /// All objects of a kind, by namespace and name.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        self.server.state().of_kind(kind).cloned().collect()
    }

    /// All objects of a kind as a Rust type.
    pub fn list_as<K: DeserializeOwned>(&self, kind: &str) -> Vec<K> {
        let parse = |object| serde_json::from_value(object).expect("the object has the shape of its type");
        self.list(kind).into_iter().map(parse).collect()
    }

    /// `namespace/name` of all objects of a kind.
    pub fn names(&self, kind: &str) -> Vec<String> {
        self.list(kind).iter().map(server::key_text).collect()
    }
}

/// The log of all requests.
impl Api {
    /// Every request so far.
    pub fn log(&self) -> Vec<Entry> {
        self.server.log().clone()
    }

    /// How many requests there were so far: a mark for [`Api::since`].
    pub fn mark(&self) -> usize {
        self.server.log().len()
    }

    /// Requests since a mark.
    pub fn since(&self, mark: usize) -> Vec<Entry> {
        self.server.log()[mark..].to_vec()
    }

    /// Requests that changed something, since a mark.
    pub fn writes_since(&self, mark: usize) -> Vec<Entry> {
        self.server.log()[mark..].iter().filter(|entry| entry.wrote()).cloned().collect()
    }

    /// How many requests there were, by verb and kind.
    pub fn counts(&self) -> BTreeMap<(Verb, String), usize> {
        let mut counts = BTreeMap::new();
        for entry in self.server.log().iter() {
            *counts.entry((entry.verb, entry.kind.clone())).or_default() += 1;
        }
        counts
    }

    /// The log as text, one request per line: what a failed test shows.
    pub fn transcript(&self) -> String {
        self.server.log().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}
