//! Everything a decision reads is watched: the watches, joined into one stream of events.

use std::collections::BTreeSet;

use api::{SIPCluster, keys};
use api_foreign::BareMetalHost;
use futures::{Stream, StreamExt};
use io_kube::{Change, Scope, changes, watch::changes_of};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::{Client, core::DynamicObject, runtime::watcher};
use plan_sip::services::{Kind, names};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cache::resource;

/// What a watch showed.
#[derive(Debug)]
pub enum Event {
    /// A SIPCluster.
    Cluster(Box<Change<SIPCluster>>),
    /// A BareMetalHost.
    Host(Box<Change<BareMetalHost>>),
    /// A node of the base cluster.
    Node(Box<Change<Node>>),
    /// A pod of ours.
    Pod(Box<Change<Pod>>),
    /// A ConfigMap with HAProxy templates; with it the watch it comes from.
    Template(&'static str, Box<Change<ConfigMap>>),
    /// An object of ours, watched in all namespaces (`None`) or in one.
    Object(Kind, Option<String>, Box<Change<DynamicObject>>),
    /// A Secret in this namespace, ours or somebody's.
    Secret(String, Box<Change<Secret>>),
}

/// Kinds of ours that are watched in all namespaces at once.
pub const EVERYWHERE: [Kind; 6] = [
    Kind::Service,
    Kind::Deployment,
    Kind::PodDisruptionBudget,
    Kind::PersistentVolumeClaim,
    Kind::ServiceAccount,
    Kind::RoleBinding,
];

/// Names under which ConfigMaps with templates are looked for.
pub const TEMPLATES: [&str; 4] = [
    names::CONTROL_PLANE_TEMPLATES[0],
    names::WORKER_TEMPLATES[0],
    names::CONTROL_PLANE_TEMPLATES[1],
    names::WORKER_TEMPLATES[1],
];

/// The watches that run, and where they tell what they see.
pub struct Sources {
    client: Client,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
    secrets_of: BTreeSet<String>,
    config_maps_of: BTreeSet<String>,
}

impl Sources {
    /// Watches that tell `events` until `stop`; none runs yet.
    pub fn new(client: Client, events: mpsc::Sender<Event>, stop: CancellationToken) -> Self {
        Self { client, events, stop, secrets_of: BTreeSet::new(), config_maps_of: BTreeSet::new() }
    }

    /// Starts what is watched in all namespaces.
    pub fn start(&self) {
        let all = &Scope::All;
        let ours = || watcher::Config::default().labels(keys::OWNER_UID);
        self.run(changes(self.client.clone(), all, watcher::Config::default()), Event::Cluster);
        self.run(changes(self.client.clone(), all, watcher::Config::default()), Event::Host);
        self.run(changes(self.client.clone(), all, watcher::Config::default()), Event::Node);
        self.run(changes(self.client.clone(), all, ours()), Event::Pod);
        for kind in EVERYWHERE {
            let seen = changes_of(self.client.clone(), &resource(kind), all, ours());
            self.run(seen, move |change| Event::Object(kind, None, change));
        }
        for name in TEMPLATES {
            let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
            self.run(changes(self.client.clone(), all, named), move |change| Event::Template(name, change));
        }
    }

    /// Watches Secrets in a namespace from now on. Whether they were not watched before.
    pub fn secrets_in(&mut self, namespace: &str) -> bool {
        if !self.secrets_of.insert(namespace.to_owned()) {
            return false;
        }
        let of = namespace.to_owned();
        let scope = Scope::Namespace(of.clone());
        let secrets = changes(self.client.clone(), &scope, watcher::Config::default());
        self.run(secrets, move |change| Event::Secret(of.clone(), change));
        true
    }

    /// Watches ConfigMaps of ours in a namespace of tenants from now on. Where only hosts lie, we may not, and make none.
    /// Whether they were not watched before.
    pub fn config_maps_in(&mut self, namespace: &str) -> bool {
        if !self.config_maps_of.insert(namespace.to_owned()) {
            return false;
        }
        let of = namespace.to_owned();
        let scope = Scope::Namespace(of.clone());
        let ours = watcher::Config::default().labels(keys::OWNER_UID);
        let maps = changes_of(self.client.clone(), &resource(Kind::ConfigMap), &scope, ours);
        self.run(maps, move |change| Event::Object(Kind::ConfigMap, Some(of.clone()), change));
        true
    }

    fn run<K: Send + 'static>(
        &self,
        changes: impl Stream<Item = Change<K>> + Send + 'static,
        event: impl Fn(Box<Change<K>>) -> Event + Send + 'static,
    ) {
        let (events, stop) = (self.events.clone(), self.stop.clone());
        tokio::spawn(async move {
            let mut changes = Box::pin(changes);
            loop {
                let change = tokio::select! {
                    () = stop.cancelled() => break,
                    change = changes.next() => change,
                };
                let Some(change) = change else { break };
                if events.send(event(Box::new(change))).await.is_err() {
                    break;
                }
            }
        });
    }
}
