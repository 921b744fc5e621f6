//! Brings the record in line with what labels, hosts and other records say.

use std::collections::BTreeSet;

use api::sipcluster::{HostRecord, HostState, Released, Replace};
use base::Key;

use super::{Confirm, Draft, Note, Seen, host_of};
use crate::{
    host::{Claim, Host},
    site::Site,
    want::Want,
};

/// The cluster that keeps a host which several claim. Of several records that hold it, the one of the cluster whose
/// labels it carries; with none the older cluster's, then by name. Labels without a record count likewise. But a host in
/// use whose labels people have taken off or changed stays with the record that has seen its own labels on it.
pub fn keeper<'a>(site: &'a Site, host: &Host) -> Option<&'a Key> {
    let age = |key: &&Key| (site.cluster(key).map_or(i64::MAX, |c| c.created), (*key).clone());
    let oldest = |claimed: bool| {
        let entry = |c: &&Key| entry(site, c, host).is_some_and(|e| !claimed || e.state == HostState::Claimed);
        site.holders(&host.key).filter(entry).min_by_key(age)
    };
    let user = || host.in_use().then(|| oldest(true)).flatten();
    let labelled = match &host.claim {
        Claim::By { cluster, .. } => site.cluster(cluster).map(|c| &c.key),
        Claim::Free | Claim::Torn => None,
    };
    match labelled {
        Some(cluster) if entry(site, cluster, host).is_some() => Some(cluster),
        Some(cluster) => user().or(Some(cluster)),
        None => user().or_else(|| oldest(false)),
    }
}

fn entry<'a>(site: &'a Site, cluster: &Key, host: &Host) -> Option<&'a HostRecord> {
    site.cluster(cluster)?.record.iter().find(|r| host_of(r) == host.key && r.uid == host.uid)
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
        if keeper(site, host) != Some(&want.key) {
            continue;
        }
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
    address(&mut draft.entries, site, seen);
    for entry in &mut draft.entries {
        let key = host_of(entry);
        let Some(host) = site.host(&key) else { continue };
        // Whoever uses a host that has no labels of this cluster does not do so for this cluster.
        draft.used |= host.in_use() && (host.is_claimed_by(&want.key) || draft.restored.contains(&key));
        if host.is_forced_from(&want.key) {
            entry.state = HostState::Releasing;
            draft.forced.insert(key);
            continue;
        }
        if let Some(text) = &host.force_release {
            draft.notes.push(Note::ForceReleaseIgnored(format!(
                "{key}: annotation {} names {text:?}, and the host belongs to {}: only that name releases it",
                api::keys::FORCE_RELEASE,
                want.key
            )));
        }
        if let Some(why) = host.bad() {
            let fate = fate(want, host, entry.state).map(|fate| format!("; {fate}")).unwrap_or_default();
            draft.notes.push(Note::HostUnhealthy(format!("{key}: {why}{fate}")));
        }
    }
    draft
}

/// Finds addresses for entries that have none: what the host itself tells, else what already serves the cluster says of a
/// host of its name.
fn address(entries: &mut [HostRecord], site: &Site, seen: &Seen) {
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let once = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    for entry in entries.iter_mut().filter(|entry| entry.addresses.is_empty()) {
        let Some(host) = site.host(&host_of(entry)) else { continue };
        let told = host.kept_addresses.clone().or_else(|| site.addresses(host).ok());
        let inherited = || seen.inherited.get(&entry.name).filter(|_| once(&entry.name)).cloned();
        entry.addresses = told.filter(|told| !told.is_empty()).or_else(inherited).unwrap_or_default();
    }
}

/// What becomes of a bad host, and why; `None`: it leaves anyhow.
fn fate(want: &Want, host: &Host, state: HostState) -> Option<&'static str> {
    match want.replace {
        _ if want.deleting || state == HostState::Releasing => None,
        Replace::Never => {
            Some("kept, since spec.replace is Never; WhenUnconsumed would replace it once nobody uses it")
        }
        Replace::WhenUnconsumed if host.in_use() => Some("kept until nobody uses it, then replaced"),
        Replace::WhenUnconsumed => Some("kept until another host is free to take its place"),
    }
}

/// What becomes of one entry of the record; `None`: it leaves it.
fn keep(want: &Want, site: &Site, seen: &Seen, mut entry: HostRecord, draft: &mut Draft) -> Option<HostRecord> {
    let key = host_of(&entry);
    let Some(host) = site.host(&key).filter(|h| h.uid == entry.uid) else {
        draft.notes.push(Note::HostLost(format!("{key} ({}) is gone", entry.role)));
        return None;
    };
    if let Some(other) = keeper(site, host).filter(|k| **k != want.key) {
        // The other one's labels or record hold it.
        draft.notes.push(Note::HostYielded(format!("{key} belongs to {other}")));
        if seen.departed.contains(&key) {
            return None;
        }
        entry.state = HostState::Releasing;
        return Some(entry);
    }
    if host.is_forced_from(&want.key) {
        entry.state = HostState::Releasing;
        draft.forced.insert(key.clone());
    }
    match (claim(want, host), entry.state) {
        (Mine::All(role), HostState::Chosen | HostState::Claimed) => {
            entry.state = HostState::Claimed;
            if *role != entry.role {
                if host.in_use() {
                    draft.restored.insert(key.clone());
                    draft.notes.push(Note::LabelsRestored(format!("{key}: role {role} back to {}", entry.role)));
                } else {
                    entry.role.clone_from(role);
                }
            }
        }
        // Used again before its labels went: nothing takes them off now.
        (Mine::All(_), HostState::Releasing) if host.in_use() && !draft.forced.contains(&key) => {
            entry.state = HostState::Claimed;
        }
        (Mine::All(_), HostState::Releasing) => {}
        (Mine::Some, HostState::Claimed) => {
            if host.in_use() {
                restore(host, draft, "some claim labels were missing");
            } else {
                give_back(host, &mut entry, draft, "some of its claim labels were taken off");
            }
        }
        (Mine::None, HostState::Claimed) => {
            if host.in_use() && host.released.as_ref().is_none_or(|r| r.cluster.is_empty() && !r.forced) {
                restore(host, draft, "claim labels were taken off or changed");
            } else {
                give_back(host, &mut entry, draft, "its claim labels were taken off or changed");
            }
        }
        // Labels that were never seen whole may be people's, and whoever uses the host a stranger.
        (Mine::None | Mine::Some, HostState::Chosen) => {
            if host.claim != Claim::Free || host.in_use() || host.unfit.is_some() || host.released.is_some() {
                entry.state = HostState::Releasing;
            }
        }
        (Mine::None | Mine::Some, HostState::Releasing) => {
            let of_ours = |r: &Released| r.namespace == want.key.namespace && r.cluster == want.key.name;
            if host.claim == Claim::Free && host.released.as_ref().is_some_and(of_ours) || seen.departed.contains(&key)
            {
                return None;
            }
        }
    }
    // Addresses move only while nobody uses the host: Metal3's provider replaces and clears network data.
    if !host.in_use() && entry.state != HostState::Releasing {
        if let Some(found) = site.addresses(host).ok().filter(|found| !found.is_empty()) {
            entry.addresses = found;
        }
        entry.domains = domains(want, &entry.role, host);
    }
    Some(entry)
}

/// What a host has of a cluster's labels.
enum Mine<'a> {
    /// All of them, with this role.
    All(&'a String),
    /// Some; what is left of the labels that a host of the record had counts as the cluster's.
    Some,
    /// None; perhaps those of a cluster that does not exist, or that people have written over them.
    None,
}

fn claim<'a>(want: &Want, host: &'a Host) -> Mine<'a> {
    match &host.claim {
        Claim::By { cluster, role } if *cluster == want.key => Mine::All(role),
        Claim::By { .. } | Claim::Free => Mine::None,
        Claim::Torn => Mine::Some,
    }
}

fn restore(host: &Host, draft: &mut Draft, why: &str) {
    draft.restored.insert(host.key.clone());
    draft.notes.push(Note::LabelsRestored(format!("{}: {why}", host.key)));
}

fn give_back(host: &Host, entry: &mut HostRecord, draft: &mut Draft, why: &str) {
    draft.notes.push(Note::GivenBack(format!("{} ({}): {why}", host.key, entry.role)));
    entry.state = HostState::Releasing;
}

/// What going from the record of `want` to `entries` takes for granted: that hosts are gone or have been let go, or that
/// the labels are on them.
pub(super) fn confirm(want: &Want, site: &Site, entries: &[HostRecord]) -> Vec<Confirm> {
    let is_in = |list: &[HostRecord], e: &HostRecord, state: Option<HostState>| {
        list.iter().any(|o| host_of(o) == host_of(e) && o.uid == e.uid && state.is_none_or(|s| o.state == s))
    };
    let left = want.record.iter().filter(|e| !is_in(entries, e, None));
    let claimed = |e: &&HostRecord| e.state == HostState::Claimed && !is_in(&want.record, e, Some(HostState::Claimed));
    left.chain(entries.iter().filter(claimed))
        .map(|e| {
            let host = site.host(&host_of(e)).filter(|h| h.uid == e.uid);
            let resource_version = host.map(|h| h.resource_version.clone());
            Confirm { host: host_of(e), uid: e.uid.clone(), resource_version }
        })
        .collect()
}

/// The values of a role's topology labels on a host.
pub(super) fn domains(want: &Want, role: &str, host: &Host) -> std::collections::BTreeMap<String, String> {
    let levels = want.roles.get(role).map(|r| r.levels.as_slice()).unwrap_or_default();
    levels.iter().filter_map(|l| Some((l.key.clone(), host.labels.get(&l.key)?.clone()))).collect()
}
