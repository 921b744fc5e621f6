//! The status that follows from a turn. Pure.

use std::collections::BTreeSet;

use api::{
    SIPCluster, SIPClusterStatus, keys,
    sipcluster::{Blocked, Endpoint, Endpoints, HostRecord, HostState, RoleStatus, Services},
};
use base::{
    Key, Says,
    condition::{find, merge},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use plan_sip::{
    claims::{Note, Plan, Reason},
    services::{self, Problem, Rollout},
};

use super::Done;

/// Condition type of the whole.
pub(crate) const READY: &str = "Ready";
/// Condition type of the services.
pub(super) const SERVICES: &str = "ServicesAvailable";
/// Reason of condition Ready when all is as asked.
const SUCCEEDED: &str = "ReconciliationSucceeded";
/// Reason of condition ServicesAvailable: new pods do not run, and those of before serve.
pub(super) const ROLLOUT_FAILING: &str = "RolloutFailing";

/// Reasons of condition Ready, all there are.
pub(crate) const REASONS: [&str; 9] = [
    SUCCEEDED,
    "Progressing",
    "InfraServiceFailure",
    "UnableToApplyLabels",
    "Decommissioning",
    "Unschedulable",
    "Undecided",
    "UnableToDecommission",
    "InvalidSpec",
];

/// The status after a turn over `sip`.
pub(crate) fn of(sip: &SIPCluster, plan: &Plan, done: &Done<'_>, now: Timestamp) -> SIPClusterStatus {
    let old = sip.status.clone().unwrap_or_default();
    let generation = sip.metadata.generation;
    let Done { services, services_error, hosts_error, labelled, refused, outlook, labels_wait } = done;

    let hosts = hosts(&old.hosts, plan, labelled);
    let unlabelled = hosts.iter().filter(|h| h.state == HostState::Chosen).count();
    let endpoints =
        services.map(|s| s.endpoints.clone()).filter(|e| *e != Endpoints::default()).or(old.endpoints.clone());
    let oidc = services.map_or_else(|| old.oidc.clone(), |s| s.oidc.clone());

    let service = services_condition(*services, services_error.as_ref().map(ToString::to_string));
    let waits_for = Some(&service).filter(|service| *labels_wait && service.holds != Some(true));
    let claims = claims_condition(sip, plan, unlabelled, waits_for, hosts_error.as_ref().map(ToString::to_string));
    let published = endpoints_condition(sip, endpoints.as_ref());
    let rollouts = services.map(|s| s.rollouts.as_slice()).unwrap_or_default();
    let routine = !rollouts.is_empty() && rollouts.iter().all(|r| !r.failing);
    let summary = summary(sip, &hosts, endpoints.as_ref());
    let mut says = vec![ready(&old, generation, plan, routine, summary, [&claims, &service, &published])];
    let is_ready = says[0].holds == Some(true);
    let stuck = plan.blocked.as_ref().is_some_and(|b| b.reason == Reason::InvalidSpec);
    says.push(if is_ready && !rollouts.is_empty() {
        // It serves as asked before; whoever waits for the change itself, as kstatus does, waits for this.
        Says::yes("Reconciling", "RollingOut", rolling(rollouts))
    } else if is_ready || stuck {
        Says::no("Reconciling", if stuck { "Stalled" } else { "Settled" }, "")
    } else {
        Says::yes("Reconciling", says[0].reason, says[0].message.clone())
    });
    says.push(if stuck {
        Says::yes("Stalled", "InvalidSpec", says[0].message.clone())
    } else {
        Says::no("Stalled", if is_ready { "Settled" } else { "Progressing" }, "")
    });
    says.extend([claims, service, published]);
    says.extend(outlook.iter().cloned());
    says.extend(notes(&plan.notes));
    says.extend(warnings(*services));
    says.extend(refused.iter().map(|why| Says::yes("ClusterRefRefused", "ClusterRefRefused", why)));

    let claimed = |role: &str| {
        let found = plan.roles.iter().find(|r| r.name == role)?;
        let labelled = hosts.iter().filter(|h| h.role == role && h.state == HostState::Claimed).count();
        Some(format!("{labelled}/{}", found.desired))
    };
    let first = endpoints.as_ref().and_then(|e| e.control_plane.first());
    SIPClusterStatus {
        observed_generation: generation,
        blocked: blocked(&old, plan, now),
        control_plane: claimed(keys::CONTROL_PLANE),
        workers: claimed(keys::WORKER),
        endpoint: first.map(authority),
        roles: plan.roles.iter().map(|r| RoleStatus { claimed: count(&hosts, &r.name), ..r.clone() }).collect(),
        established: plan.established
            || (all_asked(plan) && unlabelled == 0 && sip.metadata.deletion_timestamp.is_none()),
        conditions: merge(&old.conditions, says, generation, now),
        endpoints,
        oidc,
        hosts,
    }
}

/// `host:port` of an endpoint, an IPv6 address in brackets.
fn authority(endpoint: &Endpoint) -> String {
    if endpoint.host.contains(':') {
        format!("[{}]:{}", endpoint.host, endpoint.port)
    } else {
        format!("{}:{}", endpoint.host, endpoint.port)
    }
}

/// The record as it was written before the turn, with the labels that were set since: never more hosts, never fewer.
fn hosts(old: &[HostRecord], plan: &Plan, labelled: &BTreeSet<Key>) -> Vec<HostRecord> {
    let source = if plan.record_moves { old } else { &plan.record };
    let mut hosts = source.to_vec();
    for host in &mut hosts {
        if host.state == HostState::Chosen && labelled.contains(&Key::new(&host.namespace, &host.name)) {
            host.state = HostState::Claimed;
        }
    }
    hosts
}

fn count(hosts: &[HostRecord], role: &str) -> i32 {
    let claimed = hosts.iter().filter(|h| h.role == role && h.state == HostState::Claimed).count();
    i32::try_from(claimed).unwrap_or(i32::MAX)
}

fn all_asked(plan: &Plan) -> bool {
    plan.blocked.is_none() && plan.roles.iter().all(|r| r.claimed >= r.desired)
}

fn blocked(old: &SIPClusterStatus, plan: &Plan, now: Timestamp) -> Option<Blocked> {
    let plan_sip::claims::Blocked { reason, role, message } = plan.blocked.clone()?;
    let same = old.blocked.as_ref().filter(|b| b.reason == reason.as_str() && b.role == role);
    let since = same.map_or(Time(now), |b| b.since.clone());
    Some(Blocked { reason: reason.as_str().to_owned(), role, message, since })
}

fn claims_condition(
    sip: &SIPCluster,
    plan: &Plan,
    unlabelled: usize,
    waits_for: Option<&Says>,
    error: Option<String>,
) -> Says {
    const KIND: &str = "HostsClaimed";
    if let Some(blocked) = &plan.blocked {
        return Says::no(KIND, blocked.reason.as_str(), blocked.message.clone());
    }
    if sip.metadata.deletion_timestamp.is_some() {
        return Says::no(KIND, "Decommissioning", departing(plan.depart.len()));
    }
    // A new cluster's hosts wait for its services, and what these lack is what people have to mend.
    if let Some(services) = waits_for.filter(|_| unlabelled > 0 || !all_asked(plan)) {
        let what = if unlabelled > 0 {
            let verbs =
                if unlabelled == 1 { "is chosen and gets its labels" } else { "are chosen and get their labels" };
            format!("{} {verbs} once the services are as asked", number(unlabelled, "host"))
        } else {
            "hosts are chosen once the services can be made".to_owned()
        };
        return Says::no(KIND, services.reason, format!("{what}: {}", services.message));
    }
    if unlabelled > 0 {
        let why = error.map(|e| format!(": {e}")).unwrap_or_default();
        let are = if unlabelled == 1 { "is" } else { "are" };
        let text = format!("{} {are} chosen and not yet labelled{why}", number(unlabelled, "host"));
        return Says::no(KIND, "UnableToApplyLabels", text);
    }
    let hosts = plan.record.iter().filter(|h| h.state != HostState::Releasing).count();
    Says::yes(KIND, "AllClaimed", number(hosts, "host"))
}

/// `1 host`, `2 hosts`.
fn number(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

fn departing(hosts: usize) -> String {
    match hosts {
        0 => "no host is left to release".to_owned(),
        1 => "1 host is being released".to_owned(),
        _ => format!("{hosts} hosts are being released"),
    }
}

/// What a cluster that is Ready has, in a few words: `5 hosts, 4 services, API 192.0.2.1:30443`.
fn summary(sip: &SIPCluster, hosts: &[HostRecord], endpoints: Option<&Endpoints>) -> String {
    let hosts = hosts.iter().filter(|h| h.state != HostState::Releasing).count();
    let first = endpoints.and_then(|e| e.control_plane.first());
    let api = first.map(|first| format!(", API {}", authority(first))).unwrap_or_default();
    format!("{}, {}{api}", number(hosts, "host"), number(asked_services(sip), "service"))
}

fn asked_services(sip: &SIPCluster) -> usize {
    let Services { load_balancer_control_plane: control_plane, load_balancer_worker: worker, jump_host, auth } =
        &sip.spec.services;
    control_plane.len() + worker.len() + jump_host.len() + auth.len()
}

fn rolling(rollouts: &[Rollout]) -> String {
    Problem::text_of(rollouts.iter().map(|r| &r.problem))
}

fn services_condition(plan: Option<&services::Plan>, error: Option<String>) -> Says {
    const KIND: &str = SERVICES;
    if let Some(error) = error {
        return Says::no(KIND, "InfraServiceFailure", error);
    }
    let Some(plan) = plan else { return Says::unknown(KIND, "NotObserved", "") };
    let (waiting, failed): (Vec<&Problem>, Vec<&Problem>) = plan.problems.iter().partition(|p| p.waiting);
    if !failed.is_empty() {
        return Says::no(KIND, "InfraServiceFailure", Problem::text_of(failed));
    }
    if !waiting.is_empty() || !plan.ready {
        return Says::no(KIND, "Progressing", Problem::text_of(waiting));
    }
    let failing = plan.rollouts.iter().any(|r| r.failing);
    match plan.rollouts.as_slice() {
        [] => Says::yes(KIND, "Available", ""),
        rollouts => Says::yes(KIND, if failing { ROLLOUT_FAILING } else { "RollingOut" }, rolling(rollouts)),
    }
}

fn endpoints_condition(sip: &SIPCluster, endpoints: Option<&Endpoints>) -> Says {
    const KIND: &str = "EndpointsPublished";
    let asked = asked_services(sip);
    let known = endpoints.map_or(0, |e| e.control_plane.len() + e.worker.len() + e.jump_host.len() + e.auth.len());
    if known < asked {
        return Says::no(KIND, "Progressing", format!("{known} of {asked} services have an endpoint"));
    }
    Says::yes(KIND, "Published", endpoints.and_then(|e| e.control_plane.first()).map(authority).unwrap_or_default())
}

/// `Ready`: hosts claimed, services applied and available, endpoints published. It never waits for the tenant.
///
/// `routine`: what is not available is so because a change is being rolled out.
fn ready(
    old: &SIPClusterStatus,
    generation: Option<i64>,
    plan: &Plan,
    routine: bool,
    summary: String,
    phases: [&Says; 3],
) -> Says {
    let Some(first) = phases.into_iter().find(|p| p.holds != Some(true)) else {
        return Says::yes(READY, SUCCEEDED, summary);
    };
    // A blocked role does not hide that a service fails, and the other way round the hosts come first.
    let progressing = matches!(first.reason, "Progressing" | "NotObserved" | "Decommissioning");
    let known =
        old.observed_generation == generation && find(&old.conditions, READY).is_some_and(|c| c.status == "True");
    let reason = match (progressing, known, plan.blocked.is_some()) {
        (true, true, false) if !routine => "InfraServiceFailure",
        (true, ..) => "Progressing",
        _ => first.reason,
    };
    let message = if first.message.is_empty() { first.kind.to_owned() } else { first.message.clone() };
    Says::no(READY, reason, message)
}

/// One condition per kind of note that speaks of a state; the others are told once, as events.
fn notes(notes: &[Note]) -> Vec<Says> {
    let mut says: Vec<Says> = Vec::new();
    for note in notes {
        let (kind, text) = note.parts();
        if note.is_once() {
            continue;
        }
        match says.iter_mut().find(|s| s.kind == kind) {
            Some(known) => {
                known.message.push_str("; ");
                known.message.push_str(text);
            }
            None => says.push(Says::yes(kind, kind, text)),
        }
    }
    says
}

fn warnings(plan: Option<&services::Plan>) -> Option<Says> {
    let warnings = &plan?.warnings;
    (!warnings.is_empty()).then(|| Says::yes("ServiceWarning", "ServiceWarning", Problem::text_of(warnings)))
}

#[cfg(test)]
mod tests;
