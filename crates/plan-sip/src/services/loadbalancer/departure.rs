//! Who has let a leaving host go, and what is done about pods that do not.
//!
//! A host has left when every pod that counts serves a configuration without it and has no session to it. A pod counts
//! while it is Ready, and for a minute after. One that is Ready and has not let go after two minutes is deleted, one
//! of a load balancer at a time and only while the others serve, unless nobody is left to be served.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;

use super::{config::Config, servers::Servers};
use crate::services::{Pod, Problem, Report, Seen, Step, part::sooner};

/// Seconds after which a pod that is not Ready does not count any more.
const ABSENT_AFTER: i64 = 60;
/// Seconds after which a Ready pod that has not let go is deleted.
const PATIENCE: i64 = 120;
/// Seconds between two looks at the reports of pods, which nobody announces.
pub(super) const LOOK: u64 = 2;
/// The same once it is clear that it will take longer.
const SLOW_LOOK: u64 = 30;

/// One load balancer, as far as departures go.
pub(super) struct Balancer<'a> {
    /// How people find its entry.
    pub entry: &'a str,
    /// Its pods.
    pub pods: &'a [&'a Pod],
    /// What its Secret shall hold; none if that cannot be said at present, or if it is going.
    pub config: Option<&'a Config>,
    /// Its servers.
    pub servers: &'a Servers,
}

/// What became of the departures.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Departures {
    /// Hosts that some pod has not let go.
    pub held: BTreeSet<Key>,
    /// Pods to annotate or delete.
    pub steps: Vec<Step>,
    /// What keeps hosts from leaving.
    pub problems: Vec<Problem>,
    /// When to look again.
    pub again_in: Option<u64>,
}

impl Balancer<'_> {
    /// Who is still held by this load balancer, and what to do about it.
    pub fn departures(&self, seen: &Seen) -> Departures {
        let mut found = Departures { steps: self.annotations(), ..Departures::default() };
        let pods: Vec<&Pod> = self.pods.iter().copied().filter(|pod| counts(pod, seen.now)).collect();
        let leaving: BTreeMap<&Key, &str> =
            self.servers.leaving.iter().map(|server| (&server.host, server.name.as_str())).collect();
        let clinging: Vec<&Pod> =
            pods.iter().copied().filter(|pod| leaving.values().any(|name| !self.has_let_go(pod, name))).collect();
        found.held = leaving
            .iter()
            .filter(|(_, name)| pods.iter().any(|pod| !self.has_let_go(pod, name)))
            .map(|(host, _)| (*host).clone())
            .collect();
        if let Some(problem) = self.names_leaving() {
            found.problems.push(problem);
            found.again_in = (!clinging.is_empty()).then_some(SLOW_LOOK);
            return found;
        }
        let late: Vec<&Pod> = clinging.iter().copied().filter(|pod| self.is_late(pod, seen.now)).collect();
        if let Some(pod) = late.first() {
            found.problems.push(Problem {
                waiting: true,
                entry: self.entry.to_owned(),
                message: format!("pod {} still has leaving hosts after {PATIENCE} s and is replaced", pod.name),
            });
            if !self.would_hurt(pod) {
                found.steps.push(Step::DeletePod {
                    name: pod.name.clone(),
                    uid: pod.uid.clone(),
                    resource_version: pod.resource_version.clone(),
                });
            }
        }
        if !clinging.is_empty() {
            found.again_in = Some(LOOK);
        }
        found.again_in = sooner(found.again_in, self.trial(seen.now));
        found
    }

    /// When to ask the pods again what became of a candidate.
    fn trial(&self, now: i64) -> Option<u64> {
        let Config { meta, candidate, .. } = self.config?;
        let fresh = now - meta.since < PATIENCE;
        (candidate.is_some() && !self.pods.is_empty()).then_some(if fresh { LOOK } else { SLOW_LOOK })
    }

    fn serves(&self, report: &Report) -> bool {
        self.config.is_some_and(|Config { meta, .. }| {
            report.serving == meta.accepted || meta.candidate.as_ref() == Some(&report.serving)
        })
    }

    fn has_let_go(&self, pod: &Pod, server: &str) -> bool {
        pod.report.as_ref().is_some_and(|report| self.serves(report) && report.leaving.get(server) == Some(&0))
    }

    /// Whether this pod has had its time: since it became Ready, and since it was asked. Without a configuration to ask
    /// for, another pod would do no better.
    fn is_late(&self, pod: &Pod, now: i64) -> bool {
        let late = |Config { meta, .. }: &Config| now - meta.since.max(pod.ready_since) >= PATIENCE;
        pod.ready && !pod.deleting && self.config.is_some_and(late)
    }

    /// Whether nobody else would serve while this pod is replaced.
    fn would_hurt(&self, pod: &Pod) -> bool {
        let mut others = self.pods.iter().filter(|other| other.uid != pod.uid);
        !self.servers.staying.is_empty() && others.any(|other| !other.ready || other.deleting)
    }

    /// A leaving host whose address stands in the configuration although no server of ours has it: the template names it.
    fn names_leaving(&self) -> Option<Problem> {
        let Config { accepted, candidate, .. } = self.config?;
        let texts = || std::iter::once(accepted).chain(candidate);
        let mut leaving = self.servers.leaving.iter().filter_map(|it| Some((it, self.servers.own_address(it)?)));
        let (server, address) = leaving.find(|(_, own)| texts().any(|it| mentions(&it.text, &own.to_string())))?;
        Some(Problem {
            waiting: false,
            entry: self.entry.to_owned(),
            message: format!(
                "host {} cannot leave: the template itself names its address {address}; use .Servers instead",
                server.host
            ),
        })
    }

    /// Pods that have not read what the Secret holds. One that starts reads it anyway, and one that has read it needs no
    /// annotation.
    fn annotations(&self) -> Vec<Step> {
        let Some(config) = self.config else { return Vec::new() };
        let wanted = config.wanted();
        let stale = self.pods.iter().filter(|pod| {
            !pod.deleting
                && pod.wanted.as_ref() != Some(&wanted)
                && pod.report.as_ref().map_or(pod.ready, |report| !self.is_current(config, report))
        });
        stale
            .map(|pod| Step::AnnotatePod {
                name: pod.name.clone(),
                uid: pod.uid.clone(),
                resource_version: pod.resource_version.clone(),
                wanted: wanted.clone(),
            })
            .collect()
    }

    fn is_current(&self, config: &Config, report: &Report) -> bool {
        let Config { meta, .. } = config;
        let tried = meta.candidate.as_ref().is_none_or(|candidate| {
            report.serving == *candidate || report.refused.as_ref().is_some_and(|(sha, _)| sha == candidate)
        });
        self.serves(report) && tried && meta.leaving.iter().all(|leaving| report.leaving.contains_key(&leaving.name))
    }
}

pub(super) fn counts(pod: &Pod, now: i64) -> bool {
    pod.ready || now - pod.ready_since < ABSENT_AFTER
}

/// Whether `address` stands in `text`, and not merely as a part of another one.
fn mentions(text: &str, address: &str) -> bool {
    text.match_indices(address).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + address.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == ':')
            && !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.')
    })
}
