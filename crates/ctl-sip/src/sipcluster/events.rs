//! Tells people, once each, what changed. Nothing depends on an event.

use api::{SIPCluster, SIPClusterStatus};
use base::condition::find;
use io_kube::events::{Told, Tone, transitions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use plan_sip::{
    claims::Note,
    outlook::{OIDC_READY, TENANT_REACHABLE},
};

use super::{
    Job,
    status::{READY, ROLLOUT_FAILING, SERVICES},
};
use crate::Context;

/// Tells what the change to `status` is worth.
pub(super) async fn tell(job: &Job, status: &SIPClusterStatus, cx: &Context) {
    let Some(recorder) = &cx.events else { return };
    let about = job.sip.object_ref(&());
    for told in worth_telling(&job.sip, status, &job.plan.notes) {
        if let Err(error) = recorder.tell(&about, &told).await {
            tracing::debug!(cluster = %job.want.key, %error, "event not written");
        }
    }
}

/// Ready when it moved, states that began, and what people did to hosts.
pub(super) fn worth_telling(sip: &SIPCluster, new: &SIPClusterStatus, notes: &[Note]) -> Vec<Told> {
    const PHASES: [&str; 5] = ["Reconciling", "Stalled", "HostsClaimed", "ServicesAvailable", "EndpointsPublished"];
    let old = sip.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    let troubled = |c: &Condition| c.type_ == SERVICES && c.reason == ROLLOUT_FAILING;
    let worth = |c: &&Condition| !PHASES.contains(&c.type_.as_str()) || troubled(c);
    let mut new: Vec<_> = new.conditions.iter().filter(worth).cloned().collect();
    // Beginning to work is no news.
    new.retain(|c| {
        !(c.type_ == READY && c.reason == "Progressing" && find(old, READY).is_none_or(|o| o.status != "True"))
    });
    // Nor that nobody could be asked.
    new.retain(|c| c.status != "Unknown");
    // Nor is it a worry that a cluster which people delete, or change, is not Ready meanwhile.
    let passing = |c: &Condition| c.type_ == READY && c.reason == "Progressing";
    let holds = |c: &Condition| c.status == "True" && [READY, TENANT_REACHABLE, OIDC_READY].contains(&c.type_.as_str());
    let good = |c: &Condition| passing(c) || holds(c);
    let mut told = transitions(old, &new, "Reconcile", good);
    told.extend(notes.iter().filter(|n| n.is_once()).map(|note| {
        let (reason, text) = note.parts();
        Told { tone: Tone::Warning, reason: reason.to_owned(), action: "Claim", note: text.to_owned() }
    }));
    told
}
