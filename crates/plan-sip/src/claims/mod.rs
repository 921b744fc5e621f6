//! What becomes of the hosts of one SIPCluster: which it keeps, takes, gives back, and on what it waits.
//!
//! ```text
//!              choice written           labels seen             surplus, deletion, force, taken off by people
//!   free host ──────────────► Chosen ─────────────► Claimed ─────────────────────────────────┐
//!      ▲                         │ unfit, in use,      ▲ used again before its labels went    │
//!      │                         │ could not be whole  └────────────────────────────────┐     │
//!      │                         └────────────────────────────────────────────────► Releasing ◄
//!      │                                               backends have let go: one write  │
//!      └────────── quarantine ◄──── dropped from the record ◄── labels off, annotation ─┘
//! ```
//!
//! The record (`status.hosts`) is written before any label and holds the host for everybody; labels are the truth about
//! what has been carried out.
//!
//! A view may be stale, and of each kind by another age; a write of a host proves only that the view of that host was
//! not. So that two leaders, one of them late, never undo each other's work:
//!
//! - Record and hosts are read, then the record is written ([`Plan::record_first`]), then the hosts are. What is written
//!   to a host was therefore decided on a host seen before the record was known to be current.
//! - A host leaves the record only after it was written to while its entry was Releasing. A label decided before that
//!   carries an older resourceVersion and fails; one decided after it cannot pass the write of the record.
//! - What cannot be proved by a write, that a host is gone, or that its labels are there, is read live ([`Plan::confirm`]).

mod count;
mod record;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use api::sipcluster::{HostRecord, HostState, Released, RoleStatus};
use base::Key;
use jiff::Timestamp;

use crate::{
    host::{Claim, Host},
    network::Addresses,
    site::Site,
    want::Want,
};

pub use record::keeper;

/// What is known beside the site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Unlabelled hosts in state Releasing that were written to since they came into it: they may leave the record.
    /// Forgotten whenever somebody else has written the record, for then the entry may be another one.
    pub departed: BTreeSet<Key>,
    /// Whether hosts may not be chosen, because nothing could be made in the cluster's namespace that serves them. What
    /// is recorded or labelled stays, and is released, as ever.
    pub no_choice: bool,
    /// Addresses by name of host, as what already serves the cluster names them
    /// ([`crate::services::inherited`]): for hosts that are labelled and tell none themselves.
    pub inherited: BTreeMap<String, Addresses>,
}

/// Sets the three claim labels on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The host.
    pub host: Key,
    /// Precondition.
    pub uid: String,
    /// Precondition.
    pub resource_version: String,
    /// The role.
    pub role: String,
    /// What annotation [`api::keys::ADDRESSES`] will say.
    pub addresses: Addresses,
    /// Whether people had taken the labels off, or changed them.
    pub restored: bool,
}

/// Takes a host out of this cluster, once no backend knows it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depart {
    /// The host.
    pub host: Key,
    /// Precondition.
    pub uid: String,
    /// Precondition.
    pub resource_version: String,
    /// The role it had.
    pub role: String,
    /// Whether it has labels of this cluster, all or what people left of them: they go.
    pub labelled: bool,
    /// Whether annotation [`api::keys::RELEASED`] comes on in the same write, and the quarantine begins. Else, where a
    /// quarantine would bind a host that is somebody else's, the host is only touched.
    pub quarantine: bool,
    /// Whether an administrator asked for it by annotation, which goes too.
    pub forced: bool,
}

impl Depart {
    /// What annotation [`api::keys::RELEASED`] will say, if it comes on; `at`: now, unless the host is in use.
    ///
    /// It names the cluster, to which the labels return if its consumer appears, only where this write takes labels off.
    /// A host without them may never have had any, and whoever appears there be anybody's.
    pub fn released(&self, cluster: &Key, at: Option<Timestamp>) -> Option<Released> {
        let named = self.labelled || self.forced;
        let of = |name: &String| if named { name.clone() } else { String::new() };
        self.quarantine.then(|| Released {
            namespace: of(&cluster.namespace),
            cluster: of(&cluster.name),
            role: self.role.clone(),
            at,
            forced: self.forced,
        })
    }
}

/// Something the record is about to say, or no longer to say, that no write to the host proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The host.
    pub host: Key,
    /// Its uid.
    pub uid: String,
    /// It has to be there with this resourceVersion; `None`: there must be no host of this uid.
    pub resource_version: Option<String>,
}

/// Why something cannot be done at present: the reason of condition Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Hosts are missing.
    Unschedulable,
    /// The search for hosts was given up before it had an answer.
    Undecided,
    /// Hosts are still in use while the cluster is being deleted.
    UnableToDecommission,
    /// The spec is wrong in a way that admission did not see.
    InvalidSpec,
}

impl Reason {
    /// As in conditions, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::Undecided => "Undecided",
            Self::UnableToDecommission => "UnableToDecommission",
            Self::InvalidSpec => "InvalidSpec",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What cannot be done at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Why.
    pub reason: Reason,
    /// The role that is short, where one is.
    pub role: Option<String>,
    /// For people.
    pub message: String,
}

/// What people should know though nothing is blocked by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// Hosts of a role share a domain more than the spec allows, from before the rule or a label changed.
    SpreadViolated(String),
    /// A claimed host is bad.
    HostUnhealthy(String),
    /// A host of the record is gone.
    HostLost(String),
    /// Another cluster has a host that this record held.
    HostYielded(String),
    /// Labels of a host in use were changed by people and are restored.
    LabelsRestored(String),
    /// Labels of an idle host were taken off by people: it counts as given back.
    GivenBack(String),
    /// Two hosts have the same address.
    DuplicateAddress(String),
    /// Surplus hosts wait until nobody uses them.
    SurplusInUse(String),
    /// Bad hosts that shall be replaced wait for hosts that may take their place.
    ReplacementMissing(String),
    /// An administrator's annotation that is to release a host names another cluster, or none.
    ForceReleaseIgnored(String),
}

impl Note {
    /// Whether it speaks of something that happened, to be told once, rather than of a state.
    pub fn is_once(&self) -> bool {
        match self {
            Self::HostLost(_) | Self::HostYielded(_) | Self::LabelsRestored(_) | Self::GivenBack(_) => true,
            Self::SpreadViolated(_)
            | Self::HostUnhealthy(_)
            | Self::DuplicateAddress(_)
            | Self::SurplusInUse(_)
            | Self::ReplacementMissing(_)
            | Self::ForceReleaseIgnored(_) => false,
        }
    }

    /// Its kind and its text.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::SpreadViolated(t) => ("SpreadViolated", t),
            Self::HostUnhealthy(t) => ("HostUnhealthy", t),
            Self::HostLost(t) => ("HostLost", t),
            Self::HostYielded(t) => ("HostYielded", t),
            Self::LabelsRestored(t) => ("LabelsRestored", t),
            Self::GivenBack(t) => ("GivenBack", t),
            Self::DuplicateAddress(t) => ("DuplicateAddress", t),
            Self::SurplusInUse(t) => ("SurplusInUse", t),
            Self::ReplacementMissing(t) => ("ReplacementMissing", t),
            Self::ForceReleaseIgnored(t) => ("ForceReleaseIgnored", t),
        }
    }
}

/// What becomes of the hosts of one SIPCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four findings that do not exclude each other, not a state")]
pub struct Plan {
    /// The record as it shall be.
    pub record: Vec<HostRecord>,
    /// What has to be read live and found so before the record is written, in whichever write: else the view is stale,
    /// and nothing of this plan may be done.
    pub confirm: Vec<Confirm>,
    /// Whether the record has to be written, alone, with the resourceVersion of the decision, before anything else is
    /// done: hosts came, left or are leaving, or are going to be written to. In the last case the record may be what it
    /// was; the write changes nothing then, but proves that nobody else has changed it.
    pub record_first: bool,
    /// Whether the record is to say something else than it does, beside labels that were seen. If it is not, its write
    /// may wait until a host is really going to be written to.
    pub record_moves: bool,
    /// Hosts to label once the services know them.
    pub label: Vec<Label>,
    /// Hosts to let go once the services have forgotten them.
    pub depart: Vec<Depart>,
    /// Surplus hosts in use, in the present order of preference, by role: to be released when nobody uses them.
    pub waiting: Vec<(String, Key)>,
    /// What cannot be done.
    pub blocked: Option<Blocked>,
    /// Whether a host that becomes free may change this plan: something is blocked for want of one, or a bad host waits
    /// for another in its place.
    pub seeks: bool,
    /// What people should know.
    pub notes: Vec<Note>,
    /// Counts by role.
    pub roles: Vec<RoleStatus>,
    /// Whether the cluster has, or has once had, all its hosts.
    pub established: bool,
    /// Whether every host asked for is recorded, and every recorded one labelled.
    pub whole: bool,
    /// Whether it is being deleted and has no host any more.
    pub finished: bool,
}

/// Decides what becomes of the hosts of `want`. Takes the site mutably only to index what is asked for first.
pub fn plan(want: &Want, site: &mut Site, seen: &Seen) -> Plan {
    let mut draft = record::reconcile(want, site, seen);
    if let Some(message) = &want.invalid {
        let blocked = Blocked { reason: Reason::InvalidSpec, role: None, message: message.clone() };
        return Plan { blocked: Some(blocked), ..draft.finish(want, site) };
    }
    count::surplus(want, site, &mut draft);
    if !seen.no_choice {
        count::shortage(want, site, &mut draft);
        count::replacement(want, site, &mut draft);
    }
    draft.finish(want, site)
}

/// The record on its way from what it is to what it shall be.
#[derive(Debug, Default)]
struct Draft {
    entries: Vec<HostRecord>,
    /// Hosts in state Releasing because an administrator forced them out.
    forced: BTreeSet<Key>,
    waiting: Vec<(String, Key)>,
    restored: BTreeSet<Key>,
    blocked: Option<Blocked>,
    /// Whether a bad host waits for another in its place.
    seeks: bool,
    notes: Vec<Note>,
    /// Whether any of its hosts has been in use: it counts as once whole.
    used: bool,
}

fn host_of(record: &HostRecord) -> Key {
    Key::new(&record.namespace, &record.name)
}

impl Draft {
    fn of_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a HostRecord> {
        self.entries.iter().filter(move |e| e.role == role && e.state != HostState::Releasing)
    }

    fn release(&mut self, host: &Key) {
        for entry in self.entries.iter_mut().filter(|e| host_of(e) == *host) {
            entry.state = HostState::Releasing;
        }
    }

    fn finish(self, want: &Want, site: &Site) -> Plan {
        let Self { entries, forced, waiting, restored, blocked, seeks, mut notes, used } = self;
        let for_hosts = |b: &Blocked| matches!(b.reason, Reason::Unschedulable | Reason::Undecided);
        let seeks = seeks || blocked.as_ref().is_some_and(for_hosts);
        let mut plan = Plan { waiting, blocked, seeks, ..Plan::default() };
        for entry in &entries {
            let key = host_of(entry);
            let Some(host) = site.host(&key) else { continue };
            let labelled = host.is_claimed_by(&want.key);
            // What is left of labels is this cluster's only if nobody else could have set them.
            let torn = host.claim == Claim::Torn
                && (!host.in_use() || forced.contains(&key))
                && site.holders(&key).all(|by| *by == want.key);
            let (uid, resource_version) = (host.uid.clone(), host.resource_version.clone());
            match entry.state {
                HostState::Releasing => plan.depart.push(Depart {
                    quarantine: forced.contains(&key) || labelled || torn || quarantine(want, site, host),
                    forced: forced.contains(&key),
                    role: entry.role.clone(),
                    labelled: labelled || torn,
                    host: key,
                    uid,
                    resource_version,
                }),
                HostState::Chosen | HostState::Claimed if !labelled || restored.contains(&key) => {
                    plan.label.push(Label {
                        restored: restored.contains(&key),
                        role: entry.role.clone(),
                        addresses: entry.addresses.clone(),
                        host: key,
                        uid,
                        resource_version,
                    });
                }
                HostState::Chosen | HostState::Claimed => {}
            }
        }
        let stays = |role: &str| entries.iter().filter(|e| e.role == role && e.state != HostState::Releasing).count();
        let names: BTreeSet<&String> = want.roles.keys().chain(entries.iter().map(|e| &e.role)).collect();
        let mut met = true;
        for name in names {
            let (active, standby) = want.roles.get(name).map_or((0, 0), |r| (r.active, r.standby));
            let waits = plan.waiting.iter().filter(|(role, _)| role == name).count();
            met &= stays(name) >= (active + standby) as usize;
            plan.roles.push(RoleStatus {
                name: name.clone(),
                desired: int((active + standby) as usize),
                claimed: int(stays(name)),
                standby: int(standby as usize),
                waiting: int(waits),
            });
        }
        notes.extend(duplicates(&entries));
        notes.sort();
        notes.dedup();
        plan.whole = met && plan.label.is_empty() && want.invalid.is_none();
        plan.established = want.established || used || (plan.whole && !want.deleting);
        plan.finished = want.deleting && entries.is_empty();
        plan.confirm = record::confirm(want, site, &entries);
        plan.record_moves = must_precede(&want.record, &entries);
        plan.record_first = plan.record_moves || !plan.label.is_empty() || !plan.depart.is_empty();
        plan.notes = notes;
        plan.record = entries;
        plan
    }
}

/// Whether a host that leaves without labels serves a quarantine: people may have taken them off a moment ago, and the
/// consumer that saw them may write late. Not when it is used, or held, by somebody else, nor when it serves one already.
fn quarantine(want: &Want, site: &Site, host: &Host) -> bool {
    host.claim == Claim::Free
        && !host.in_use()
        && host.released.is_none()
        && keeper(site, host).is_none_or(|by| *by == want.key)
}

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Whether going from one record to the other is more than labels that were seen.
fn must_precede(old: &[HostRecord], new: &[HostRecord]) -> bool {
    let seen_labels = |mut e: HostRecord| {
        if e.state == HostState::Claimed {
            e.state = HostState::Chosen;
        }
        e
    };
    old.len() != new.len() || old.iter().zip(new).any(|(o, n)| seen_labels(o.clone()) != seen_labels(n.clone()))
}

/// Hosts of the record that share an address in a network. The originals' samples have them, so it is no error.
fn duplicates(entries: &[HostRecord]) -> Vec<Note> {
    let mut by_address: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for entry in entries.iter().filter(|e| e.state != HostState::Releasing) {
        for (network, address) in &entry.addresses {
            by_address.entry((network, address)).or_default().push(host_of(entry).to_string());
        }
    }
    by_address
        .into_iter()
        .filter(|(_, hosts)| hosts.len() > 1)
        .map(|((network, address), hosts)| {
            Note::DuplicateAddress(format!("{address} in network {network}: {}", hosts.join(", ")))
        })
        .collect()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Label { host, role, restored, uid: _, resource_version: _, addresses: _ } in &self.label {
            writeln!(f, "+ claim {host} as {role}{}", if *restored { " (labels restored)" } else { "" })?;
        }
        for Depart { host, role, labelled, forced, uid: _, resource_version: _, quarantine: _ } in &self.depart {
            let how = match (labelled, forced) {
                (_, true) => "release, forced",
                (true, false) => "release",
                (false, false) => "give back",
            };
            writeln!(f, "- {how} {host} ({role})")?;
        }
        for (role, host) in &self.waiting {
            writeln!(f, "- release {host} ({role}) when nobody uses it")?;
        }
        if let Some(Blocked { reason, message, .. }) = &self.blocked {
            writeln!(f, "! {reason}: {message}")?;
        }
        for note in &self.notes {
            let (kind, text) = note.parts();
            writeln!(f, "? {kind}: {text}")?;
        }
        Ok(())
    }
}
