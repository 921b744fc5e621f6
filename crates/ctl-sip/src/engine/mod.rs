//! The loop that owns all that decisions read: it takes in what watches and turns say, decides about hosts one cluster
//! at a time and in order, and sends clusters on their turns.

mod absorb;
mod begin;
mod decide;
mod look;
mod orphans;
mod proof;
mod schedule;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::SIPCluster;
use api_foreign::BareMetalHost;
use base::Key;
use plan_sip::{claims, site::Site};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Context, Error,
    cache::Cache,
    sipcluster::Outcome,
    sources::{Event, Sources},
};

use begin::Beginning;
use proof::Proof;
use schedule::Schedule;

/// Turns over clusters that are under way at once.
const TURNS: usize = 16;
/// Turns in a row that may fail because their view was of the past before people are told.
const PATIENCE: u32 = 3;
/// Events taken in before work is handed out again.
const BATCH: usize = 4096;

/// The loop and all it owns.
pub struct Engine {
    cx: Context,
    site: Site,
    cache: Cache,
    sips: BTreeMap<Key, Arc<SIPCluster>>,
    /// Clusters whose spec names a Secret of their namespace.
    referring: BTreeMap<Key, BTreeSet<Key>>,
    /// Versions that our own writes led to: what a watch shows of an older one is the past.
    written: BTreeMap<Key, String>,
    /// Unlabelled hosts that were touched so that they may leave the record.
    departed: BTreeMap<Key, BTreeSet<Key>>,
    /// Uids of objects that went while writes were under way.
    buried: BTreeSet<String>,
    /// SIPClusters that are gone though hosts are labelled for them, and since when none of those is in use.
    abandoned: BTreeMap<Key, Instant>,
    /// Clusters that wait for hosts.
    waiting: BTreeSet<Key>,
    /// What is known, and told, of what answers the clusters' users.
    outlooks: look::Outlooks,
    schedule: Schedule,
    beginning: Beginning,
    jobs: JoinSet<Done>,
    sources: Sources,
    health: Option<io_kube::health::Check>,
    proof: Proof,
    figures_due: bool,
}

/// A job that ended.
enum Done {
    /// Finalizer and record are written; the SIPCluster as it is then.
    Recorded(Key, Box<Result<SIPCluster, Error>>, Box<claims::Plan>),
    /// A turn over a cluster.
    Turned(Box<Outcome>),
    /// The dry run that proves our rights.
    Proved(Result<(), io_kube::Error>),
    /// A look at what answers a cluster's users.
    Looked(Key, look::Looked),
    /// A write to a host that is nobody's.
    Host(Key, Box<Result<Option<BareMetalHost>, Error>>),
}

impl Engine {
    /// A loop that knows nothing yet.
    pub fn new(cx: Context, sources: Sources) -> Self {
        Self {
            site: Site::new(cx.settings.clone()),
            cache: Cache::default(),
            sips: BTreeMap::new(),
            referring: BTreeMap::new(),
            written: BTreeMap::new(),
            departed: BTreeMap::new(),
            buried: BTreeSet::new(),
            abandoned: BTreeMap::new(),
            waiting: BTreeSet::new(),
            outlooks: look::Outlooks::new(),
            schedule: Schedule::default(),
            beginning: Beginning::default(),
            jobs: JoinSet::new(),
            sources,
            health: None,
            proof: Proof::default(),
            figures_due: true,
            cx,
        }
    }

    /// Tells this check when everything has been listed, and until then what is missing.
    #[must_use]
    pub fn reporting_to(self, check: io_kube::health::Check) -> Self {
        Self { health: Some(check), ..self }
    }

    /// Runs until `stop`, then waits for the writes that are under way.
    pub async fn run(mut self, mut events: mpsc::Receiver<Event>, stop: CancellationToken) {
        self.sources.start();
        for namespace in crate::host_namespaces(&self.cx.settings) {
            self.watch_namespace(&namespace);
        }
        loop {
            let wake = self.schedule.next_wake();
            tokio::select! {
                () = stop.cancelled() => break,
                event = events.recv() => {
                    let Some(event) = event else { break };
                    self.absorb(event);
                    for _ in 1..BATCH {
                        let Ok(event) = events.try_recv() else { break };
                        self.absorb(event);
                    }
                }
                Some(done) = self.jobs.join_next() => match done {
                    Ok(done) => self.finished(done),
                    // A turn never panics by design; if one does, the process ends rather than go on half blind.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = sleep_until(wake) => {}
            }
            if self.schedule.wake(Instant::now()) {
                self.proof_again();
            }
            self.work();
        }
        // Writes carry preconditions and end at their deadline; waiting for them keeps the lease until they are done.
        while self.jobs.join_next().await.is_some() {}
    }

    fn watch_namespace(&mut self, namespace: &str) {
        if self.sources.secrets_in(namespace) {
            self.beginning.expect_namespace(namespace);
        }
    }

    /// Hands out work: decisions first, for they are serial.
    fn work(&mut self) {
        let missing = self.beginning.missing().or_else(|| match (self.proved(), &self.proof.state) {
            (true, _) => None,
            (false, proof::State::Refused(why)) => Some(format!("this process may not claim hosts: {why}")),
            (false, _) => Some("proving that this process may claim hosts".to_owned()),
        });
        if let Some(health) = &self.health {
            match &missing {
                Some(missing) => health.fails(missing),
                None => health.passes(),
            }
        }
        if missing.is_some() {
            return;
        }
        self.beginning.is_over();
        if self.jobs.is_empty() {
            self.buried.clear();
        }
        self.hosts_due();
        self.decide();
        self.looks();
        self.figures();
    }

    fn figures(&mut self) {
        // Counting walks over everything, so it waits until there is nothing better to do.
        if !self.figures_due || self.schedule.has_work() {
            return;
        }
        self.figures_due = false;
        let mut counts = crate::metrics::HostCounts::new();
        for host in self.site.hosts() {
            let state = match self.site.standing(&host.key) {
                Some(plan_sip::placement::Standing::Candidate) => "free",
                Some(plan_sip::placement::Standing::Taken { .. }) => "claimed",
                Some(plan_sip::placement::Standing::Dropped(
                    plan_sip::placement::Unfit::Quarantine(_) | plan_sip::placement::Unfit::ForceReleased,
                )) => "quarantined",
                Some(plan_sip::placement::Standing::Dropped(_)) | None => "unfit",
            };
            *counts.entry((host.key.namespace.clone(), state)).or_default() += 1;
        }
        self.cx.metrics.hosts(&counts);
        let mut blocked: BTreeMap<&'static str, Vec<i64>> = BTreeMap::new();
        for sip in self.sips.values() {
            let Some(found) = sip.status.as_ref().and_then(|s| s.blocked.as_ref()) else { continue };
            let known = ["Unschedulable", "Undecided", "UnableToDecommission", "InvalidSpec"];
            if let Some(reason) = known.into_iter().find(|r| *r == found.reason) {
                blocked.entry(reason).or_default().push(found.since.0.as_second());
            }
        }
        self.cx.metrics.clusters(self.sips.len(), &blocked);
        let mut ready: BTreeMap<crate::metrics::Readiness, i64> = BTreeMap::new();
        for sip in self.sips.values() {
            let readiness = sip.status.as_ref().map_or(("Unknown", "NotObserved"), crate::metrics::readiness);
            *ready.entry(readiness).or_default() += 1;
        }
        self.cx.metrics.readiness(&ready);
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}
