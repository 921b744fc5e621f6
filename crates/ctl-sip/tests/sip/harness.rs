//! A manager and what surrounds it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use api::SIPCluster;
use base::condition::find;
use ctl_sip::{Context, Engine, metrics::SipMetrics, reports, sources::Sources};
use io_kube::{Metrics, Writer};
use k8s_openapi::api::core::v1::{Pod, Secret};
use plan_sip::{
    outlook::{Question, ServerHealth},
    services::{Installation, Report},
    site::Settings,
};
use serde_json::json;
use testkit::{Api, Kubelet};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long, in paused time, anything may take.
const LIMIT: Duration = Duration::from_mins(20);

/// How long, on the real clock, one test may take. Paused time stands still while anything runs, so a controller that
/// never rests would hang its test: the watchdog shows what it does, and ends the process.
const RUNAWAY: Duration = Duration::from_secs(90);

/// A world with one base cluster.
pub struct World {
    pub api: Api,
    /// What answers the tenants' users.
    pub answers: Arc<Mutex<Answers>>,
    _watchdog: std::sync::mpsc::Sender<()>,
}

fn watchdog(api: Api) -> std::sync::mpsc::Sender<()> {
    let (alive, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(RUNAWAY) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let text = api.transcript();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("the controller never rests:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
            std::process::abort();
        }
    });
    alive
}

/// A running manager; ends with the value.
pub struct Manager {
    stop: CancellationToken,
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What answers the tenants' users: at first nobody could be asked.
#[derive(Clone, Default)]
pub struct Answers {
    pub servers: Option<Vec<ServerHealth>>,
    pub issuer: Option<Result<String, String>>,
    /// What was asked last.
    pub asked: Option<Question>,
}

/// Sidecars that have loaded whatever their Secret holds and whose leaving servers have no session.
struct Sidecars(Api, Arc<Mutex<Answers>>);

impl reports::Ask for Sidecars {
    fn ask<'a>(&'a self, namespace: &'a str, pod: &'a str, _: std::net::SocketAddr) -> reports::Answer<'a> {
        Box::pin(async move {
            let pod: Pod = self.0.get_as("Pod", &format!("{namespace}/{pod}"))?;
            let instance = pod.metadata.labels?.get("app.kubernetes.io/instance")?.clone();
            let secret: Secret = self.0.get_as("Secret", &format!("{namespace}/{instance}"))?;
            let meta: serde_json::Value = serde_json::from_slice(&secret.data?.get("meta.json")?.0).ok()?;
            let names = meta["leaving"].as_array().into_iter().flatten();
            let leaving = names.filter_map(|l| Some((l["name"].as_str()?.to_owned(), 0))).collect();
            let serving = meta["candidate"].as_str().or(meta["accepted"].as_str())?.to_owned();
            Some(Report { serving, refused: None, leaving })
        })
    }

    fn health<'a>(&'a self, _: &'a str, _: &'a str, _: std::net::SocketAddr) -> reports::Answer<'a, Vec<ServerHealth>> {
        let answer = self.1.lock().expect("no test panicked").servers.clone();
        Box::pin(std::future::ready(answer))
    }

    fn issuer<'a>(&'a self, question: &'a Question) -> reports::Answer<'a, Result<String, String>> {
        let mut answers = self.1.lock().expect("no test panicked");
        answers.asked = Some(question.clone());
        Box::pin(std::future::ready(answers.issuer.clone()))
    }
}

impl World {
    /// A base cluster with one Ready node and kubelets that run what is deployed.
    pub fn new() -> Self {
        let api = Api::new();
        api.seed(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            },
        }));
        let kubelet = Kubelet::new(api.client_named("kubelet"));
        kubelet.spawn(Duration::from_secs(5));
        Self { _watchdog: watchdog(api.clone()), answers: Arc::default(), api }
    }

    /// Starts a manager of this name, whose hosts lie in namespace `default`.
    pub fn manager(&self, name: &str) -> Manager {
        self.manager_with(
            name,
            Settings { host_namespaces: Some(["default".into()].into()), quarantine: 60, secrets_known: true },
        )
    }

    pub fn manager_with(&self, name: &str, settings: Settings) -> Manager {
        let client = self.api.client_named(name);
        let stop = CancellationToken::new();
        let clock = self.api.clock();
        let cx = Context {
            writer: Writer::new(client.clone()),
            settings,
            installation: Arc::new(Installation {
                namespace: "slipway-system".into(),
                haproxy_image: "haproxy:test".into(),
                slipway_image: "slipway:test".into(),
                jump_host_image: "jump-host:test".into(),
                dex_image: "dex:test".into(),
                proxy: BTreeMap::new(),
            }),
            now: clock.source(),
            reports: Arc::new(Sidecars(self.api.clone(), self.answers.clone())),
            metrics: SipMetrics::new(Metrics::new()),
            events: None,
        };
        let (sender, events) = mpsc::channel(256);
        let engine = Engine::new(cx, Sources::new(client, sender, stop.clone()));
        tokio::spawn(engine.run(events, stop.clone()));
        Manager { stop }
    }

    /// Waits, in paused time, until `found` is something.
    pub async fn until<T>(&self, what: &str, found: impl Fn(&Api) -> Option<T>) -> T {
        let waited = tokio::time::timeout(LIMIT, async {
            loop {
                if let Some(found) = found(&self.api) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{what}: not in {LIMIT:?}\n{}", self.state()))
    }

    /// Everything about clusters and hosts, for a test that failed.
    fn state(&self) -> String {
        let clusters = self.api.list("SIPCluster").into_iter().map(|c| format!("{}\n", c["status"]));
        let hosts = self.api.list("BareMetalHost").into_iter().map(|h| format!("{}\n", h["metadata"]));
        clusters.chain(hosts).collect()
    }

    pub fn sip(&self, key: &str) -> Option<SIPCluster> {
        self.api.get_as("SIPCluster", key)
    }

    pub async fn ready(&self, key: &str) {
        self.condition(key, "True", "ReconciliationSucceeded").await;
    }

    /// Waits until Ready has this status and reason at the present generation.
    pub async fn condition(&self, key: &str, status: &str, reason: &str) -> String {
        self.until(&format!("{key} Ready={status}/{reason}"), |api| {
            let sip: SIPCluster = api.get_as("SIPCluster", key)?;
            let ready = find(&sip.status.as_ref()?.conditions, "Ready")?.clone();
            let current = ready.observed_generation == sip.metadata.generation;
            (current && ready.status == status && ready.reason == reason).then_some(ready.message)
        })
        .await
    }

    /// Waits until a condition has this status and reason, and returns what it says.
    pub async fn says(&self, key: &str, kind: &str, status: &str, reason: &str) -> String {
        self.until(&format!("{key} {kind}={status}/{reason}"), |api| {
            let sip: SIPCluster = api.get_as("SIPCluster", key)?;
            let found = find(&sip.status.as_ref()?.conditions, kind)?.clone();
            (found.status == status && found.reason == reason).then_some(found.message)
        })
        .await
    }

    /// `namespace/name` of hosts labelled for a cluster, by role.
    pub fn claimed(&self, cluster: &str) -> BTreeMap<String, Vec<String>> {
        let (namespace, name) = cluster.split_once('/').expect("namespace/name");
        let mut claimed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for host in self.api.list("BareMetalHost") {
            let labels = &host["metadata"]["labels"];
            if labels["sip.airshipit.org/cluster-namespace"] == namespace
                && labels["sip.airshipit.org/cluster-name"] == name
            {
                let role = labels["sip.airshipit.org/node-type"].as_str().unwrap_or_default().to_owned();
                claimed.entry(role).or_default().push(host["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            }
        }
        claimed
    }

    pub fn counts(&self, cluster: &str) -> (usize, usize) {
        let claimed = self.claimed(cluster);
        let of = |role: &str| claimed.get(role).map_or(0, Vec::len);
        (of("ControlPlane"), of("Worker"))
    }

    /// Changes the spec of a cluster, as a user does.
    pub fn spec(&self, key: &str, change: impl FnOnce(&mut serde_json::Value)) {
        self.api.edit("SIPCluster", key, |object| {
            change(&mut object["spec"]);
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
            object["metadata"]["generation"] = (generation + 1).into();
        });
    }

    /// What the load balancers of a cluster send traffic to.
    pub fn haproxy(&self, cluster: &str, role: &str) -> String {
        let (namespace, name) = cluster.split_once('/').expect("namespace/name");
        let secret: Option<Secret> = self.api.get_as("Secret", &format!("{namespace}/loadbalancer-{role}-{name}"));
        let data = secret.and_then(|s| s.data).unwrap_or_default();
        data.get("haproxy.cfg").map(|v| String::from_utf8_lossy(&v.0).into_owned()).unwrap_or_default()
    }
}
