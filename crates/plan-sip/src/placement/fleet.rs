//! All hosts, indexed for placement and kept up to date host by host.
//!
//! A selector is evaluated once per host, not once per cluster: the set of hosts it matches is a bit set, built when the
//! selector is first asked for and maintained from then on. The same holds for the domains of a topology key and how many
//! hosts of each are taken. Both are dropped when they were not asked for in a long time, so memory is bounded.

use std::{collections::BTreeMap, sync::Arc};

use base::Key;
use fixedbitset::FixedBitSet;

use super::{Host, Namespaces, Request, Selector, Standing, names::Names, topology::Topology};

/// Selectors kept evaluated. A bit set of 10 000 hosts has 1.25 kB.
const SELECTORS_KEPT: usize = 256;
/// Topology keys kept indexed. One of 10 000 hosts has up to 0.6 MB.
const TOPOLOGIES_KEPT: usize = 16;

/// All hosts. What it answers depends only on the hosts in it, never on the order they came in.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    slots: Vec<Option<Entry>>,
    vacant: Vec<usize>,
    by_key: BTreeMap<Arc<Key>, usize>,
    /// Slots by key; made anew when a host came or went.
    order: Vec<usize>,
    order_is_stale: bool,
    names: Names,
    free: FixedBitSet,
    namespaces: BTreeMap<String, FixedBitSet>,
    selectors: BTreeMap<Selector, Matched>,
    topologies: BTreeMap<String, Topology>,
    turn: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Arc<Key>,
    labels: Box<[(u32, u32)]>,
    standing: Standing,
}

#[derive(Clone, Debug)]
struct Matched {
    slots: FixedBitSet,
    used: u64,
}

fn is_taken(standing: &Standing) -> bool {
    matches!(standing, Standing::Taken { .. })
}

impl Fleet {
    /// A fleet without hosts.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Adds a host, or replaces what was known of it.
    pub fn insert(&mut self, host: Host) {
        if let Some(&slot) = self.by_key.get(&host.key) {
            let entry = self.entry(slot);
            let same = entry.labels.len() == host.labels.len()
                && self.labels_of(entry).all(|(key, value)| host.labels.get(key).is_some_and(|known| known == value));
            if same {
                self.stand(slot, host.standing);
                return;
            }
            self.remove(&host.key);
        }
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.free.grow(self.slots.len());
            self.slots.len() - 1
        });
        let Host { key, labels, standing } = host;
        let key = Arc::new(key);
        let capacity = self.slots.len();
        let space = self.namespaces.entry(key.namespace.clone()).or_default();
        space.grow(capacity);
        space.insert(slot);
        self.free.set(slot, standing == Standing::Candidate);
        for (selector, matched) in &mut self.selectors {
            matched.slots.grow(capacity);
            matched.slots.set(slot, selector.matches(&labels));
        }
        let labels: Box<[(u32, u32)]> =
            labels.iter().map(|(key, value)| (self.names.acquire(key), self.names.acquire(value))).collect();
        for (name, topology) in &mut self.topologies {
            let number = self.names.find(name);
            if let Some((_, value)) = labels.iter().find(|(label, _)| Some(*label) == number) {
                topology.insert(slot, *value, is_taken(&standing));
            }
        }
        self.by_key.insert(key.clone(), slot);
        self.slots[slot] = Some(Entry { key, labels, standing });
        self.order_is_stale = true;
    }

    /// Changes whether a host may be chosen; false when there is no such host.
    pub fn set_standing(&mut self, key: &Key, standing: Standing) -> bool {
        let slot = self.by_key.get(key).copied();
        if let Some(slot) = slot {
            self.stand(slot, standing);
        }
        slot.is_some()
    }

    /// Removes a host; false when there is no such host.
    pub fn remove(&mut self, key: &Key) -> bool {
        let Some(slot) = self.by_key.remove(key) else { return false };
        let Some(Entry { key, labels, standing }) = self.slots[slot].take() else { return false };
        self.free.set(slot, false);
        if let Some(space) = self.namespaces.get_mut(&key.namespace) {
            space.set(slot, false);
            if space.is_clear() {
                self.namespaces.remove(&key.namespace);
            }
        }
        for matched in self.selectors.values_mut() {
            matched.slots.set(slot, false);
        }
        for topology in self.topologies.values_mut() {
            topology.remove(slot, is_taken(&standing));
        }
        for (label, value) in labels {
            self.names.release(label);
            self.names.release(value);
        }
        self.vacant.push(slot);
        self.order_is_stale = true;
        true
    }

    /// What is known of a host.
    pub fn get(&self, key: &Key) -> Option<Host> {
        let entry = self.entry(*self.by_key.get(key)?);
        let labels = self.labels_of(entry).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some(Host { key: key.clone(), labels, standing: entry.standing.clone() })
    }

    /// Whether a host may be chosen.
    pub fn standing(&self, key: &Key) -> Option<&Standing> {
        self.by_key.get(key).map(|slot| &self.entry(*slot).standing)
    }

    /// The keys of all hosts, in order, with their standing.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Standing)> {
        self.by_key.iter().map(|(key, slot)| (&**key, &self.entry(*slot).standing))
    }

    fn stand(&mut self, slot: usize, standing: Standing) {
        let entry = self.slots[slot].as_mut().expect("a key leads to a host");
        let (before, now) = (is_taken(&entry.standing), is_taken(&standing));
        self.free.set(slot, standing == Standing::Candidate);
        entry.standing = standing;
        if before != now {
            for topology in self.topologies.values_mut() {
                topology.set_taken(slot, now);
            }
        }
    }

    fn entry(&self, slot: usize) -> &Entry {
        self.slots[slot].as_ref().expect("a key leads to a host")
    }

    fn labels_of<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (&'a str, &'a str)> {
        entry.labels.iter().map(|(key, value)| (self.names.text(*key), self.names.text(*value)))
    }

    // What placement reads. `prepare` comes first; nothing below builds an index.

    /// Builds what a request asks for and drops what nobody asked for in a long time.
    pub(super) fn prepare(&mut self, request: &Request) {
        self.turn += 1;
        if self.order_is_stale {
            self.order.clear();
            self.order.extend(self.by_key.values());
            self.order_is_stale = false;
        }
        for role in request.roles.values() {
            self.prepare_selector(&role.selector);
            for level in &role.levels {
                self.prepare_topology(&level.key);
            }
        }
        drop_unused(&mut self.selectors, SELECTORS_KEPT, self.turn, |matched| matched.used);
        drop_unused(&mut self.topologies, TOPOLOGIES_KEPT, self.turn, |topology| topology.used);
    }

    fn prepare_selector(&mut self, selector: &Selector) {
        if let Some(matched) = self.selectors.get_mut(selector) {
            matched.used = self.turn;
            return;
        }
        let mut slots = FixedBitSet::with_capacity(self.slots.len());
        for &slot in self.by_key.values() {
            let entry = self.entry(slot);
            let value = |key: &str| self.labels_of(entry).find(|(known, _)| *known == key).map(|(_, value)| value);
            slots.set(slot, selector.holds(value));
        }
        self.selectors.insert(selector.clone(), Matched { slots, used: self.turn });
    }

    fn prepare_topology(&mut self, key: &str) {
        if let Some(topology) = self.topologies.get_mut(key) {
            topology.used = self.turn;
            return;
        }
        let mut topology = Topology::default();
        if let Some(number) = self.names.find(key) {
            for &slot in self.by_key.values() {
                let entry = self.entry(slot);
                if let Some((_, value)) = entry.labels.iter().find(|(label, _)| *label == number) {
                    topology.insert(slot, *value, is_taken(&entry.standing));
                }
            }
        }
        topology.used = self.turn;
        self.topologies.insert(key.to_owned(), topology);
    }

    /// The slots of hosts a selector matches.
    pub(super) fn matching(&self, selector: &Selector) -> &FixedBitSet {
        &self.selectors.get(selector).expect("prepared with the request").slots
    }

    /// The domains of a key.
    pub(super) fn topology(&self, key: &str) -> &Topology {
        self.topologies.get(key).expect("prepared with the request")
    }

    /// The slots of hosts that may be chosen by somebody.
    pub(super) fn free(&self) -> &FixedBitSet {
        &self.free
    }

    /// The slots of hosts in these namespaces.
    pub(super) fn within(&self, namespaces: &Namespaces) -> FixedBitSet {
        let mut slots = FixedBitSet::with_capacity(self.slots.len());
        match namespaces {
            Namespaces::All => slots.insert_range(..),
            Namespaces::Of(names) => {
                for space in names.iter().filter_map(|name| self.namespaces.get(name)) {
                    slots.union_with(space);
                }
            }
        }
        slots
    }

    /// The slots of all hosts, by key.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The slot of a host.
    pub(super) fn slot(&self, key: &Key) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// The key of the host in a slot.
    pub(super) fn key(&self, slot: usize) -> &Key {
        &self.entry(slot).key
    }

    /// The standing of the host in a slot.
    pub(super) fn standing_in(&self, slot: usize) -> &Standing {
        &self.entry(slot).standing
    }

    /// The texts that domains are named by.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }
}

/// Drops the entries longest unused until `kept` are left, but none used in this turn.
fn drop_unused<K: Ord + Clone, V>(entries: &mut BTreeMap<K, V>, kept: usize, turn: u64, used: impl Fn(&V) -> u64) {
    while entries.len() > kept {
        let oldest = entries.iter().filter(|(_, entry)| used(entry) < turn).min_by_key(|(_, entry)| used(entry));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Level, Role};
    use std::collections::BTreeSet;

    fn asks(selector: Selector, key: &str) -> Request {
        let levels = vec![Level { key: key.to_owned(), max_per_domain: 1 }];
        let role = Role { selector, levels, need: 1, ..Role::default() };
        Request {
            cluster: Key::new("a", "b"),
            namespaces: Namespaces::All,
            exclude: BTreeSet::new(),
            roles: BTreeMap::from([("Worker".to_owned(), role)]),
        }
    }

    #[test]
    fn nothing_is_kept_of_hosts_that_are_gone() {
        let mut fleet = Fleet::new();
        let key = |number: u32| Key::new(format!("namespace-{}", number % 3), format!("n{number}"));
        for round in 0..3_u32 {
            for number in 0..20 {
                let labels = BTreeMap::from([("rack".to_owned(), format!("r{number}-{round}"))]);
                fleet.insert(Host { key: key(number), labels, standing: Standing::Candidate });
            }
            fleet.prepare(&asks(Selector::everything(), "rack"));
            assert_eq!(
                (fleet.len(), fleet.slots.len(), fleet.topology("rack").len()),
                (20, 20, 20),
                "slots are used again"
            );
        }
        for number in 0..20 {
            assert!(fleet.remove(&key(number)));
        }
        assert!(fleet.is_empty() && fleet.namespaces.is_empty());
        assert_eq!((fleet.names.len(), fleet.free.count_ones(..)), (0, 0));
        assert!(fleet.matching(&Selector::everything()).is_clear());
    }

    #[test]
    fn what_nobody_asks_for_any_more_is_dropped() {
        let mut fleet = Fleet::new();
        for number in 0..2 * SELECTORS_KEPT {
            fleet.prepare(&asks(Selector::everything(), "rack"));
            fleet.prepare(&asks(Selector::labels([("pool", number.to_string())]), &format!("key-{number}")));
        }
        assert_eq!((fleet.selectors.len(), fleet.topologies.len()), (SELECTORS_KEPT, TOPOLOGIES_KEPT));
        assert!(fleet.selectors.contains_key(&Selector::everything()), "what is asked for often stays");
    }
}
