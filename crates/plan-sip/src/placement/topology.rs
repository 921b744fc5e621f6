//! The domains of one topology key: which host is in which, and how many hosts of each are taken by anybody.

use std::collections::BTreeMap;

use super::names::Names;

/// No domain: the host lacks the label.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The domains of one label key. Domain numbers are dense; a number whose last host left is given to another value.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    /// By slot of the fleet.
    of_slot: Vec<u32>,
    /// By number of the value.
    by_value: BTreeMap<u32, u32>,
    domains: Vec<Domain>,
    vacant: Vec<u32>,
    /// The turn of the fleet in which it was last asked for.
    pub(super) used: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    value: u32,
    hosts: u32,
    taken: u32,
}

impl Topology {
    /// Puts the host of `slot` into the domain `value`.
    pub(super) fn insert(&mut self, slot: usize, value: u32, taken: bool) {
        let domain = *self.by_value.entry(value).or_insert_with(|| {
            let fresh = Domain { value, hosts: 0, taken: 0 };
            if let Some(number) = self.vacant.pop() {
                self.domains[number as usize] = fresh;
                return number;
            }
            self.domains.push(fresh);
            u32::try_from(self.domains.len() - 1).expect("no more domains than label texts")
        });
        if self.of_slot.len() <= slot {
            self.of_slot.resize(slot + 1, NOWHERE);
        }
        self.of_slot[slot] = domain;
        let domain = &mut self.domains[domain as usize];
        domain.hosts += 1;
        domain.taken += u32::from(taken);
    }

    /// Takes the host of `slot` out of its domain, if it is in one.
    pub(super) fn remove(&mut self, slot: usize, taken: bool) {
        let number = self.domain_of(slot);
        if number == NOWHERE {
            return;
        }
        self.of_slot[slot] = NOWHERE;
        let domain = &mut self.domains[number as usize];
        domain.hosts -= 1;
        domain.taken -= u32::from(taken);
        if domain.hosts == 0 {
            self.by_value.remove(&domain.value);
            self.vacant.push(number);
        }
    }

    /// The host of `slot` became taken, or free.
    pub(super) fn set_taken(&mut self, slot: usize, taken: bool) {
        let number = self.domain_of(slot);
        if let Some(domain) = self.domains.get_mut(number as usize) {
            if taken {
                domain.taken += 1;
            } else {
                domain.taken -= 1;
            }
        }
    }

    /// The domain of the host of `slot`, or [`NOWHERE`].
    pub(super) fn domain_of(&self, slot: usize) -> u32 {
        self.of_slot.get(slot).copied().unwrap_or(NOWHERE)
    }

    /// One more than the highest domain number.
    pub(super) fn len(&self) -> usize {
        self.domains.len()
    }

    /// The domain whose label value is `value`.
    pub(super) fn find(&self, names: &Names, value: &str) -> Option<u32> {
        names.find(value).and_then(|value| self.by_value.get(&value).copied())
    }

    /// The label value of a domain that has hosts.
    pub(super) fn text<'a>(&self, names: &'a Names, domain: u32) -> &'a str {
        names.text(self.domains[domain as usize].value)
    }

    /// Hosts of a domain taken by anybody.
    pub(super) fn taken(&self, domain: u32) -> u32 {
        self.domains[domain as usize].taken
    }
}
