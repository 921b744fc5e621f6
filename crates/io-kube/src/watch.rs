//! Watches: one stream of changes per kind, which survives everything but its reader.
//!
//! The first list comes page by page and is handed on object by object. An object that does not parse is reported and
//! stops only itself. What went away while the stream was cut off is reported as deleted when it is listed again.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base::Key;
use futures::{Stream, StreamExt as _, stream, stream::BoxStream};
use kube::{
    Api, Client, Resource,
    core::{ApiResource, DynamicObject, DynamicResourceScope, ObjectMeta},
    runtime::watcher::{self, Event, watcher},
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::Instant;

use crate::error::Cause;

/// What happened to the objects of a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<K> {
    /// An object is there, new or changed.
    Applied(K),
    /// An object is gone.
    Deleted {
        /// Its namespace (empty for cluster-wide kinds) and name.
        key: Key,
        /// Its uid.
        uid: String,
    },
    /// An object is there that does not parse. Older knowledge about it is void.
    Unreadable {
        /// Its namespace (empty for cluster-wide kinds) and name.
        key: Key,
        /// Its uid.
        uid: String,
        /// What is wrong with it.
        error: String,
        /// Its metadata, which every object has.
        metadata: Box<ObjectMeta>,
    },
    /// Every object that exists has been handed on since the stream began, or began anew: these. Objects known from
    /// before and not among them have been reported as [`Change::Deleted`] just now.
    Listed(BTreeSet<Key>),
    /// The server refuses to list or watch this kind. Tried again.
    Forbidden(String),
    /// The server does not know this kind (its CRD is not installed), or the namespace. Tried again.
    Absent,
    /// The server is not reachable; what is known may be old. Tried again.
    Interrupted(String),
}

/// Where objects are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everywhere.
    All,
    /// In one namespace.
    Namespace(String),
}

/// The changes of a kind with a Rust type, for ever.
pub fn changes<K>(
    client: Client,
    scope: &Scope,
    config: watcher::Config,
) -> impl Stream<Item = Change<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    over(client, &ApiResource::erase::<K>(&()), scope, config)
}

/// The changes of a kind known by name only, for ever.
pub fn changes_of(
    client: Client,
    resource: &ApiResource,
    scope: &Scope,
    config: watcher::Config,
) -> impl Stream<Item = Change<DynamicObject>> + Send + use<> {
    over(client, resource, scope, config)
}

fn over<K>(
    client: Client,
    resource: &ApiResource,
    scope: &Scope,
    config: watcher::Config,
) -> impl Stream<Item = Change<K>> + Send + use<K>
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let api: Api<Guarded<K>> = match scope {
        Scope::All => Api::all_with(client, resource),
        Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, resource),
    };
    let watching = Watching { api, config, inner: None, pause: Pause::default(), wait: None };
    let events = stream::unfold(watching, |mut watching| async move { Some((watching.next().await?, watching)) });
    let mut known = Known::default();
    events.flat_map(move |event| stream::iter(known.changes(event)))
}

/// A watch that pauses after failures.
struct Watching<K> {
    api: Api<Guarded<K>>,
    config: watcher::Config,
    inner: Option<BoxStream<'static, watcher::Result<Event<Guarded<K>>>>>,
    pause: Pause,
    wait: Option<Duration>,
}

impl<K> Watching<K>
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    async fn next(&mut self) -> Option<watcher::Result<Event<Guarded<K>>>> {
        if let Some(wait) = self.wait.take() {
            tokio::time::sleep(wait).await;
        }
        let start = || watcher(self.api.clone(), self.config.clone()).boxed();
        let event = self.inner.get_or_insert_with(start).next().await?;
        if let Err(error) = &event {
            self.wait = Some(self.pause.next());
            // A watch that was refused would go on without a word once it is allowed again: listing anew says so.
            if matches!(interrupted::<K>(error), Some(Change::Forbidden(_) | Change::Absent)) {
                self.inner = None;
            }
        }
        Some(event)
    }
}

/// What the reader of the stream has been told, so that it can be told what vanished in between.
#[derive(Default)]
struct Known {
    objects: BTreeMap<Key, String>,
    listing: Option<BTreeSet<Key>>,
}

impl Known {
    fn changes<K: Resource>(&mut self, event: watcher::Result<Event<Guarded<K>>>) -> Vec<Change<K>> {
        match event {
            Ok(Event::Init) => {
                self.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => self.applied(object),
            Ok(Event::Delete(object)) => {
                let (key, uid) = identity(object.meta());
                self.objects.remove(&key);
                vec![Change::Deleted { key, uid }]
            }
            Ok(Event::InitDone) => self.listed(),
            Err(error) => interrupted(&error).into_iter().collect(),
        }
    }

    fn applied<K: Resource>(&mut self, object: Guarded<K>) -> Vec<Change<K>> {
        let (key, uid) = identity(object.meta());
        if let Some(listing) = &mut self.listing {
            listing.insert(key.clone());
        }
        let before = self.objects.insert(key.clone(), uid.clone());
        let replaced = before.filter(|before| *before != uid);
        let mut changes: Vec<_> = replaced.into_iter().map(|uid| Change::Deleted { key: key.clone(), uid }).collect();
        changes.push(match object {
            Guarded::Read(object) => Change::Applied(object),
            Guarded::Unreadable { error, meta } => Change::Unreadable { key, uid, error, metadata: meta },
        });
        changes
    }

    fn listed<K>(&mut self) -> Vec<Change<K>> {
        let listed = self.listing.take().unwrap_or_default();
        let gone: Vec<Key> = self.objects.keys().filter(|key| !listed.contains(key)).cloned().collect();
        let mut changes: Vec<_> = gone
            .into_iter()
            .filter_map(|key| self.objects.remove(&key).map(|uid| Change::Deleted { key, uid }))
            .collect();
        changes.push(Change::Listed(listed));
        changes
    }
}

/// What the reader should know of a failure; an expired resourceVersion heals by itself.
fn interrupted<K>(error: &watcher::Error) -> Option<Change<K>> {
    let cause = match error {
        watcher::Error::WatchError(status) if status.code == 410 => return None,
        watcher::Error::WatchError(status) => Cause::of_status(status),
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if status.code == 410 =>
        {
            return None;
        }
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => Cause::of(source),
        watcher::Error::NoResourceVersion => Cause::Other("the list has no resourceVersion".into()),
    };
    Some(match cause {
        Cause::Forbidden(message) => Change::Forbidden(message),
        Cause::Gone => Change::Absent,
        cause => Change::Interrupted(cause.to_string()),
    })
}

fn identity(meta: &ObjectMeta) -> (Key, String) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (Key::new(text(&meta.namespace), text(&meta.name)), text(&meta.uid))
}

/// Pause after a failure: 0.2 s, doubling up to 5 s, so that a CRD installed late is found soon. A while without failures
/// begins them anew.
#[derive(Default)]
struct Pause {
    step: u32,
    last: Option<Instant>,
}

/// How long without a failure makes the next one a first one.
const CALM: Duration = Duration::from_secs(30);

impl Pause {
    fn next(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > CALM) {
            self.step = 0;
        }
        let pause = Duration::from_millis(200 << self.step).min(Duration::from_secs(5));
        self.step = (self.step + 1).min(5);
        self.last = Some(now);
        pause
    }
}

/// An object, or what can be said of one that does not parse.
#[derive(Clone, Debug)]
enum Guarded<K> {
    Read(K),
    Unreadable { meta: Box<ObjectMeta>, error: String },
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Ok(match K::deserialize(&value) {
            Ok(object) => Guarded::Read(object),
            Err(error) => {
                let text = |field: &str| value["metadata"][field].as_str().map(str::to_owned);
                let least = || ObjectMeta {
                    namespace: text("namespace"),
                    name: text("name"),
                    uid: text("uid"),
                    resource_version: text("resourceVersion"),
                    ..ObjectMeta::default()
                };
                let meta = ObjectMeta::deserialize(&value["metadata"]).unwrap_or_else(|_| least());
                Guarded::Unreadable { meta: Box::new(meta), error: error.to_string() }
            }
        })
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.kind)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.group)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.version)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.plural)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.api_version)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Guarded::Read(object) => object.meta(),
            Guarded::Unreadable { meta, .. } => meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Guarded::Read(object) => object.meta_mut(),
            Guarded::Unreadable { meta, .. } => meta,
        }
    }
}
