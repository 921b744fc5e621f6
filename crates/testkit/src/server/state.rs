//! What is stored: objects, the version counter, and the history that watches are fed from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{Kind, owners::Owners};
use crate::{
    clock::Clock,
    log::Verb,
    snapshot::{Changed, Snapshot},
};

/// An object and who owns which of its fields.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub object: Arc<Value>,
    pub owners: Owners,
}

/// One change, as watches see it.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub version: u64,
    pub before: Option<Arc<Value>>,
    pub after: Option<Arc<Value>>,
}

type Law = Arc<dyn Fn(&Snapshot<'_>) -> Result<(), String> + Send + Sync>;

/// A law that did not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub law: String,
    pub how: String,
}

/// Who asks for a change, for laws and owners.
#[derive(Clone, Copy)]
pub(crate) struct Author<'a> {
    pub client: &'a str,
    pub verb: Option<Verb>,
}

impl Author<'_> {
    /// The test itself, or the server's own housekeeping.
    pub const NOBODY: Author<'static> = Author { client: "", verb: None };
}

/// Everything the server keeps.
pub(crate) struct State {
    pub clock: Clock,
    pub kinds: Vec<Kind>,
    pub version: u64,
    /// Versions before this one are forgotten: watches and continued lists from there get 410.
    pub oldest: u64,
    pub objects: BTreeMap<String, BTreeMap<(String, String), Stored>>,
    pub history: BTreeMap<String, Vec<Happened>>,
    /// Lists that are read page by page, by token.
    pub pages: BTreeMap<String, (u64, Vec<Arc<Value>>)>,
    pub collects_garbage: bool,
    /// Something changed that the garbage collector may have to follow up.
    pub litter: bool,
    pub laws: Vec<(String, Law)>,
    pub violations: Vec<Violation>,
    /// Told the version of each change.
    pub changed: tokio::sync::watch::Sender<u64>,
    made: u64,
}

impl State {
    pub fn new(clock: Clock, kinds: Vec<Kind>) -> Self {
        let version = 1000;
        let mut state = State {
            clock,
            kinds,
            version,
            oldest: 0,
            objects: BTreeMap::new(),
            history: BTreeMap::new(),
            pages: BTreeMap::new(),
            collects_garbage: true,
            litter: false,
            laws: Vec::new(),
            violations: Vec::new(),
            changed: tokio::sync::watch::Sender::new(version),
            made: 0,
        };
        for name in ["default", "kube-system", "kube-public"] {
            state.ensure_namespace(name);
        }
        state
    }

    pub fn kind(&self, kind: &str) -> Option<&Kind> {
        self.kinds.iter().find(|known| known.kind == kind)
    }

    pub fn of_kind<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        let resource = self.kind(kind).map(Kind::resource);
        resource
            .and_then(|resource| self.objects.get(&resource))
            .into_iter()
            .flatten()
            .map(|(_, stored)| &*stored.object)
    }

    pub fn find<'a>(&'a self, kind: &str, key: &str) -> Option<&'a Value> {
        let resource = self.kind(kind)?.resource();
        self.objects.get(&resource)?.get(&split(key)).map(|stored| &*stored.object)
    }

    pub fn stored(&self, kind: &Kind, key: &(String, String)) -> Option<&Stored> {
        self.objects.get(&kind.resource())?.get(key)
    }

    pub fn uid(&mut self) -> String {
        self.made += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.made)
    }

    pub fn now(&self) -> String {
        // Metadata times have whole seconds.
        self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Keeps a change: `after` none removes. The object gets the next version; laws are checked; watches are told.
    pub fn commit(&mut self, kind: &Kind, key: &(String, String), after: Option<Stored>, by: Author<'_>) -> Arc<Value> {
        self.version += 1;
        let resource = kind.resource();
        let objects = self.objects.entry(resource.clone()).or_default();
        let before = objects.remove(key);
        let (written, kept) = if let Some(Stored { object, owners }) = after {
            let mut object = Arc::unwrap_or_clone(object);
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            let object = Arc::new(object);
            objects.insert(key.clone(), Stored { object: object.clone(), owners });
            (object.clone(), Some(object))
        } else {
            // A watch tells the last state, under the version of the deletion.
            let mut last = before.as_ref().map_or(Value::Null, |stored| (*stored.object).clone());
            last["metadata"]["resourceVersion"] = json!(self.version.to_string());
            (Arc::new(last), None)
        };
        let meta = &written["metadata"];
        self.litter |= kept.is_none() || !meta["deletionTimestamp"].is_null() || !meta["ownerReferences"].is_null();
        let gone = kept.is_none().then(|| written.clone());
        let happened = Happened {
            version: self.version,
            before: gone.or_else(|| before.as_ref().map(|stored| stored.object.clone())),
            after: kept.clone(),
        };
        self.history.entry(resource).or_default().push(happened);
        let before = before.as_ref().map(|stored| &*stored.object);
        let changed = Changed { client: by.client, verb: by.verb, kind: &kind.kind, before, after: kept.as_deref() };
        let broken = self.broken(changed);
        self.violations.extend(broken);
        self.changed.send_replace(self.version);
        written
    }

    fn broken(&self, changed: Changed<'_>) -> Vec<Violation> {
        let snapshot = Snapshot::new(self, Some(changed));
        let told = |law: &str, why: String| {
            let name = changed.after.or(changed.before).map(key_text).unwrap_or_default();
            let verb = changed.verb.map(|verb| format!("{verb:?} ")).unwrap_or_default();
            let how = format!("{why} (after {verb}{} {name} by {:?})", changed.kind, changed.client);
            Violation { law: law.to_owned(), how }
        };
        self.laws.iter().filter_map(|(law, holds)| holds(&snapshot).err().map(|why| told(law, why))).collect()
    }

    pub fn ensure_namespace(&mut self, name: &str) {
        let Some(kind) = self.kind("Namespace").cloned() else { return };
        let key = (String::new(), name.to_owned());
        if self.stored(&kind, &key).is_some() {
            return;
        }
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "uid": self.uid(), "creationTimestamp": self.now(), "labels": { "kubernetes.io/metadata.name": name } },
            "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
        });
        self.commit(&kind, &key, Some(Stored { object: Arc::new(object), owners: Owners::default() }), Author::NOBODY);
    }

    /// Puts an object there as it is.
    pub fn put(&mut self, mut object: Value) -> Value {
        let text = |at: &Value| at.as_str().unwrap_or_default().to_owned();
        let (api_version, called) = (text(&object["apiVersion"]), text(&object["kind"]));
        let kind = self.kinds.iter().find(|kind| kind.kind == called && kind.api_version() == api_version);
        let kind = kind.unwrap_or_else(|| panic!("{api_version} {called} is not a kind of this server")).clone();
        let key = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        assert!(kind.namespaced != key.0.is_empty(), "{called} {}: a namespace too many or too few", key.1);
        if kind.namespaced {
            self.ensure_namespace(&key.0);
        }
        let before = self.stored(&kind, &key).cloned();
        let old = before.as_ref().map_or(Value::Null, |stored| (*stored.object).clone());
        for (field, fresh) in [("uid", json!(self.uid())), ("creationTimestamp", json!(self.now()))] {
            if object["metadata"][field].is_null() {
                object["metadata"][field] = if old.is_null() { fresh } else { old["metadata"][field].clone() };
            }
        }
        if kind.generation {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
            let changed = old["spec"] != object["spec"];
            object["metadata"]["generation"] = json!(generation + i64::from(changed || old.is_null()));
        }
        if let Err(refused) =
            super::rules::settle(self, &kind, before.as_ref().map(|stored| &*stored.object), &mut object)
        {
            panic!("{called} {}/{}: {}", key.0, key.1, refused.message);
        }
        let owners = before.map(|stored| stored.owners).unwrap_or_default();
        let kept = self.commit(&kind, &key, Some(Stored { object: object.into(), owners }), Author::NOBODY);
        super::garbage::collect(self);
        (*kept).clone()
    }

    /// Takes an object away; false if it is not there.
    pub fn take(&mut self, kind: &str, key: &str) -> bool {
        let Some(kind) = self.kind(kind).cloned() else { return false };
        let key = split(key);
        if self.stored(&kind, &key).is_none() {
            return false;
        }
        self.commit(&kind, &key, None, Author::NOBODY);
        super::garbage::collect(self);
        true
    }

    /// Uids of everything there is.
    pub fn uids(&self) -> BTreeSet<&str> {
        self.objects.values().flatten().filter_map(|(_, stored)| stored.object["metadata"]["uid"].as_str()).collect()
    }
}

/// `namespace/name` or `name`, taken apart.
pub(crate) fn split(key: &str) -> (String, String) {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    (namespace.to_owned(), name.to_owned())
}

/// `namespace/name` of an object.
pub(crate) fn key_text(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    if text("namespace").is_empty() {
        text("name").to_owned()
    } else {
        format!("{}/{}", text("namespace"), text("name"))
    }
}
