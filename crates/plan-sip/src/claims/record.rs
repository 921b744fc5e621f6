//! Brings the record in line with what labels, hosts and other records say.

use std::collections::BTreeSet;

use api::sipcluster::{HostRecord, HostState};
use base::Key;

use super::{Draft, Note, Seen, host_of};
use crate::{
    host::{Claim, Host},
    site::Site,
    want::Want,
};

/// The cluster that keeps a host which several records hold: the one whose labels it carries, with none the older one,
/// then by name.
pub fn keeper<'a>(site: &'a Site, host: &Host) -> Option<&'a Key> {
    let mut holders = site.holders(&host.key).filter(|c| holds(site, c, host));
    if let Claim::By { cluster, .. } = &host.claim {
        if let Some(labelled) = site.cluster(cluster) {
            return Some(&labelled.key);
        }
    }
    let first = holders.next()?;
    let age = |key: &Key| (site.cluster(key).map_or(i64::MAX, |c| c.created), key.clone());
    Some(holders.fold(first, |best, next| if age(next) < age(best) { next } else { best }))
}

fn holds(site: &Site, cluster: &Key, host: &Host) -> bool {
    site.cluster(cluster).is_some_and(|c| c.record.iter().any(|r| host_of(r) == host.key && r.uid == host.uid))
}

pub(super) fn reconcile(want: &Want, site: &Site, seen: &Seen) -> Draft {
    let mut draft = Draft::default();
    for entry in &want.record {
        if let Some(entry) = keep(want, site, seen, entry.clone(), &mut draft) {
            draft.entries.push(entry);
        }
    }
    let recorded: BTreeSet<Key> = draft.entries.iter().map(host_of).collect();
    for key in site.labelled(&want.key).filter(|key| !recorded.contains(key)) {
        let Some(host) = site.host(key) else { continue };
        let Claim::By { role, .. } = &host.claim else { continue };
        draft.entries.push(HostRecord {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: host.uid.clone(),
            role: role.clone(),
            state: HostState::Claimed,
            domains: domains(want, role, host),
            addresses: host.kept_addresses.clone().or_else(|| site.addresses(host).ok()).unwrap_or_default(),
        });
    }
    for entry in &mut draft.entries {
        let key = host_of(entry);
        let Some(host) = site.host(&key) else { continue };
        draft.used |= host.in_use();
        if host.forced_from().as_ref() == Some(&want.key) {
            entry.state = HostState::Releasing;
            draft.forced.insert(key);
        } else if let Some(why) = host.bad() {
            draft.notes.push(Note::HostUnhealthy(format!("{key}: {why}")));
        }
    }
    draft
}

/// What becomes of one entry of the record; `None`: it leaves it.
fn keep(want: &Want, site: &Site, seen: &Seen, mut entry: HostRecord, draft: &mut Draft) -> Option<HostRecord> {
    let key = host_of(&entry);
    let Some(host) = site.host(&key).filter(|h| h.uid == entry.uid) else {
        draft.notes.push(Note::HostLost(format!("{key} ({}) is gone", entry.role)));
        return None;
    };
    if let Some(other) = keeper(site, host).filter(|k| **k != want.key) {
        // The other one's labels or record hold it; touched first, so that no late write of ours succeeds.
        draft.notes.push(Note::HostYielded(format!("{key} belongs to {other}")));
        if host.claim != Claim::Free || seen.departed.contains(&key) {
            return None;
        }
        entry.state = HostState::Releasing;
        return Some(entry);
    }
    match (&host.claim, entry.state) {
        (Claim::By { role, .. }, HostState::Chosen | HostState::Claimed) => {
            entry.state = HostState::Claimed;
            if *role != entry.role {
                if host.in_use() {
                    draft.restored.insert(key.clone());
                    draft.notes.push(Note::LabelsRestored(format!("{key}: role {role} back to {}", entry.role)));
                } else {
                    entry.role = role.clone();
                }
            }
        }
        (Claim::By { .. }, HostState::Releasing) => {}
        (Claim::Torn, HostState::Chosen | HostState::Claimed) => {
            draft.restored.insert(key.clone());
            draft.notes.push(Note::LabelsRestored(format!("{key}: some claim labels were missing")));
        }
        (Claim::Free, HostState::Chosen) => {
            if host.in_use() || host.unfit.is_some() || host.released.is_some() {
                entry.state = HostState::Releasing;
            }
        }
        (Claim::Free, HostState::Claimed) => {
            if host.in_use() && host.released.is_none() {
                draft.restored.insert(key.clone());
                draft.notes.push(Note::LabelsRestored(format!("{key}: claim labels were taken off")));
            } else {
                draft.notes.push(Note::GivenBack(format!("{key} ({}): its claim labels were taken off", entry.role)));
                entry.state = HostState::Releasing;
            }
        }
        (Claim::Free | Claim::Torn, HostState::Releasing) => {
            let written =
                host.released.as_ref().is_some_and(|r| r.namespace == want.key.namespace && r.cluster == want.key.name);
            if written || seen.departed.contains(&key) {
                return None;
            }
        }
    }
    // Addresses move only while nobody uses the host: Metal3's provider replaces and clears network data.
    if !host.in_use() && entry.state != HostState::Releasing {
        if let Ok(found) = site.addresses(host) {
            if !found.is_empty() {
                entry.addresses = found;
            }
        }
        entry.domains = domains(want, &entry.role, host);
    }
    Some(entry)
}

/// The values of a role's topology labels on a host.
pub(super) fn domains(want: &Want, role: &str, host: &Host) -> std::collections::BTreeMap<String, String> {
    let levels = want.roles.get(role).map(|r| r.levels.as_slice()).unwrap_or_default();
    levels.iter().filter_map(|l| Some((l.key.clone(), host.labels.get(&l.key)?.clone()))).collect()
}
