//! Surplus that goes, shortage that is made good.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use api::sipcluster::{HostRecord, HostState, Replace};
use base::Key;

use super::{Blocked, Draft, Note, Reason, host_of, record::domains};
use crate::{
    placement::{self, Answer, Choice, Explanation, Owned, Partial, Request, Undecided},
    site::Site,
    want::Want,
};

/// Marks surplus hosts that nobody uses as leaving. SIP never chooses which running machine dies.
pub(super) fn surplus(want: &Want, site: &Site, draft: &mut Draft) {
    let roles: BTreeSet<String> = draft.entries.iter().map(|e| e.role.clone()).collect();
    for role in roles {
        let asked = want.roles.get(&role).map_or(0, |r| r.asked() as usize);
        let have = draft.of_role(&role).count();
        let breaking = breaking(want, site, draft, &role);
        let mut surplus = have.saturating_sub(asked);
        if surplus == 0 {
            continue;
        }
        // Unhealthy first, then rule-breaking, then the newest, then by name.
        let mut order: Vec<(bool, bool, Reverse<usize>, Key, bool)> = draft
            .entries
            .iter()
            .enumerate()
            .filter(|(_, e)| e.role == role && e.state != HostState::Releasing)
            .map(|(position, e)| {
                let key = host_of(e);
                let host = site.host(&key);
                let healthy = host.is_some_and(|h| h.bad().is_none());
                (healthy, !breaking.contains(&key), Reverse(position), key, host.is_some_and(|h| h.in_use()))
            })
            .collect();
        order.sort();
        let (used, idle): (Vec<_>, Vec<_>) = order.into_iter().partition(|(.., used)| *used);
        for (.., host, _) in idle.into_iter().take(surplus) {
            draft.release(&host);
            surplus -= 1;
        }
        draft.waiting.extend(used.into_iter().take(surplus).map(|(.., host, _)| (role.clone(), host)));
    }
    if !draft.waiting.is_empty() {
        let users: Vec<String> = draft
            .waiting
            .iter()
            .map(|(role, host)| {
                let user = site.host(host).map_or_else(String::new, |h| h.user());
                format!("{host} ({role}) is used by {user}")
            })
            .collect();
        if want.deleting {
            let reason = Reason::UnableToDecommission;
            let message = format!(
                "{}. The deletion goes on once nobody uses {}: delete what does (for Cluster API, the Cluster); to let a \
                 machine go while it runs, annotate its BareMetalHost with {}={}",
                list(&users),
                if users.len() == 1 { "it" } else { "them" },
                api::keys::FORCE_RELEASE,
                want.key
            );
            draft.blocked = Some(Blocked { reason, role: None, message });
        } else {
            let (hosts, wait, them) =
                if users.len() == 1 { ("host", "waits", "it") } else { ("hosts", "wait", "them") };
            let text = format!("{} surplus {hosts} {wait} until nobody uses {them}: {}", users.len(), list(&users));
            draft.notes.push(Note::SurplusInUse(text));
        }
    }
}

/// The first few, and how many more.
fn list(texts: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = texts.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if texts.len() > SHOWN { format!("{shown}; and {} more", texts.len() - SHOWN) } else { shown }
}

fn owned(site: &Site, draft: &Draft, role: &str) -> Vec<Owned> {
    let of_role = draft.entries.iter().filter(|e| e.role == role);
    of_role
        .map(|e| {
            let key = host_of(e);
            let labels = site.host(&key).map_or_else(|| e.domains.clone(), |h| h.labels.clone());
            Owned { key, labels }
        })
        .collect()
}

/// Hosts of a role in domains that hold more of them than the spec allows.
fn breaking(want: &Want, site: &Site, draft: &mut Draft, role: &str) -> BTreeSet<Key> {
    let Some(asked) = want.roles.get(role) else { return BTreeSet::new() };
    let owned: Vec<Owned> =
        owned(site, draft, role).into_iter().filter(|o| draft.of_role(role).any(|e| host_of(e) == o.key)).collect();
    let request = placement::Role { levels: asked.levels.clone(), owned, ..placement::Role::default() };
    let mut hosts = BTreeSet::new();
    for violation in request.violations() {
        let names = violation.hosts.iter().map(ToString::to_string).collect::<Vec<_>>();
        draft.notes.push(Note::SpreadViolated(format!(
            "role {role}: {} hosts share {}={}, at most {} may: {}; nothing is moved",
            violation.hosts.len(),
            violation.key,
            violation.domain,
            violation.max_per_domain,
            list(&names)
        )));
        hosts.extend(violation.hosts);
    }
    hosts
}

/// Chooses the hosts that are missing. A cluster that was never whole gets all of them or none.
pub(super) fn shortage(want: &Want, site: &mut Site, draft: &mut Draft) {
    let missing =
        |draft: &Draft, role: &String| want.roles[role].asked().saturating_sub(number(draft.of_role(role).count()));
    let request = request(want, site, draft, |role| missing(draft, role));
    if request.roles.values().all(|r| r.need == 0) {
        return;
    }
    if want.established || draft.used {
        let Partial { chosen, short, undecided } = placement::place_most(site.fleet_mut(), &request);
        blocked(want, site, draft, &short, &undecided);
        take(want, site, draft, chosen);
        return;
    }
    match placement::place_all(site.fleet_mut(), &request) {
        Answer::Chosen(chosen) => take(want, site, draft, chosen),
        Answer::Short(short) => {
            blocked(want, site, draft, &short, &[]);
            give_back(site, draft);
        }
        Answer::Undecided(undecided) => {
            blocked(want, site, draft, &[], &undecided);
            give_back(site, draft);
        }
    }
}

/// Chooses hosts in the place of bad ones that nobody uses, where the spec asks for that. A bad host goes only when
/// another one has come for it, or when it alone is in the way of the one that would come.
pub(super) fn replacement(want: &Want, site: &mut Site, draft: &mut Draft) {
    let bad = replaceable(want, site, draft);
    let of_role = |role: &String| number(bad.iter().filter(|(r, _)| r == role).count());
    let request = request(want, site, draft, of_role);
    if request.roles.values().all(|r| r.need == 0) {
        return;
    }
    let Partial { chosen, short, undecided } = placement::place_most(site.fleet_mut(), &request);
    take(want, site, draft, chosen);
    let mut left = Vec::new();
    for (role, host) in bad {
        let asked = want.roles.get(&role).map_or(0, |r| r.asked() as usize);
        if draft.of_role(&role).count() > asked {
            draft.release(&host);
        } else {
            left.push((role, host));
        }
    }
    if left.is_empty() || draft.blocked.is_some() || in_the_way(want, site, draft, &left) {
        return;
    }
    draft.seeks = true;
    let hosts: Vec<String> = left.iter().map(|(role, host)| format!("{host} ({role})")).collect();
    let why = short.iter().map(ToString::to_string).chain(undecided.iter().map(ToString::to_string));
    let why = why.collect::<Vec<_>>().join(" ");
    draft.notes.push(Note::ReplacementMissing(format!("no host can take the place of {}: {why}", list(&hosts))));
}

/// Releases the first bad host whose domain another one could take if it were empty: at most one at a time, and only
/// while none is leaving, so that its place is filled before the next goes. A cluster that was never whole would give
/// all its hosts back meanwhile, and waits.
fn in_the_way(want: &Want, site: &mut Site, draft: &mut Draft, bad: &[(String, Key)]) -> bool {
    if !(want.established || draft.used) || draft.entries.iter().any(|e| e.state == HostState::Releasing) {
        return false;
    }
    for (role, host) in bad {
        let mut request = request(want, site, draft, |name| u32::from(name == role));
        if let Some(asked) = request.roles.get_mut(role) {
            asked.owned.retain(|owned| owned.key != *host);
        }
        if !placement::place_most(site.fleet_mut(), &request).chosen.is_empty() {
            draft.release(host);
            return true;
        }
    }
    false
}

/// A request for so many hosts of each role.
fn request(want: &Want, site: &mut Site, draft: &Draft, need: impl Fn(&String) -> u32) -> Request {
    let mut roles = BTreeMap::new();
    for (name, role) in &want.roles {
        let need = need(name);
        let unaddressed = if need > 0 { site.without_address(&role.networks) } else { BTreeMap::new() };
        let owned = owned(site, draft, name);
        let (selector, levels) = (role.selector.clone(), role.levels.clone());
        roles.insert(name.clone(), placement::Role { selector, levels, need, owned, unaddressed });
    }
    Request { cluster: want.key.clone(), namespaces: site.namespaces(&want.key), exclude: BTreeSet::new(), roles }
}

fn take(want: &Want, site: &Site, draft: &mut Draft, chosen: Vec<Choice>) {
    for Choice { role, host } in chosen {
        let Some(found) = site.host(&host) else { continue };
        draft.entries.push(HostRecord {
            namespace: host.namespace.clone(),
            name: host.name.clone(),
            uid: found.uid.clone(),
            domains: domains(want, &role, found),
            addresses: site.addresses(found).unwrap_or_default(),
            role,
            state: HostState::Chosen,
        });
    }
}

fn number(hosts: usize) -> u32 {
    u32::try_from(hosts).unwrap_or(u32::MAX)
}

/// Claimed hosts that have gone bad and may be replaced.
fn replaceable(want: &Want, site: &Site, draft: &Draft) -> Vec<(String, Key)> {
    if want.replace != Replace::WhenUnconsumed || want.deleting {
        return Vec::new();
    }
    let bad = |e: &&HostRecord| {
        e.state != HostState::Releasing && site.host(&host_of(e)).is_some_and(|h| h.bad().is_some() && !h.in_use())
    };
    draft.entries.iter().filter(bad).map(|e| (e.role.clone(), host_of(e))).collect()
}

/// A new cluster that cannot be made whole gives its hosts back.
fn give_back(site: &Site, draft: &mut Draft) {
    for entry in &mut draft.entries {
        let key = host_of(entry);
        if site.host(&key).is_none_or(|h| !h.in_use()) {
            entry.state = HostState::Releasing;
        }
    }
}

fn blocked(want: &Want, site: &Site, draft: &mut Draft, short: &[Explanation], undecided: &[Undecided]) {
    if let Some(first) = short.first() {
        let message = short.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        draft.blocked = Some(Blocked { reason: Reason::Unschedulable, role: Some(first.role.clone()), message });
    } else if let Some(first) = undecided.first() {
        let message = undecided.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        draft.blocked = Some(Blocked { reason: Reason::Undecided, role: Some(first.role.clone()), message });
    }
    if let Some(blocked) = &mut draft.blocked {
        for (namespace, remedy) in site.ungranted_for(&want.key) {
            let more = format!(" Secrets of namespace {namespace} may not be read; to let them: {remedy}.");
            blocked.message.push_str(&more);
        }
    }
}
