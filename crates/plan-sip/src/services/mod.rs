//! The objects that serve a tenant in the base cluster: what they shall be, and what has to change until they are.
//!
//! ```text
//!  SIPCluster spec + hosts of the record ──► desired objects ──┐
//!  templates, Secrets it names ─────────────┘                  ├──► diff ──► steps, endpoints, problems
//!  objects that are there, pods and their reports ─────────────┘
//! ```

pub mod auth;
#[cfg(test)]
mod carried_out;
mod diff;
mod endpoints;
mod inherited;
mod jumphost;
mod loadbalancer;
pub mod names;
mod object;
mod part;
mod plan;
mod secret;
mod seen;
mod want;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use api::sipcluster::Endpoints;

use self::diff::Difference;
pub(crate) use self::part::Part;
pub use self::{
    diff::holds,
    inherited::inherited,
    names::names_referred,
    object::{Kind, Object},
    plan::{Plan, Problem, Rollout, Step},
    seen::{Credentials, CustomTemplate, Facts, Owned, Pod, Referred, Report, Seen, Unread},
    want::{Backend, Installation, Want},
};

/// Decides what has to change so that the tenant is served as asked.
pub fn plan(want: &Want<'_>, seen: &Seen) -> Plan {
    if want.gone {
        return demolish(want, seen);
    }
    let (control_plane, worker, confirmed) = loadbalancer::desired(want, seen);
    let jump_host = jumphost::desired(want, seen);
    let auth = auth::desired(want, seen);
    let endpoints = Endpoints {
        control_plane: control_plane.endpoints.clone(),
        worker: worker.endpoints.clone(),
        jump_host: jump_host.endpoints.clone(),
        auth: auth.endpoints.clone(),
    };
    let mut all = Part::default();
    for part in [control_plane, worker, jump_host, auth] {
        all.add(part);
    }
    let Part { objects, keep, steps: extra, endpoints: _, oidc, mut problems, warnings, unfinished, again_in } = all;
    let entries = names::entries(&want.owner.name, want.spec);
    let absent: Vec<Problem> = objects.iter().filter_map(|object| unavailable(object, seen, &entries)).collect();
    let rollouts: Vec<Rollout> = objects.iter().filter_map(|object| rollout(object, seen, &entries)).collect();
    let Difference { mut steps, verified, problems: taken } = diff::difference(want, seen, objects, &keep);
    let incomplete = |step: &Step| match step {
        Step::Create(_) | Step::Delete { .. } | Step::MakeHostKeys { .. } => true,
        Step::MakeCertificate { replaces, .. } => replaces.is_none(),
        Step::Update { .. } | Step::AnnotatePod { .. } | Step::DeletePod { .. } => false,
    };
    steps.extend(extra);
    let ready = !unfinished && absent.is_empty() && taken.is_empty() && !steps.iter().any(incomplete);
    steps.sort_by_key(order);
    problems.extend(absent);
    problems.extend(taken);
    Plan { steps, verified, endpoints, oidc, problems, rollouts, warnings, confirmed, ready, again_in }
}

/// Everything goes. Nobody is left to wait for, and nothing to be reached.
fn demolish(want: &Want<'_>, seen: &Seen) -> Plan {
    let Difference { mut steps, verified, problems } = diff::difference(want, seen, Vec::new(), &BTreeSet::new());
    steps.sort_by_key(order);
    let confirmed =
        want.backends.iter().filter(|backend| backend.leaving).map(|backend| backend.host.clone()).collect();
    Plan { ready: steps.is_empty(), steps, verified, problems, confirmed, ..Plan::default() }
}

/// What goes makes room (node ports, names) for what comes; what pods mount comes before them; pods are told of a Secret
/// when it is written.
fn order(step: &Step) -> (u8, Option<Reverse<Kind>>, Option<Kind>, String) {
    match step {
        Step::Delete { kind, name, .. } => (0, Some(Reverse(*kind)), None, name.clone()),
        Step::Create(object)
        | Step::Update { object, .. }
        | Step::MakeHostKeys { object }
        | Step::MakeCertificate { object, .. } => (1, None, Some(object.kind), object.name.clone()),
        Step::AnnotatePod { name, .. } => (2, None, None, name.clone()),
        Step::DeletePod { name, .. } => (3, None, None, name.clone()),
    }
}

/// Says of a Deployment that it is not available, and why, as far as its pods tell.
fn unavailable(object: &Object, seen: &Seen, entries: &BTreeMap<String, String>) -> Option<Problem> {
    if object.kind != Kind::Deployment {
        return None;
    }
    let (why, rolling) = match seen.objects.get(&(Kind::Deployment, object.name.clone())).map(|owned| &owned.facts) {
        Some(Facts::Deployment { available: true, .. }) => return None,
        Some(Facts::Deployment { available: false, rolling, message }) => (message.as_str(), *rolling),
        _ => ("", false),
    };
    let mut said = troubles(object, seen);
    said.extend(Some(why).filter(|why| !why.is_empty()));
    if said.is_empty() && rolling {
        said.push("its pods are being started");
    }
    let mut message = format!("Deployment {} is not available yet", object.name);
    if !said.is_empty() {
        message = format!("{message}: {}", said.join("; "));
    }
    let entry = entries.get(&object.name).unwrap_or(&object.name).clone();
    Some(Problem { waiting: true, entry, message })
}

/// Says of a Deployment that a change of it is not in all of its pods yet.
fn rollout(object: &Object, seen: &Seen, entries: &BTreeMap<String, String>) -> Option<Rollout> {
    if object.kind != Kind::Deployment {
        return None;
    }
    let owned = seen.objects.get(&(Kind::Deployment, object.name.clone()))?;
    let Facts::Deployment { available, rolling: true, message: why } = &owned.facts else { return None };
    let mut said = troubles(object, seen);
    said.extend(Some(why.as_str()).filter(|why| !why.is_empty()));
    let failing = !said.is_empty();
    let meanwhile = if *available { "the pods of before serve meanwhile" } else { "nothing serves meanwhile" };
    let mut message = format!("a change of Deployment {} is being rolled out; {meanwhile}", object.name);
    if failing {
        message = format!("{message}: {}", said.join("; "));
    }
    let entry = entries.get(&object.name).unwrap_or(&object.name).clone();
    Some(Rollout { failing, problem: Problem { waiting: true, entry, message } })
}

/// Why pods of a Deployment do not run, each reason once.
fn troubles<'a>(object: &Object, seen: &'a Seen) -> Vec<&'a str> {
    let pods = seen.pods.iter().filter(|pod| pod.instance == object.name && !pod.trouble.is_empty());
    let troubles: BTreeSet<&str> = pods.map(|pod| pod.trouble.as_str()).collect();
    troubles.into_iter().collect()
}

#[cfg(test)]
mod tests;
