//! The metrics every controller has: turns, writes, conflicts, leadership, requests. Labels come from closed sets.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::error::{Error, Verb};

/// Kinds that have a label of their own; any other is `Other`.
const KINDS: [&str; 24] = [
    "BareMetalHost",
    "Certificate",
    "Cluster",
    "ConfigMap",
    "DaemonSet",
    "Deployment",
    "Event",
    "IPPool",
    "InfraEnv",
    "Lease",
    "Metal3Cluster",
    "Metal3Machine",
    "OpenshiftAssistedConfig",
    "OpenshiftAssistedControlPlane",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "RoleBinding",
    "SIPCluster",
    "Secret",
    "Service",
    "ServiceAccount",
    "Vino",
    "VinoNode",
];

/// All metrics of a process. Clones are the same metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    turns: Family<Turn, Counter>,
    durations: Family<Controller, Histogram>,
    writes: Family<Written, Counter>,
    conflicts: Family<Kind, Counter>,
    requests: Family<Request, Counter>,
    leader: Family<Lease, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Turn {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    kind: &'static str,
    verb: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lease {
    lease: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All counters at zero.
    pub fn new() -> Self {
        let metrics = Metrics {
            registry: Arc::new(Mutex::new(Registry::with_prefix("slipway"))),
            turns: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.005, 2.5, 10))),
            writes: Family::default(),
            conflicts: Family::default(),
            requests: Family::default(),
            leader: Family::default(),
        };
        {
            let mut registry = metrics.registry();
            registry.register("turns", "Turns of a control loop, by result", metrics.turns.clone());
            registry.register("turn_duration_seconds", "Time a turn of a control loop took", metrics.durations.clone());
            registry.register(
                "writes",
                "Writes to the Kubernetes API, by kind, verb and outcome",
                metrics.writes.clone(),
            );
            registry.register("conflicts", "Writes refused because the object had changed", metrics.conflicts.clone());
            registry.register(
                "requests",
                "Requests to the Kubernetes API, by method and status",
                metrics.requests.clone(),
            );
            registry.register("leader", "Whether this process holds a lease", metrics.leader.clone());
        }
        metrics
    }

    /// The registry, for more families.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn of `controller` took so long; `result` is `ok` or the error's `reason()`.
    pub fn turned(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.turns.get_or_create(&Turn { controller, result }).inc();
        self.durations.get_or_create(&Controller { controller }).observe(took.as_secs_f64());
    }

    /// A write was answered.
    pub fn wrote(&self, kind: &str, verb: Verb, failed: Option<&Error>) {
        let kind = known(kind);
        let outcome = failed.map_or("ok", Error::reason);
        self.writes.get_or_create(&Written { kind, verb: verb.label(), outcome }).inc();
        if failed.is_some_and(Error::is_stale) {
            self.conflicts.get_or_create(&Kind { kind }).inc();
        }
    }

    /// A request was answered; no status: not at all.
    pub fn requested(&self, method: &http::Method, status: Option<http::StatusCode>) {
        let method = match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let status = match status.map(|status| status.as_u16()) {
            None => "none",
            Some(200..=299) => "2xx",
            Some(409) => "409",
            Some(410) => "410",
            Some(429) => "429",
            Some(400..=499) => "4xx",
            Some(500..=599) => "5xx",
            Some(_) => "other",
        };
        self.requests.get_or_create(&Request { method, status }).inc();
    }

    /// Whether this process holds a lease.
    pub fn leads(&self, lease: &str, holds: bool) {
        self.leader.get_or_create(&Lease { lease: lease.to_owned() }).set(i64::from(holds));
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry()).is_err() {
            let _ = writeln!(text, "# EOF");
        }
        text
    }
}

/// A kind as a label.
pub fn known(kind: &str) -> &'static str {
    KINDS.into_iter().find(|known| *known == kind).unwrap_or("Other")
}
