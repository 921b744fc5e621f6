//! The hosts of a part gathered into classes, so that a decision costs as much as there are classes, not hosts.
//!
//! Two hosts are of one class when every role of the part sees them alike: both candidates or both not, in the same
//! domains (as far as a domain has several candidates), at the same cost. Exchanging two of them changes nothing but the
//! fixed order, so a best choice takes the first hosts of a class.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use super::{
    flow::Cost,
    problem::{LevelView, RoleView, number},
    topology::NOWHERE,
};

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
        let seatings: Vec<Seating<'_>> =
            chosen.iter().map(|index| Seating::new(&roles[*index], &slots, *index)).collect();
        let mut sorter = Sorter::new(slots.len());
        for seating in &seatings {
            seating.split(&mut sorter);
        }
        let total: usize = seatings.iter().map(|seating| seating.view.role.need as usize).sum();
        let mut classes: Vec<Class> = Vec::with_capacity(sorter.classes);
        for (item, &class) in sorter.class.iter().enumerate() {
            if class as usize == classes.len() {
                let seats = seatings.iter().map(|seating| seating.seat(item)).collect();
                classes.push(Class { items: Vec::new(), seats });
            }
            let items = &mut classes[class as usize].items;
            if items.len() < total {
                items.push(number(item));
            }
        }
        Self { slots, roles: seatings.into_iter().map(Seating::into_role).collect(), classes }
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

/// The domain has one candidate: its limit is the host's own.
const NO_CELL: usize = usize::MAX;

/// How one role sees the items.
struct Seating<'a> {
    view: &'a RoleView<'a>,
    index: usize,
    /// The member that an item is, or [`NOWHERE`].
    member_of: Vec<u32>,
    cells: Vec<Cell>,
    /// Per level and domain.
    cell_of: Vec<Vec<usize>>,
    /// Candidates per level and domain.
    sizes: Vec<Vec<u32>>,
}

impl<'a> Seating<'a> {
    fn new(view: &'a RoleView<'a>, slots: &[usize], index: usize) -> Self {
        let mut member_of = vec![NOWHERE; slots.len()];
        let mut members = view.members.iter().enumerate().peekable();
        for (item, slot) in slots.iter().enumerate() {
            if let Some((member, _)) = members.next_if(|(_, member)| *member == slot) {
                member_of[item] = number(member);
            }
        }
        let mut seating = Self { view, index, member_of, cells: Vec::new(), cell_of: Vec::new(), sizes: Vec::new() };
        for (level, about) in view.levels.iter().enumerate() {
            seating.add_level(level, about);
        }
        seating
    }

    /// Adds a cell for each domain with several candidates.
    fn add_level(&mut self, level: usize, about: &LevelView) {
        let mut sizes = vec![0_u32; about.owned.len()];
        for domain in &about.domains {
            sizes[*domain as usize] += 1;
        }
        let mut cell_of = vec![NO_CELL; sizes.len()];
        for &domain in &about.domains {
            let (size, cell) = (sizes[domain as usize], &mut cell_of[domain as usize]);
            if size > 1 && *cell == NO_CELL {
                *cell = self.cells.len();
                self.cells.push(Cell { level, size, room: about.room(domain), owned: about.owned[domain as usize] });
            }
        }
        self.cell_of.push(cell_of);
        self.sizes.push(sizes);
    }

    /// Splits the items into those this role can tell apart.
    fn split(&self, sorter: &mut Sorter) {
        for (level, cell_of) in self.view.levels.iter().zip(&self.cell_of) {
            sorter.split(|item| match self.member_of[item] {
                NOWHERE => u128::MAX,
                member => cell_of[level.domains[member as usize] as usize] as u128,
            });
        }
        sorter.split(|item| match self.member_of[item] {
            NOWHERE => u128::MAX,
            member => {
                let Cost { spread, scarce, taken } = self.cost(member);
                [spread, scarce, taken].iter().fold(0, |key, part| key << 42 | u128::from(part.cast_unsigned()))
            }
        });
    }

    /// What a member costs besides its cells.
    fn cost(&self, member: u32) -> Cost {
        let mut cost = Cost::ZERO;
        for (at, level) in self.view.levels.iter().enumerate() {
            let domain = level.domains[member as usize] as usize;
            cost.scarce += i64::from(number(self.view.members.len()) - self.sizes[at][domain]);
            cost.taken += i64::from(level.taken[domain]);
            if self.cell_of[at][domain] == NO_CELL {
                cost += Cost::one_more(level.owned[domain]);
            }
        }
        cost
    }

    fn seat(&self, item: usize) -> Option<Seat> {
        let member = self.member_of[item];
        if member == NOWHERE {
            return None;
        }
        let levels = self.view.levels.iter().zip(&self.cell_of);
        let cells = levels.map(|(level, cell_of)| cell_of[level.domains[member as usize] as usize]);
        Some(Seat { cells: cells.filter(|cell| *cell != NO_CELL).collect(), cost: self.cost(member) })
    }

    fn into_role(self) -> PartRole {
        let Self { view, index, cells, .. } = self;
        PartRole { index, need: view.role.need, cells, levels: view.levels.len() }
    }
}

/// Splits items into classes, feature by feature. Classes are numbered by their first item.
struct Sorter {
    class: Vec<u32>,
    classes: usize,
    known: HashMap<(u32, u128), u32, BuildHasherDefault<Mix>>,
}

impl Sorter {
    fn new(items: usize) -> Self {
        Self { class: vec![0; items], classes: usize::from(items > 0), known: HashMap::default() }
    }

    fn split(&mut self, feature: impl Fn(usize) -> u128) {
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

    fn write_u128(&mut self, word: u128) {
        for half in [word, word >> 64] {
            self.write_u64(u64::try_from(half & u128::from(u64::MAX)).unwrap_or_default());
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}
