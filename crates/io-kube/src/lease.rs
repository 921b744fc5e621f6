//! Leader election over `coordination.k8s.io` Leases, safe under partitions, pauses and clocks that differ.
//!
//! ```text
//!            free, or unchanged for its duration
//!  watching ─────────────────────────────────────► leading ──► deadline passed, or held by another ──► lost
//!     ▲                                              │  │
//!     └────────────── released (holder cleared) ◄────┘  └─ renewed every `retry`: deadline = start of that write + `deadline`
//! ```
//! - A record changes hands by replacing it with the resourceVersion that was read: two candidates never both succeed.
//! - A candidate counts the holder's time from when *it* saw the record change last, on its own monotonic clock.
//!   Times written in the record are for people.
//! - The holder counts from *before* the write that renewed it, and stops `duration - deadline` earlier than anybody
//!   can follow. It knows without help: [`Leadership::holds`] is false from that instant on, even in a process that
//!   was stopped and has just woken up.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{error::Cause, metrics::Metrics};

/// The lease that the original operator's manager holds, in its own namespace: held beside our own, so that the two
/// never run together. (Its lock is this lease and a ConfigMap of the same name; a lease held by another stops it.)
pub const ORIGINAL: &str = "ec2ee6cb.airshipit.org";

/// The wall clock, for times that people read.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// One lease and how it is held.
#[derive(Clone)]
pub struct Config {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who asks. Must be of this process alone: see [`identity`].
    pub identity: String,
    /// How long others wait after the last change they saw.
    pub duration: Duration,
    /// How long the holder believes a renewal. Less than `duration`.
    pub deadline: Duration,
    /// Pause between attempts. Less than half of `deadline`.
    pub retry: Duration,
    /// The wall clock.
    pub now: Now,
}

impl Config {
    /// A lease with the usual times: 15 s, 10 s, 2 s.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Config {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            now: Arc::new(Timestamp::now),
        }
    }

    /// The same lease with another clock.
    #[must_use]
    pub fn clock(self, now: Now) -> Self {
        Config { now, ..self }
    }
}

/// An identity no other process has, not even the next one in the same pod: the pod's name and a random number.
pub fn identity(pod: &str) -> String {
    format!("{pod}_{:016x}", rand::random::<u64>())
}

/// The right to act, as long as it lasts. Clones are the same right.
#[derive(Clone)]
pub struct Leadership {
    held: Arc<Held>,
}

struct Held {
    leases: Vec<Arc<Term>>,
    lost: CancellationToken,
    release: CancellationToken,
    renewals: TaskTracker,
}

/// One lease's part in a leadership.
struct Term {
    name: String,
    transitions: AtomicI64,
    until: Mutex<Instant>,
}

impl Term {
    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn renewed(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = until;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.lost.cancel();
    }
}

impl Leadership {
    /// Whether this process leads at this instant.
    pub fn holds(&self) -> bool {
        let now = Instant::now();
        !self.held.lost.is_cancelled() && self.held.leases.iter().all(|term| now < term.until())
    }

    /// Cancelled once this process does not lead any more. What runs under it must be gone soon after.
    pub fn token(&self) -> CancellationToken {
        self.held.lost.clone()
    }

    /// Returns when this process does not lead any more.
    pub async fn lost(&self) {
        self.held.lost.cancelled().await;
    }

    /// How often the first of the leases has changed hands: rises with each leader.
    pub fn transitions(&self) -> i64 {
        self.held.leases.first().map_or(0, |term| term.transitions.load(Ordering::Relaxed))
    }

    /// Gives the leases up, so that another can lead at once. To be called when everything that acts has ended.
    pub async fn release(self) {
        self.held.release.cancel();
        self.held.lost.cancel();
        self.held.renewals.close();
        self.held.renewals.wait().await;
    }
}

/// Waits until this process holds all `leases`, taken in the given order, which must be the same everywhere.
pub async fn elected(client: &Client, leases: &[Config], metrics: Option<&Metrics>) -> Leadership {
    loop {
        let lost = CancellationToken::new();
        let release = CancellationToken::new();
        let renewals = TaskTracker::new();
        let mut terms = Vec::new();
        for config in leases {
            let candidate =
                Candidate { api: Api::namespaced(client.clone(), &config.namespace), config: config.clone() };
            let won = tokio::select! {
                won = candidate.wins() => won,
                () = lost.cancelled() => break,
            };
            let term = Arc::new(Term {
                name: config.name.clone(),
                transitions: AtomicI64::new(won.transitions()),
                until: Mutex::new(won.until),
            });
            tracing::info!(lease = %config.name, identity = %config.identity, transitions = won.transitions(), "leading");
            renewals.spawn(candidate.renews(won.lease, term.clone(), lost.clone(), release.clone(), metrics.cloned()));
            terms.push(term);
        }
        let leadership = Leadership { held: Arc::new(Held { leases: terms, lost, release, renewals }) };
        if leadership.held.leases.len() == leases.len() && leadership.holds() {
            return leadership;
        }
        leadership.release().await;
    }
}

/// A lease as this process has just written it.
struct Won {
    lease: Lease,
    until: Instant,
}

impl Won {
    fn transitions(&self) -> i64 {
        self.lease.spec.as_ref().and_then(|spec| spec.lease_transitions).map_or(0, i64::from)
    }
}

/// What one attempt to renew came to.
enum Renewal {
    Done(Box<Lease>, Instant),
    /// Nobody knows; the deadline decides.
    Unknown(Option<Box<Lease>>),
    /// Another holds it, or it was deleted.
    Lost,
}

struct Candidate {
    api: Api<Lease>,
    config: Config,
}

impl Candidate {
    /// Waits until the lease is free and takes it.
    async fn wins(&self) -> Won {
        let mut seen: Option<(String, Instant)> = None;
        loop {
            if let Some(won) = self.attempt(&mut seen).await {
                return won;
            }
            sleep(self.config.retry).await;
        }
    }

    /// One look at the lease, and one write if it is free.
    async fn attempt(&self, seen: &mut Option<(String, Instant)>) -> Option<Won> {
        let read = timeout(self.patience(), self.api.get_opt(&self.config.name)).await.ok()?;
        let found = match read {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(lease = %self.config.name, error = %Cause::of(&error), "cannot read the lease");
                return None;
            }
        };
        let started = Instant::now();
        let Some(lease) = found else {
            let (record, params) = (self.record(None), PostParams::default());
            let made = timeout(self.patience(), self.api.create(&params, &record)).await.ok()?.ok()?;
            return Some(Won { lease: made, until: started + self.config.deadline });
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let since = match seen {
            Some((last, since)) if *last == version => *since,
            // Counted from after the answer arrived: late is safe.
            _ => seen.insert((version, Instant::now())).1,
        };
        if !self.is_free(&lease, since) {
            return None;
        }
        let (lease, until) = self.replace(&lease).await.ok()?;
        Some(Won { lease, until })
    }

    /// Free: nobody holds it, we do (an earlier attempt whose answer was lost), or its holder was silent for too long.
    fn is_free(&self, lease: &Lease, since: Instant) -> bool {
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let promised = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = promised.map_or(self.config.duration, Duration::from_secs);
        holder.is_empty() || holder == self.config.identity || Instant::now() >= since + duration
    }

    /// Renews until the deadline passes, another holds the lease, or it is to be released.
    async fn renews(
        self,
        mut lease: Lease,
        term: Arc<Term>,
        lost: CancellationToken,
        release: CancellationToken,
        metrics: Option<Metrics>,
    ) {
        let leads = |holds| metrics.iter().for_each(|metrics| metrics.leads(&term.name, holds));
        leads(true);
        let ended = loop {
            let next = Instant::now() + self.config.retry;
            tokio::select! {
                biased;
                () = lost.cancelled() => break "ended",
                () = sleep_until(term.until()) => break "could not be renewed in time",
                () = sleep_until(next) => {}
            }
            let renewal = tokio::select! {
                biased;
                () = lost.cancelled() => break "ended",
                () = sleep_until(term.until()) => break "could not be renewed in time",
                renewal = self.renew(&lease) => renewal,
            };
            match renewal {
                Renewal::Done(renewed, until) => {
                    lease = *renewed;
                    term.renewed(until);
                }
                Renewal::Unknown(Some(read)) => lease = *read,
                Renewal::Unknown(None) => {}
                Renewal::Lost => break "is held by another",
            }
        };
        lost.cancel();
        leads(false);
        if release.is_cancelled() {
            self.give_up(lease).await;
        } else {
            tracing::warn!(lease = %self.config.name, "lost: the lease {ended}");
        }
    }

    /// One attempt to renew. If the record is not the one we know and still ours, as after a write whose answer was
    /// lost, it is renewed as it is now.
    async fn renew(&self, lease: &Lease) -> Renewal {
        match self.replace(lease).await {
            Err(Some(Cause::Conflict(_)) | None) => match self.look().await {
                Renewal::Unknown(Some(read)) => match self.replace(&read).await {
                    Ok((renewed, until)) => Renewal::Done(Box::new(renewed), until),
                    Err(_) => Renewal::Unknown(Some(read)),
                },
                other => other,
            },
            Ok((renewed, until)) => Renewal::Done(Box::new(renewed), until),
            Err(Some(Cause::Gone)) => Renewal::Lost,
            Err(Some(cause)) => {
                tracing::warn!(lease = %self.config.name, error = %cause, "cannot renew the lease");
                Renewal::Unknown(None)
            }
        }
    }

    /// Writes the record; without cause: no answer. The new deadline counts from before the write.
    async fn replace(&self, lease: &Lease) -> Result<(Lease, Instant), Option<Cause>> {
        let started = Instant::now();
        let (record, params) = (self.record(Some(lease)), PostParams::default());
        match timeout(self.patience(), self.api.replace(&self.config.name, &params, &record)).await {
            Ok(Ok(renewed)) => Ok((renewed, started + self.config.deadline)),
            Ok(Err(error)) => Err(Some(Cause::of(&error))),
            Err(_) => Err(None),
        }
    }

    /// After a write of unknown result: who holds the lease?
    async fn look(&self) -> Renewal {
        match timeout(self.patience(), self.api.get_opt(&self.config.name)).await {
            Ok(Ok(Some(lease))) => {
                let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
                let ours = holder == Some(self.config.identity.as_str());
                if ours { Renewal::Unknown(Some(Box::new(lease))) } else { Renewal::Lost }
            }
            Ok(Ok(None)) => Renewal::Lost,
            Ok(Err(_)) | Err(_) => Renewal::Unknown(None),
        }
    }

    /// Clears the holder. A failure costs the next leader one lease duration, no more.
    async fn give_up(&self, mut lease: Lease) {
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime((self.config.now)()));
        let params = PostParams::default();
        match timeout(self.patience(), self.api.replace(&self.config.name, &params, &lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = %self.config.name, "released"),
            Ok(Err(error)) => tracing::warn!(lease = %self.config.name, error = %Cause::of(&error), "not released"),
            Err(_) => tracing::warn!(lease = %self.config.name, "not released: no answer"),
        }
    }

    /// The record that says that we hold the lease from now on, with the version of `old`.
    fn record(&self, old: Option<&Lease>) -> Lease {
        let now = MicroTime((self.config.now)());
        let spec = old.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = spec.holder_identity.as_deref() == Some(self.config.identity.as_str());
        let transitions = spec.lease_transitions.unwrap_or(0);
        let metadata = old.map_or_else(
            || ObjectMeta {
                namespace: Some(self.config.namespace.clone()),
                name: Some(self.config.name.clone()),
                ..ObjectMeta::default()
            },
            |lease| lease.metadata.clone(),
        );
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.config.identity.clone()),
                lease_duration_seconds: Some(i32::try_from(self.config.duration.as_secs()).unwrap_or(i32::MAX)),
                acquire_time: if ours { spec.acquire_time.clone() } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(if ours || old.is_none() {
                    transitions
                } else {
                    transitions.saturating_add(1)
                }),
                ..spec
            }),
        }
    }

    /// How long one request may take: two attempts fit into the deadline.
    fn patience(&self) -> Duration {
        self.config.deadline / 3
    }
}
