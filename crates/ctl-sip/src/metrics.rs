//! Figures of the SIP capability.

use std::{collections::BTreeMap, sync::Arc};

use api::SIPClusterStatus;
use base::condition::find;
use io_kube::Metrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};

use crate::sipcluster::status::{READY, REASONS};

/// Figures of the SIP capability, beside the common ones.
#[derive(Clone)]
pub struct SipMetrics {
    /// The common ones: turns, writes, conflicts.
    pub common: Metrics,
    hosts: Family<HostLabels, Gauge>,
    blocked: Family<BlockedLabels, Gauge>,
    oldest: Family<BlockedLabels, Gauge>,
    clusters: Arc<Gauge>,
    ready: Family<ReadyLabels, Gauge>,
    /// What was set before, so that what is no more goes to zero.
    namespaces: Arc<std::sync::Mutex<Vec<HostLabels>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HostLabels {
    namespace: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BlockedLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReadyLabels {
    ready: &'static str,
    reason: &'static str,
}

/// Status and reason of condition Ready of a SIPCluster, as metric labels; both from closed sets.
pub type Readiness = (&'static str, &'static str);

/// Status and reason of condition Ready, whoever wrote it; what is not among our words is `Unknown`, `Other`.
pub fn readiness(status: &SIPClusterStatus) -> Readiness {
    let Some(ready) = find(&status.conditions, READY) else { return ("Unknown", "NotObserved") };
    let known = REASONS.into_iter().find(|reason| *reason == ready.reason).unwrap_or("Other");
    (if ready.status == "True" { "True" } else { "False" }, known)
}

/// How many hosts of a namespace are in which state; states are `free`, `claimed`, `quarantined`, `unfit`.
pub type HostCounts = BTreeMap<(String, &'static str), i64>;

impl SipMetrics {
    /// The figures, registered beside the common ones.
    pub fn new(common: Metrics) -> Self {
        let metrics = Self {
            common,
            hosts: Family::default(),
            blocked: Family::default(),
            oldest: Family::default(),
            clusters: Arc::default(),
            ready: Family::default(),
            namespaces: Arc::default(),
        };
        {
            let mut registry = metrics.common.registry();
            registry.register("sip_hosts", "BareMetalHosts by namespace and state", metrics.hosts.clone());
            registry.register("sip_clusters", "SIPClusters", (*metrics.clusters).clone());
            registry.register(
                "sip_clusters_ready",
                "SIPClusters by status and reason of their condition Ready",
                metrics.ready.clone(),
            );
            registry.register("sip_clusters_blocked", "SIPClusters that wait, by reason", metrics.blocked.clone());
            registry.register(
                "sip_clusters_blocked_oldest_timestamp_seconds",
                "When the SIPCluster that has waited longest for this reason began to wait, in seconds since the epoch",
                metrics.oldest.clone(),
            );
        }
        metrics
    }

    /// Sets the figures about hosts.
    pub fn hosts(&self, counts: &HostCounts) {
        let mut known = self.namespaces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for labels in known.drain(..) {
            self.hosts.get_or_create(&labels).set(0);
        }
        for ((namespace, state), number) in counts {
            let labels = HostLabels { namespace: namespace.clone(), state };
            self.hosts.get_or_create(&labels).set(*number);
            known.push(labels);
        }
    }

    /// Sets how many clusters are Ready, or why not.
    pub fn readiness(&self, counts: &BTreeMap<Readiness, i64>) {
        let broken = REASONS.into_iter().skip(1).map(|reason| ("False", reason));
        let all = [("True", REASONS[0]), ("False", "Other"), ("Unknown", "NotObserved")];
        // What is no more goes to zero.
        for (ready, reason) in broken.chain(all).chain(counts.keys().copied()) {
            let number = counts.get(&(ready, reason)).copied().unwrap_or(0);
            self.ready.get_or_create(&ReadyLabels { ready, reason }).set(number);
        }
    }

    /// Sets the figures about clusters: how many there are, and since when (seconds since the epoch) which wait.
    pub fn clusters(&self, all: usize, blocked: &BTreeMap<&'static str, Vec<i64>>) {
        self.clusters.set(i64::try_from(all).unwrap_or(i64::MAX));
        for reason in ["Unschedulable", "Undecided", "UnableToDecommission", "InvalidSpec"] {
            let since = blocked.get(reason).map(Vec::as_slice).unwrap_or_default();
            let labels = BlockedLabels { reason };
            self.blocked.get_or_create(&labels).set(i64::try_from(since.len()).unwrap_or(i64::MAX));
            self.oldest.get_or_create(&labels).set(since.iter().copied().min().unwrap_or(0));
        }
    }
}
