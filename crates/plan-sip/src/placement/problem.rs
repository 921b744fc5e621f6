//! A request made concrete: who may serve which role, in which domains, and which roles compete for hosts.

use fixedbitset::FixedBitSet;

use super::{
    Fleet, Level, Request, Role,
    topology::{NOWHERE, Topology},
};

/// A role with its candidates.
#[derive(Clone, Debug)]
pub(super) struct RoleView<'a> {
    pub(super) name: &'a str,
    pub(super) role: &'a Role,
    pub(super) levels: Vec<LevelView>,
    /// Hosts that match and are free, allowed and not excluded: by key.
    pub(super) free: Vec<usize>,
    /// Those of `free` that have all labels, and room in all their domains: by key.
    pub(super) members: Vec<usize>,
}

/// One level of a role over the domains of its key.
#[derive(Clone, Debug)]
pub(super) struct LevelView {
    pub(super) level: Level,
    /// Hosts of the role the cluster owns, by domain.
    pub(super) owned: Vec<u32>,
    /// Hosts taken by anybody, by domain.
    pub(super) taken: Vec<u32>,
    /// The domain of each member.
    pub(super) domains: Vec<u32>,
}

impl LevelView {
    /// How many more hosts of the role a domain takes.
    pub(super) fn room(&self, domain: u32) -> u32 {
        self.level.max_per_domain.saturating_sub(self.owned[domain as usize])
    }

    fn new(fleet: &Fleet, level: Level, role: &Role) -> Self {
        let topology = fleet.topology(&level.key);
        let mut owned = vec![0; topology.len()];
        for host in &role.owned {
            let domain = host.labels.get(&level.key).and_then(|value| topology.find(fleet.names(), value));
            if let Some(domain) = domain {
                owned[domain as usize] += 1;
            }
        }
        let taken = (0..topology.len()).map(|domain| topology.taken(number(domain))).collect();
        Self { level, owned, taken, domains: Vec::new() }
    }
}

impl<'a> RoleView<'a> {
    /// Gathers the candidates of a role. `allowed` are the slots the cluster may take from.
    pub(super) fn new(fleet: &'a Fleet, name: &'a str, role: &'a Role, allowed: &FixedBitSet) -> Self {
        let mut levels: Vec<LevelView> =
            role.merged_levels().into_iter().map(|level| LevelView::new(fleet, level, role)).collect();
        let mut slots = allowed.clone();
        slots.intersect_with(fleet.matching(&role.selector));
        for slot in role.unaddressed.keys().filter_map(|key| fleet.slot(key)) {
            slots.set(slot, false);
        }
        let free: Vec<usize> = fleet.order().iter().copied().filter(|slot| slots.contains(*slot)).collect();
        let topologies: Vec<&Topology> = levels.iter().map(|level| fleet.topology(&level.level.key)).collect();
        let fits = |slot: usize| {
            topologies.iter().zip(&levels).all(|(topology, level)| {
                let domain = topology.domain_of(slot);
                domain != NOWHERE && level.room(domain) > 0
            })
        };
        let members: Vec<usize> = free.iter().copied().filter(|slot| fits(*slot)).collect();
        for (level, topology) in levels.iter_mut().zip(topologies) {
            level.domains = members.iter().map(|slot| topology.domain_of(*slot)).collect();
        }
        Self { name, role, levels, free, members }
    }
}

/// The slots a request may take from: free, in an allowed namespace, neither excluded nor owned.
pub(super) fn allowed(fleet: &Fleet, request: &Request) -> FixedBitSet {
    let mut slots = fleet.within(&request.namespaces);
    slots.intersect_with(fleet.free());
    let owned = request.roles.values().flat_map(|role| role.owned.iter().map(|owned| &owned.key));
    for slot in request.exclude.iter().chain(owned).filter_map(|key| fleet.slot(key)) {
        slots.set(slot, false);
    }
    slots
}

/// The place of each slot in the order of keys; slots beyond are of hosts that do not exist.
pub(super) fn ranks(fleet: &Fleet) -> Vec<u32> {
    let slots = fleet.order().iter().max().map_or(0, |last| last + 1);
    let mut ranks = vec![0; slots];
    for (rank, slot) in fleet.order().iter().enumerate() {
        ranks[*slot] = number(rank);
    }
    ranks
}

/// Splits roles into parts that share no candidate; each part lists its roles in order.
pub(super) fn parts(roles: &[RoleView<'_>], slots: usize) -> Vec<Vec<usize>> {
    let mut parts: Vec<(FixedBitSet, Vec<usize>)> = Vec::new();
    for (index, role) in roles.iter().enumerate() {
        let mut slots = FixedBitSet::with_capacity(slots);
        slots.extend(role.members.iter().copied());
        let mut together = vec![index];
        let (touching, apart) = parts.into_iter().partition(|(others, _)| !others.is_disjoint(&slots));
        parts = apart;
        for (others, members) in touching as Vec<(FixedBitSet, Vec<usize>)> {
            slots.union_with(&others);
            together.extend(members);
        }
        together.sort_unstable();
        parts.push((slots, together));
    }
    let mut parts: Vec<Vec<usize>> = parts.into_iter().map(|(_, roles)| roles).collect();
    parts.sort();
    parts
}

impl RoleView<'_> {
    /// Adds a candidate that does not exist, in a slot and per level in a domain, or in one of its own.
    pub(super) fn imagine(&mut self, slot: usize, domains: &[Option<u32>]) {
        self.members.push(slot);
        for (level, domain) in self.levels.iter_mut().zip(domains) {
            let domain = domain.unwrap_or_else(|| {
                level.owned.push(0);
                level.taken.push(0);
                number(level.owned.len() - 1)
            });
            level.domains.push(domain);
        }
    }
}

/// A number of hosts, slots or domains.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2^32 hosts fit into memory")
}
