//! A request made concrete: who may serve which role, in which domains, at what cost; cut into independent parts, each
//! with its hosts gathered into classes.
//!
//! Two hosts are of one class when every role of the part sees them alike: both candidates or both not, in the same
//! domains (as far as a domain has several candidates), at the same cost. An exchange argument shows that a best choice
//! takes the first hosts of a class, so the cost of a decision depends on classes and needs, not on hosts.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use fixedbitset::FixedBitSet;

use super::{
    Fleet, Level, Request, Role,
    flow::Cost,
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

/// Some roles that compete for hosts, and nobody else for these hosts. Hosts are items, numbered in the order of keys.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The slot of each item.
    pub(super) slots: Vec<usize>,
    pub(super) roles: Vec<PartRole>,
    pub(super) classes: Vec<Class>,
}

/// A role of a [`Part`].
#[derive(Clone, Debug)]
pub(super) struct PartRole {
    /// Its number among the roles of the request.
    pub(super) index: usize,
    pub(super) need: u32,
    /// The domains of its levels that have several candidates.
    pub(super) cells: Vec<Cell>,
    /// How many levels it has.
    pub(super) levels: usize,
}

/// A domain of a level of a role with several candidates.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) level: usize,
    /// Candidates in it.
    pub(super) size: u32,
    pub(super) room: u32,
    pub(super) owned: u32,
}

/// Hosts that no role of the part can tell apart.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The first of them by key; no more than the part needs.
    pub(super) items: Vec<u32>,
    /// Per role of the part: how it sees them.
    pub(super) seats: Vec<Option<Seat>>,
}

/// How a role sees the hosts of a class.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// The cells they are in, by level.
    pub(super) cells: Vec<usize>,
    /// What each of them costs besides the cells: domains with one candidate, and how crowded all its domains are.
    pub(super) cost: Cost,
}

impl Part {
    /// The part of these roles. `rank` is the place of each slot in the order of keys.
    pub(super) fn new(roles: &[RoleView<'_>], chosen: &[usize], rank: &[u32]) -> Self {
        let slots = items(roles, chosen, rank);
        let mut item_of = HashMap::<u32, u32, BuildHasherDefault<Mix>>::default();
        if chosen.len() > 1 {
            item_of.extend(slots.iter().enumerate().map(|(item, slot)| (number(*slot), number(item))));
        }
        let mut sorter = Sorter::new(slots.len());
        let mut part_roles = Vec::with_capacity(chosen.len());
        let mut cell_of: Vec<Vec<Vec<usize>>> = Vec::new();
        let mut seats_of: Vec<Vec<u32>> = Vec::new();
        for &index in chosen {
            let view = &roles[index];
            let need = view.role.need;
            // Item of each member: the same number when the role is alone.
            let items: Option<Vec<u32>> =
                (chosen.len() > 1).then(|| view.members.iter().map(|slot| item_of[&number(*slot)]).collect());
            let mut member_of = vec![NOWHERE; slots.len()];
            for member in 0..view.members.len() {
                member_of[items.as_ref().map_or(member, |items| items[member] as usize)] = number(member);
            }
            let mut cells = Vec::new();
            let cell_by_domain: Vec<Vec<usize>> =
                view.levels.iter().enumerate().map(|(level, view)| cells_of(&mut cells, level, view)).collect();
            for (level, by_domain) in view.levels.iter().zip(&cell_by_domain) {
                sorter.split(|item| match member_of[item] {
                    NOWHERE => u64::MAX,
                    member => by_domain[level.domains[member as usize] as usize] as u64,
                });
            }
            sorter.split(|item| match member_of[item] {
                NOWHERE => u64::MAX,
                member => {
                    let Cost { spread, taken } = seat_cost(view, &cell_by_domain, member as usize);
                    spread.cast_unsigned() << 40 | taken.cast_unsigned()
                }
            });
            part_roles.push(PartRole { index, need, cells, levels: view.levels.len() });
            cell_of.push(cell_by_domain);
            seats_of.push(member_of);
        }
        let total: usize = chosen.iter().map(|index| roles[*index].role.need as usize).sum();
        let mut classes: Vec<Class> = Vec::with_capacity(sorter.classes);
        for (item, &class) in sorter.class.iter().enumerate() {
            if class as usize == classes.len() {
                let seats = chosen.iter().enumerate().map(|(at, &index)| match seats_of[at][item] {
                    NOWHERE => None,
                    member => Some(seat(&roles[index], &cell_of[at], member as usize)),
                });
                classes.push(Class { items: Vec::new(), seats: seats.collect() });
            }
            let items = &mut classes[class as usize].items;
            if items.len() < total {
                items.push(number(item));
            }
        }
        Self { slots, roles: part_roles, classes }
    }
}

/// The slots of all members of these roles, by key.
fn items(roles: &[RoleView<'_>], chosen: &[usize], rank: &[u32]) -> Vec<usize> {
    if let [only] = chosen {
        return roles[*only].members.clone();
    }
    let mut slots: Vec<usize> = chosen.iter().flat_map(|index| roles[*index].members.iter().copied()).collect();
    slots.sort_unstable_by_key(|slot| rank[*slot]);
    slots.dedup();
    slots
}

/// Adds a cell for each domain with several candidates; the cell of each domain.
fn cells_of(cells: &mut Vec<Cell>, level: usize, view: &LevelView) -> Vec<usize> {
    let mut sizes = vec![0_u32; view.owned.len()];
    for domain in &view.domains {
        sizes[*domain as usize] += 1;
    }
    let mut cell_of = vec![NO_CELL; sizes.len()];
    for &domain in &view.domains {
        let size = sizes[domain as usize];
        if size > 1 && cell_of[domain as usize] == NO_CELL {
            cell_of[domain as usize] = cells.len();
            cells.push(Cell { level, size, room: view.room(domain), owned: view.owned[domain as usize] });
        }
    }
    cell_of
}

/// The domain has one candidate: its limit is the host's own.
const NO_CELL: usize = usize::MAX;

fn seat_cost(view: &RoleView<'_>, cell_of: &[Vec<usize>], member: usize) -> Cost {
    let mut cost = Cost::ZERO;
    for (level, cell_of) in view.levels.iter().zip(cell_of) {
        let domain = level.domains[member] as usize;
        cost.taken += i64::from(level.taken[domain]);
        if cell_of[domain] == NO_CELL {
            cost += Cost::one_more(level.owned[domain]);
        }
    }
    cost
}

fn seat(view: &RoleView<'_>, cell_of: &[Vec<usize>], member: usize) -> Seat {
    let cells = view.levels.iter().zip(cell_of).map(|(level, cell_of)| cell_of[level.domains[member] as usize]);
    Seat { cells: cells.filter(|cell| *cell != NO_CELL).collect(), cost: seat_cost(view, cell_of, member) }
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
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2^32 hosts fit into memory")
}

/// Splits items into classes, feature by feature. Classes are numbered by their first item.
struct Sorter {
    class: Vec<u32>,
    classes: usize,
    known: HashMap<(u32, u64), u32, BuildHasherDefault<Mix>>,
}

impl Sorter {
    fn new(items: usize) -> Self {
        Self { class: vec![0; items], classes: usize::from(items > 0), known: HashMap::default() }
    }

    fn split(&mut self, feature: impl Fn(usize) -> u64) {
        self.known.clear();
        let mut last = None;
        for (item, class) in self.class.iter_mut().enumerate() {
            let key = (*class, feature(item));
            let fresh = match last {
                Some((same, fresh)) if same == key => fresh,
                _ => {
                    let next = number(self.known.len());
                    *self.known.entry(key).or_insert(next)
                }
            };
            last = Some((key, fresh));
            *class = fresh;
        }
        self.classes = self.known.len();
    }
}

/// A quick hash of small numbers; its tables are only looked up, never walked, so their order is no meaning.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}
