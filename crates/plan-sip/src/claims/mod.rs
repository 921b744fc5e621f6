//! What becomes of the hosts of one SIPCluster: which it keeps, takes, gives back, and on what it waits.
//!
//! ```text
//!              choice written            labels seen              surplus, deletion, force
//!   free host ───────────────► Chosen ───────────────► Claimed ───────────────────────────► Releasing
//!      ▲                          │ could not be whole     │ idle and unlabelled by people      │ backends have let go:
//!      │                          ▼                        ▼                                    ▼ labels off, quarantine
//!      └────────── quarantine ◄── touched, dropped from the record ◄────────────────────────────┘
//! ```
//!
//! The record (`status.hosts`) is written before any label and holds the host for everybody; labels are the truth about
//! what has been carried out. A host leaves the record only after it was written to, so that a late write of an older
//! leader, which carries the resourceVersion of its decision, fails.

mod count;
mod record;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use api::sipcluster::{HostRecord, HostState, RoleStatus};
use base::Key;

use crate::{network::Addresses, site::Site, want::Want};

pub use record::keeper;

/// What is known beside the site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Unlabelled hosts in state Releasing that were written to since they came into it: they may leave the record.
    pub departed: BTreeSet<Key>,
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
    /// Whether it has the labels: they go, and the quarantine begins. Else it is only touched.
    pub labelled: bool,
    /// Whether an administrator asked for it by annotation, which goes too.
    pub forced: bool,
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
}

impl Note {
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
        }
    }
}

/// What becomes of the hosts of one SIPCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The record as it shall be.
    pub record: Vec<HostRecord>,
    /// Whether the record has to be written, alone, before anything else is done: hosts came, left or are leaving.
    pub record_first: bool,
    /// Hosts to label once the services know them.
    pub label: Vec<Label>,
    /// Hosts to let go once the services have forgotten them.
    pub depart: Vec<Depart>,
    /// Surplus hosts in use, in the present order of preference, by role: to be released when nobody uses them.
    pub waiting: Vec<(String, Key)>,
    /// What cannot be done.
    pub blocked: Option<Blocked>,
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
    count::shortage(want, site, &mut draft);
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
        let Self { entries, forced, waiting, restored, blocked, mut notes, used } = self;
        let mut plan = Plan { waiting, blocked, ..Plan::default() };
        for entry in &entries {
            let key = host_of(entry);
            let Some(host) = site.host(&key) else { continue };
            let labelled = host.is_claimed_by(&want.key);
            let (uid, resource_version) = (host.uid.clone(), host.resource_version.clone());
            match entry.state {
                HostState::Releasing => plan.depart.push(Depart {
                    forced: forced.contains(&key),
                    role: entry.role.clone(),
                    labelled,
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
        plan.whole = met && plan.label.is_empty();
        plan.established = want.established || used || (plan.whole && !want.deleting && want.invalid.is_none());
        plan.finished = want.deleting && entries.is_empty();
        plan.record_first = must_precede(&want.record, &entries);
        plan.notes = notes;
        plan.record = entries;
        plan
    }
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
        for Label { host, role, restored, .. } in &self.label {
            writeln!(f, "+ claim {host} as {role}{}", if *restored { " (labels restored)" } else { "" })?;
        }
        for Depart { host, role, labelled, forced, .. } in &self.depart {
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
