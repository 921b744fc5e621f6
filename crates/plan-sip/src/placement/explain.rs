//! Why a role falls short: counted over all hosts that match, blamed by the minimum cut, with what would do instead.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use fixedbitset::FixedBitSet;

use super::{
    Fleet, Level, Request, Standing,
    choose::{self, Outcome},
    classes::Part,
    problem::{self, RoleView},
    topology::{NOWHERE, Topology},
};

/// Hosts and domains named per list; the lists say how many there are.
const NAMED: usize = 3;

/// How many hosts are imagined in a domain at most, to see how many of them would be placed.
const IMAGINED: u32 = 32;

/// Why a role of a cluster gets fewer hosts than it needs. `Display` says it in one paragraph of less than 1 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The role.
    pub role: String,
    /// Hosts asked for.
    pub asked: u32,
    /// Hosts it has.
    pub owned: u32,
    /// Hosts it needs besides: asked less owned.
    pub need: u32,
    /// For how many of these there is a place.
    pub placeable: u32,
    /// The selector, as kubectl writes it.
    pub selector: String,
    /// Hosts that match it, in all namespaces. The counts below add up to it.
    pub matching: u32,
    /// Of these, in namespaces this cluster may not take from. They are not named.
    pub not_allowed: u32,
    /// Of the rest, excluded by the request, e.g. because they are being replaced.
    pub excluded: u32,
    /// Of the rest, held by this cluster, in whichever role.
    pub own: u32,
    /// Of the rest, held by others: by number of hosts, then cluster. All of them.
    pub claimed: Vec<Claimed>,
    /// Of the rest, unclaimed but no candidates: by kind.
    pub dropped: Vec<Dropped>,
    /// Of the rest, free: candidates but for labels and room.
    pub free: u32,
    /// Of the free ones, those that lack the label of a level, by level.
    pub unlabelled: Vec<Unlabelled>,
    /// The levels that keep free hosts from being placed.
    pub levels: Vec<LevelReport>,
    /// If this role competes with others for the same hosts: how far these get together.
    pub rivals: Option<Rivals>,
    /// What would do; none if no host can ever be placed (a level of at most 0).
    pub remedy: Option<Remedy>,
}

/// Hosts held by another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The cluster.
    pub by: Key,
    /// How many hosts.
    pub hosts: u32,
}

/// Unclaimed hosts that are no candidates, of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// In words that follow the number: "in error".
    pub why: &'static str,
    /// How many.
    pub hosts: u32,
    /// The first of them, each with what is known beyond the kind (may be empty).
    pub examples: Vec<(Key, String)>,
}

/// Free hosts that lack a topology label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlabelled {
    /// The label key.
    pub key: String,
    /// How many.
    pub hosts: u32,
    /// The first of them.
    pub examples: Vec<Key>,
}

/// How one level stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelReport {
    /// The level.
    pub level: Level,
    /// Domains with free hosts.
    pub with_free: u32,
    /// Domains with free hosts but without room, because of hosts the cluster owns. The first of them by name.
    pub full: Vec<FullDomain>,
    /// How many such domains there are.
    pub full_count: u32,
    /// Domains with free hosts and room: where the placeable hosts go. The first of them by name.
    pub usable: Vec<String>,
    /// How many such domains there are.
    pub usable_count: u32,
}

/// A domain that takes no more hosts of the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullDomain {
    /// The value of the label.
    pub domain: String,
    /// The first of the hosts owned there.
    pub hosts: Vec<Key>,
    /// How many are owned there.
    pub owned: u32,
}

/// Roles of the cluster that compete for the same hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rivals {
    /// The roles, in the order of decisions.
    pub roles: Vec<String>,
    /// Hosts they need together.
    pub need: u32,
    /// For how many of these there is a place.
    pub placeable: u32,
}

/// What would do: with so many hosts more the role gets all it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// So many more free hosts that match are needed, each in domains that are new to all these levels (no more than
    /// their maximum in each).
    pub more: u32,
    /// Whether it is proven that fewer cannot do. It is, but for roles that share hosts and whose levels do not nest: there
    /// a new host that several of them may take could free more than one place.
    pub least: bool,
    /// The levels.
    pub levels: Vec<Level>,
    /// Instead of a new domain of its key, each of these will do for some of them.
    pub places: Vec<Place>,
}

/// A domain that exists, has room, and has no free host left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The label key.
    pub key: String,
    /// Its value.
    pub domain: String,
    /// So many of the hosts needed may be here (in new domains of the finer levels); tried for up to 32.
    pub hosts: u32,
}

/// Explains why role `at` of `part` falls short of `outcome`, which is what its part can get at most.
pub(super) fn explain(
    fleet: &Fleet,
    request: &Request,
    roles: &[RoleView<'_>],
    part: &Part,
    outcome: &Outcome,
    at: usize,
) -> Explanation {
    let view = &roles[part.roles[at].index];
    let owned = count(view.role.owned.len());
    let mut explanation = Explanation {
        role: view.name.to_owned(),
        asked: view.role.need.saturating_add(owned),
        owned,
        need: view.role.need,
        placeable: outcome.found[at],
        selector: view.role.selector.to_string(),
        matching: 0,
        not_allowed: 0,
        excluded: 0,
        own: 0,
        claimed: Vec::new(),
        dropped: Vec::new(),
        free: count(view.free.len()),
        unlabelled: unlabelled(fleet, view),
        levels: Vec::new(),
        rivals: None,
        remedy: None,
    };
    tally(fleet, request, view, &mut explanation);

    let mut placed = FixedBitSet::with_capacity(fleet.order().len());
    for item in outcome.items.iter().flatten() {
        placed.grow_and_insert(part.slots[*item as usize]);
    }
    let mine: BTreeSet<usize> = outcome.items[at].iter().map(|item| part.slots[*item as usize]).collect();
    let others: Vec<usize> = view.free.iter().copied().filter(|slot| !mine.contains(slot)).collect();
    let levels = (0..view.levels.len()).map(|level| LevelNow::new(fleet, view, level, &mine));
    let binding: Vec<LevelNow<'_>> = levels.filter(|level| level.keeps_out(&others)).collect();
    explanation.levels = binding.iter().map(|level| level.report(fleet, view)).collect();
    explanation.rivals = rivals(roles, part, outcome, at);
    if view.levels.iter().all(|level| level.level.max_per_domain > 0) {
        let more = view.role.need - outcome.found[at];
        let levels = view.levels.iter().map(|level| level.level.clone()).collect();
        let least = part.roles.len() == 1 || choose::nests(part);
        let spare: BTreeSet<usize> = others.into_iter().filter(|slot| !placed.contains(*slot)).collect();
        let places = binding.iter().flat_map(|level| places(fleet, roles, part, at, level, &spare, more)).collect();
        explanation.remedy = Some(Remedy { more, least, levels, places });
    }
    explanation
}

/// Hosts that lack an address the role needs, as [`super::Unfit`] puts what is wrong with a host for every role; last in
/// the order of display.
const UNADDRESSED: (u8, &str) = (u8::MAX, "without an address in a needed network");

/// Counts the hosts that match by what became of them.
fn tally(fleet: &Fleet, request: &Request, view: &RoleView<'_>, explanation: &mut Explanation) {
    let matching = fleet.matching(&view.role.selector);
    let within = fleet.within(&request.namespaces);
    let mine: BTreeSet<&Key> =
        request.roles.values().flat_map(|role| role.owned.iter().map(|owned| &owned.key)).collect();
    let mut claimed: BTreeMap<&Key, u32> = BTreeMap::new();
    let mut dropped: BTreeMap<(u8, &'static str), Dropped> = BTreeMap::new();
    let mut drop = |kind: (u8, &'static str), key: &Key, detail: &str| {
        let kind = dropped.entry(kind).or_insert_with(|| Dropped { why: kind.1, hosts: 0, examples: Vec::new() });
        kind.hosts += 1;
        if kind.examples.len() < NAMED {
            kind.examples.push((key.clone(), detail.to_owned()));
        }
    };
    for slot in fleet.order().iter().copied().filter(|slot| matching.contains(*slot)) {
        explanation.matching += 1;
        let key = fleet.key(slot);
        if mine.contains(key) {
            explanation.own += 1;
        } else if !within.contains(slot) {
            explanation.not_allowed += 1;
        } else if request.exclude.contains(key) {
            explanation.excluded += 1;
        } else {
            match fleet.standing_in(slot) {
                Standing::Candidate => {
                    if let Some(network) = view.role.unaddressed.get(key) {
                        drop(UNADDRESSED, key, network);
                    }
                }
                Standing::Taken { by, .. } if *by == request.cluster => explanation.own += 1,
                Standing::Taken { by, .. } => *claimed.entry(by).or_default() += 1,
                Standing::Dropped(why) => drop(why.phrase(), key, why.detail()),
            }
        }
    }
    explanation.claimed = claimed.into_iter().map(|(by, hosts)| Claimed { by: by.clone(), hosts }).collect();
    explanation.claimed.sort_by(|a, b| b.hosts.cmp(&a.hosts).then_with(|| a.by.cmp(&b.by)));
    explanation.dropped = dropped.into_values().collect();
}

fn unlabelled(fleet: &Fleet, view: &RoleView<'_>) -> Vec<Unlabelled> {
    let of_level = |key: &str| {
        let topology = fleet.topology(key);
        let lacking: Vec<usize> =
            view.free.iter().copied().filter(|slot| topology.domain_of(*slot) == NOWHERE).collect();
        let examples = lacking.iter().take(NAMED).map(|slot| fleet.key(*slot).clone()).collect();
        Unlabelled { key: key.to_owned(), hosts: count(lacking.len()), examples }
    };
    view.levels.iter().map(|level| of_level(&level.level.key)).filter(|lacking| lacking.hosts > 0).collect()
}

fn rivals(roles: &[RoleView<'_>], part: &Part, outcome: &Outcome, at: usize) -> Option<Rivals> {
    let rivals = &outcome.rivals[at];
    (rivals.len() > 1).then(|| Rivals {
        roles: rivals.iter().map(|role| roles[part.roles[*role].index].name.to_owned()).collect(),
        need: rivals.iter().map(|role| part.roles[*role].need).fold(0, u32::saturating_add),
        placeable: rivals.iter().map(|role| outcome.found[*role]).sum(),
    })
}

/// A level with what is owned and placed in its domains.
struct LevelNow<'a> {
    number: usize,
    topology: &'a Topology,
    max: u32,
    held: Vec<u32>,
}

impl<'a> LevelNow<'a> {
    fn new(fleet: &'a Fleet, view: &RoleView<'_>, number: usize, placed: &BTreeSet<usize>) -> Self {
        let level = &view.levels[number];
        let topology = fleet.topology(&level.level.key);
        let mut held = level.owned.clone();
        for slot in placed {
            held[topology.domain_of(*slot) as usize] += 1;
        }
        Self { number, topology, max: level.level.max_per_domain, held }
    }

    fn is_full(&self, domain: u32) -> bool {
        self.held[domain as usize] >= self.max
    }

    /// Whether one of these hosts is in a domain without room.
    fn keeps_out(&self, hosts: &[usize]) -> bool {
        hosts.iter().map(|slot| self.topology.domain_of(*slot)).any(|domain| domain != NOWHERE && self.is_full(domain))
    }

    fn report(&self, fleet: &Fleet, view: &RoleView<'_>) -> LevelReport {
        let about = &view.levels[self.number];
        let domains: BTreeSet<u32> =
            view.free.iter().map(|slot| self.topology.domain_of(*slot)).filter(|domain| *domain != NOWHERE).collect();
        let text = |domain: u32| self.topology.text(fleet.names(), domain).to_owned();
        let (usable, full): (Vec<u32>, Vec<u32>) = domains.iter().partition(|domain| about.room(**domain) > 0);
        let mut full_names: Vec<String> = full.iter().map(|domain| text(*domain)).collect();
        full_names.sort();
        full_names.truncate(NAMED);
        let mut usable_names: Vec<String> = usable.iter().map(|domain| text(*domain)).collect();
        usable_names.sort();
        usable_names.truncate(NAMED);
        let full_domain = |domain: String| {
            let here = |labels: &BTreeMap<String, String>| labels.get(&about.level.key) == Some(&domain);
            let mut hosts: Vec<Key> =
                view.role.owned.iter().filter(|owned| here(&owned.labels)).map(|owned| owned.key.clone()).collect();
            let owned = count(hosts.len());
            hosts.sort();
            hosts.truncate(NAMED);
            FullDomain { domain, hosts, owned }
        };
        LevelReport {
            level: about.level.clone(),
            with_free: count(domains.len()),
            full: full_names.into_iter().map(full_domain).collect(),
            full_count: count(full.len()),
            usable: usable_names,
            usable_count: count(usable.len()),
        }
    }
}

/// Domains of a level with hosts that match and with room, of which none is left over; each tried by imagining hosts.
fn places(
    fleet: &Fleet,
    roles: &[RoleView<'_>],
    part: &Part,
    at: usize,
    level: &LevelNow<'_>,
    spare: &BTreeSet<usize>,
    more: u32,
) -> Vec<Place> {
    if !choose::nests(part) {
        return Vec::new();
    }
    let view = &roles[part.roles[at].index];
    let matching = fleet.matching(&view.role.selector);
    let domain_of = |slot: usize| level.topology.domain_of(slot);
    let left_over: BTreeSet<u32> = spare.iter().map(|slot| domain_of(*slot)).collect();
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    for domain in matching.ones().map(domain_of).filter(|domain| *domain != NOWHERE) {
        if !level.is_full(domain) && !left_over.contains(&domain) {
            names.insert(level.topology.text(fleet.names(), domain), domain);
        }
    }
    let coarser: Vec<bool> = (0..view.levels.len()).map(|other| is_coarser(fleet, view, other, level)).collect();
    let mut places = Vec::new();
    for (name, domain) in names.into_iter().take(NAMED) {
        let sample = matching.ones().find(|slot| domain_of(*slot) == domain).expect("the domain has a host");
        let domains: Vec<Option<u32>> = (0..view.levels.len())
            .map(|other| match other {
                _ if other == level.number => Some(domain),
                _ if coarser[other] => Some(fleet.topology(&view.levels[other].level.key).domain_of(sample)),
                _ => None,
            })
            .collect();
        let room =
            |(level, domain): (&problem::LevelView, &Option<u32>)| domain.is_none_or(|domain| level.room(domain) > 0);
        if !view.levels.iter().zip(&domains).all(room) {
            continue;
        }
        let hosts = gain(fleet, roles, part, at, &domains, more.min(IMAGINED));
        if hosts > 0 {
            let key = view.levels[level.number].level.key.clone();
            places.push(Place { key, domain: name.to_owned(), hosts });
        }
    }
    places
}

/// Whether level `other` is coarser than `level` on the hosts that match: its domains are unions of several of the other's.
fn is_coarser(fleet: &Fleet, view: &RoleView<'_>, other: usize, level: &LevelNow<'_>) -> bool {
    if other == level.number {
        return false;
    }
    let topology = fleet.topology(&view.levels[other].level.key);
    let mut within: BTreeMap<u32, u32> = BTreeMap::new();
    for slot in fleet.matching(&view.role.selector).ones() {
        let (fine, coarse) = (level.topology.domain_of(slot), topology.domain_of(slot));
        if fine != NOWHERE && (coarse == NOWHERE || *within.entry(fine).or_insert(coarse) != coarse) {
            return false;
        }
    }
    let coarse: BTreeSet<u32> = within.values().copied().collect();
    coarse.len() < within.len()
}

/// How many more hosts role `at` gets with so many imagined ones in these domains.
fn gain(fleet: &Fleet, roles: &[RoleView<'_>], part: &Part, at: usize, domains: &[Option<u32>], hosts: u32) -> u32 {
    let mut rank = problem::ranks(fleet);
    let chosen: Vec<usize> = part.roles.iter().map(|role| role.index).collect();
    let mut roles = roles.to_vec();
    for _ in 0..hosts {
        roles[part.roles[at].index].imagine(rank.len(), domains);
        rank.push(u32::MAX);
    }
    let before = choose::found(part)[at];
    choose::found(&Part::new(&roles, &chosen, &rank))[at].saturating_sub(before)
}

fn count(hosts: usize) -> u32 {
    u32::try_from(hosts).expect("fewer than 2^32 hosts fit into memory")
}
