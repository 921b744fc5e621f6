//! One turn over one SIPCluster: observe, plan, apply, status. The hosts were decided before, by the engine.

mod apply;
mod events;
mod observe;
pub(crate) mod status;
mod tenant;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::{SIPCluster, SIPClusterStatus, sipcluster::HostState};
use api_foreign::BareMetalHost;
use base::{Key, Says};
use plan_sip::{
    claims,
    host::Host,
    services::{self, Backend, CustomTemplate, Kind, Owned},
    want::Want,
};

use crate::{
    Context, Error,
    cache::{CachedPod, Objects},
};

pub use apply::{begin, exists, quarantine};
pub use tenant::secret_of;

/// What a turn starts from.
pub struct Job {
    /// The SIPCluster, its record written.
    pub sip: Arc<SIPCluster>,
    /// The same, parsed.
    pub want: Arc<Want>,
    /// What was decided about its hosts.
    pub plan: claims::Plan,
    /// Its hosts.
    pub hosts: BTreeMap<Key, Arc<Host>>,
    /// Its objects.
    pub objects: Objects,
    /// Its pods.
    pub pods: Vec<CachedPod>,
    /// Templates for its load balancers, by key in the ConfigMap.
    pub templates: BTreeMap<String, CustomTemplate>,
    /// InternalIPs of Ready nodes.
    pub node_ips: Vec<String>,
    /// What is told of what answers the tenant's users.
    pub outlook: Vec<Says>,
    /// Why its namespace cannot be worked in, if it cannot.
    pub no_rights: Option<String>,
    /// Whether a view that turns out to be of the past is nobody's failure: it has not been so time and again.
    pub patient: bool,
}

/// What a turn led to. Everything the API server answered goes back into the engine.
#[derive(Default)]
pub struct Outcome {
    /// The cluster.
    pub key: Key,
    /// The SIPCluster after the last write to it.
    pub sip: Option<SIPCluster>,
    /// Hosts as they are after writes to them.
    pub hosts: Vec<BareMetalHost>,
    /// Objects as they are after writes to them; `None`: gone.
    pub objects: Vec<(Kind, String, Option<Owned>)>,
    /// Unlabelled hosts that were touched, so that they may leave the record.
    pub departed: BTreeSet<Key>,
    /// Objects that hold, with what they were compared as.
    pub verified: BTreeSet<(Kind, String)>,
    /// What `verified` speaks of.
    pub compared: Objects,
    /// What went wrong.
    pub error: Option<Error>,
    /// When time alone asks for another turn.
    pub again_in: Option<Duration>,
    /// Whether anything was written.
    pub wrote: bool,
}

/// What a turn did, as the status stage reads it.
#[derive(Default)]
pub(crate) struct Done<'a> {
    pub services: Option<&'a services::Plan>,
    /// What went wrong while services were observed or applied.
    pub services_error: Option<Error>,
    /// What went wrong while hosts were labelled or let go.
    pub hosts_error: Option<Error>,
    /// Hosts that were labelled in this turn.
    pub labelled: BTreeSet<Key>,
    /// Why the Cluster that the spec refers to is not read, if it is not.
    pub refused: Option<String>,
    /// What is told of what answers the tenant's users.
    pub outlook: Vec<Says>,
    /// Whether hosts that were chosen get their labels only when the services are as asked, and they are not.
    pub labels_wait: bool,
}

/// Carries out one turn.
pub async fn turn(mut job: Job, cx: &Context) -> Outcome {
    let mut out = Outcome { key: job.want.key.clone(), compared: job.objects.clone(), ..Outcome::default() };
    let mut done = Done { outlook: job.outlook.clone(), ..Done::default() };

    let no_rights = job.no_rights.take().map(|why| Error::Namespace {
        namespace: out.key.namespace.clone(),
        installation: cx.installation.namespace.clone(),
        why,
    });
    let mut out_of_sight = Vec::new();
    if no_rights.is_some() && job.want.deleting {
        out_of_sight = observe::out_of_sight(&mut job);
    }
    let seen = match &no_rights {
        Some(_) if job.want.deleting => Ok((observe::without_rights(&job, cx).await, None)),
        Some(error) => Err(error.clone()),
        None => Ok(observe::observe(&job, cx).await),
    };
    let mut plan = match seen {
        Ok((seen, refused)) => {
            done.refused = refused;
            Some(services::plan(&want(&job, cx), &seen))
        }
        Err(error) => {
            done.services_error = Some(error);
            None
        }
    };
    if let Some(plan) = plan.as_mut().filter(|_| no_rights.is_some()) {
        plan.steps.retain(|step| matches!(step, services::Step::Delete { .. }));
    }
    if let Some(plan) = &plan {
        tracing::debug!(cluster = %out.key, steps = plan.steps.len(), "services planned");
        done.services_error = apply::services(&job, plan, cx, &mut out).await.err();
        out.verified.extend(plan.verified.iter().cloned());
        out.again_in = plan.again_in.map(Duration::from_secs);
    }
    done.services = plan.as_ref();
    // A new cluster's hosts are labelled only once its services are as asked, so far as writing them goes; one that has
    // been whole must not lose a host to a service that fails.
    let services_stand = done.services_error.is_none()
        && no_rights.is_none()
        && plan.as_ref().is_some_and(|p| p.problems.iter().all(|p| p.waiting));
    let label = services_stand || job.want.established;
    done.labels_wait = !label;
    let mut fence = None;
    let depart = plan.as_ref().map(|plan| apply::departing(&job, plan)).unwrap_or_default();
    if (label && !job.plan.label.is_empty()) || !depart.is_empty() {
        let fenced = if job.plan.record_first { apply::fence(&job, cx).await.map(Some) } else { Ok(None) };
        match fenced {
            Ok(sip) => {
                fence = sip;
                if label {
                    done.hosts_error = apply::labels(&job, cx, &mut out, &mut done.labelled).await.err();
                }
                let failed = apply::departures(&job, &depart, cx, &mut out).await.err();
                done.hosts_error = done.hosts_error.or(failed);
            }
            Err(error) => done.hosts_error = Some(error),
        }
    }

    let fenced = fence.is_some();
    if let Some(sip) = fence {
        job.sip = Arc::new(sip);
    }
    if job.plan.finished && plan.as_ref().is_some_and(|p| p.steps.is_empty()) && done.services_error.is_none() {
        match apply::farewell(&job, cx).await {
            Ok(()) => {
                out.wrote = true;
                // What cannot be read there was left out. It must not be looked for once the SIPCluster is gone.
                out.objects.extend(out_of_sight.into_iter().map(|(kind, name)| (kind, name, None)));
            }
            Err(error) if error.is_stale() => {}
            Err(error) => out.error = Some(error),
        }
        return out;
    }
    done.services_error = no_rights.or(done.services_error);
    let stale = |error: &Option<Error>| error.as_ref().is_some_and(Error::is_stale);
    if job.patient && (stale(&done.services_error) || stale(&done.hosts_error)) {
        // What was met is read live, and everything is decided anew at once: nothing of this is worth telling.
        out.sip = fenced.then(|| (*job.sip).clone());
        out.error = done.services_error.or(done.hosts_error);
        return out;
    }
    let status = status::of(&job.sip, &job.plan, &done, (cx.now)());
    if differs(job.sip.status.as_ref(), &status) {
        match cx.writer.put_status_as(&*job.sip, &status).await {
            Ok(sip) => {
                out.wrote = true;
                events::tell(&job, &status, cx).await;
                out.sip = Some(sip);
            }
            Err(error) => out.error = Some(Error::Api(error)),
        }
    }
    out.error = done.services_error.or(done.hosts_error).or(out.error);
    out
}

/// Whether the API server would keep something else than it has: times have whole seconds there.
fn differs(old: Option<&SIPClusterStatus>, new: &SIPClusterStatus) -> bool {
    let wire = |status: &SIPClusterStatus| serde_json::to_value(status).ok();
    old != Some(new) && old.and_then(wire) != wire(new)
}

/// What the services are asked for: the hosts of the record, as `claims` left it.
fn want<'a>(job: &'a Job, cx: &'a Context) -> services::Want<'a> {
    let backends = job.plan.record.iter().map(|entry| {
        let key = Key::new(&entry.namespace, &entry.name);
        let host = job.hosts.get(&key);
        Backend {
            role: entry.role.clone(),
            addresses: entry.addresses.clone(),
            bmc_address: host.map(|h| h.bmc_address.clone()).unwrap_or_default(),
            bmc_insecure: host.is_some_and(|h| h.bmc_insecure),
            leaving: entry.state == HostState::Releasing,
            host: key,
        }
    });
    services::Want {
        owner: job.want.key.clone(),
        owner_uid: job.want.uid.clone(),
        spec: &job.sip.spec,
        backends: backends.collect(),
        installation: &cx.installation,
        gone: job.plan.finished,
    }
}

/// Removes what a SIPCluster that is gone left behind. One that the API server still has, though we cannot read it or have
/// not seen it yet, keeps everything.
pub async fn demolish(key: Key, objects: Objects, cx: &Context) -> Outcome {
    let mut out = Outcome { key, ..Outcome::default() };
    match exists(&out.key, cx).await {
        Ok(false) => {}
        Ok(true) => return out,
        Err(error) => {
            out.error = Some(error);
            return out;
        }
    }
    for ((kind, name), owned) in &objects {
        match apply::remove(*kind, name, owned, &out.key.namespace, cx).await {
            Ok(()) => {
                out.wrote = true;
                out.objects.push((*kind, name.clone(), None));
            }
            Err(error) => out.error = Some(error),
        }
    }
    out
}
