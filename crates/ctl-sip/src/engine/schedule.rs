//! Whose turn it is: who is due, who is under way, who has to wait until when.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base::Key;
use tokio::time::Instant;

/// First and longest pause after failures; each failure doubles it.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Clusters to decide about.
    due: BTreeSet<Key>,
    /// Clusters on a turn.
    busy: BTreeSet<Key>,
    /// Whether a record is being written: until it is, nothing else is decided.
    pub(super) recording: bool,
    /// Hosts that are nobody's and have to be looked at.
    hosts_due: BTreeSet<Key>,
    hosts_busy: BTreeSet<Key>,
    /// Clusters that are looked at from time to time: due, under way, or with a timer.
    looking: BTreeSet<Key>,
    looks_due: BTreeSet<Key>,
    looks_busy: BTreeSet<Key>,
    timers: BTreeSet<(Instant, Timer)>,
    failures: BTreeMap<Key, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Only to look around again.
    Nobody,
    Cluster(Key),
    Host(Key),
    Look(Key),
}

impl Schedule {
    /// Something about a cluster changed.
    pub(super) fn due(&mut self, key: &Key) {
        self.due.insert(key.clone());
    }

    /// Something about a host changed.
    pub(super) fn host_due(&mut self, key: &Key) {
        self.hosts_due.insert(key.clone());
    }

    /// Clusters that are due and not on a turn.
    pub(super) fn ready(&self) -> impl Iterator<Item = &Key> {
        self.due.iter().filter(|key| !self.busy.contains(*key))
    }

    /// Whether anything is due or under way.
    pub(super) fn has_work(&self) -> bool {
        self.recording || !self.due.is_empty() || !self.busy.is_empty()
    }

    /// A cluster goes on its turn.
    pub(super) fn begin(&mut self, key: &Key) {
        self.due.remove(key);
        self.busy.insert(key.clone());
        self.timers.retain(|(_, timer)| *timer != Timer::Cluster(key.clone()));
    }

    /// How many are on a turn.
    pub(super) fn running(&self) -> usize {
        self.busy.len()
    }

    /// A cluster comes back from its turn.
    pub(super) fn end(&mut self, key: &Key) {
        self.busy.remove(key);
    }

    /// A cluster is no more.
    pub(super) fn forget(&mut self, key: &Key) {
        self.due.remove(key);
        self.failures.remove(key);
        self.timers.retain(|(_, timer)| *timer != Timer::Cluster(key.clone()));
        self.forget_look(key);
    }

    /// A cluster is looked at as soon as there is room, unless it is being looked at already.
    pub(super) fn look_unless_planned(&mut self, key: &Key) {
        if self.looking.insert(key.clone()) {
            self.looks_due.insert(key.clone());
        }
    }

    /// The next cluster to look at, if fewer than `most` are being looked at.
    pub(super) fn begin_look(&mut self, most: usize) -> Option<Key> {
        if self.looks_busy.len() >= most {
            return None;
        }
        let key = self.looks_due.iter().find(|key| !self.looks_busy.contains(*key))?.clone();
        self.looks_due.remove(&key);
        self.looks_busy.insert(key.clone());
        Some(key)
    }

    /// A look has ended; the next one is due after this long.
    pub(super) fn look_again(&mut self, key: &Key, after: Duration) {
        self.looks_busy.remove(key);
        if self.looking.contains(key) {
            // One that a cluster of the same name left.
            self.timers.retain(|(_, timer)| *timer != Timer::Look(key.clone()));
            self.timers.insert((Instant::now() + after, Timer::Look(key.clone())));
        }
    }

    /// A cluster is looked at no more.
    pub(super) fn forget_look(&mut self, key: &Key) {
        self.looks_busy.remove(key);
        self.looks_due.remove(key);
        if self.looking.remove(key) {
            self.timers.retain(|(_, timer)| *timer != Timer::Look(key.clone()));
        }
    }

    /// A cluster is due again after this long.
    pub(super) fn again(&mut self, key: &Key, after: Duration) {
        self.timers.insert((Instant::now() + after, Timer::Cluster(key.clone())));
    }

    /// A turn failed: due again after a pause that grows with each failure.
    pub(super) fn failed(&mut self, key: &Key, least: Duration) {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = PAUSE.0.saturating_mul(1 << (*failures).min(8)).max(least).min(PAUSE.1);
        *failures += 1;
        self.again(key, pause);
    }

    /// How many turns over a cluster have failed in a row.
    pub(super) fn failures(&self, key: &Key) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// A turn went well.
    pub(super) fn went_well(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// Hosts that are due and not being written to.
    pub(super) fn take_hosts(&mut self) -> Vec<Key> {
        let busy = &self.hosts_busy;
        let (wait, ready): (BTreeSet<Key>, BTreeSet<Key>) =
            std::mem::take(&mut self.hosts_due).into_iter().partition(|key| busy.contains(key));
        self.hosts_due = wait;
        ready.into_iter().collect()
    }

    /// A host is being written to.
    pub(super) fn host_begin(&mut self, key: &Key) {
        self.hosts_busy.insert(key.clone());
    }

    /// It is not any more.
    pub(super) fn host_end(&mut self, key: &Key) {
        self.hosts_busy.remove(key);
    }

    /// A host is due again after this long.
    pub(super) fn host_again(&mut self, key: &Key, after: Duration) {
        self.timers.retain(|(_, timer)| *timer != Timer::Host(key.clone()));
        self.timers.insert((Instant::now() + after, Timer::Host(key.clone())));
    }

    /// When time alone makes somebody due.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Look around again after this long.
    pub(super) fn wake_after(&mut self, after: Duration) {
        self.timers.insert((Instant::now() + after, Timer::Nobody));
    }

    /// Whoever's time has come is due. Whether it was time to look around.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let mut around = false;
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            match self.timers.pop_first() {
                Some((_, Timer::Nobody)) => around = true,
                Some((_, Timer::Cluster(key))) => self.due(&key),
                Some((_, Timer::Host(key))) => self.host_due(&key),
                Some((_, Timer::Look(key))) => {
                    self.looks_due.insert(key);
                }
                None => break,
            }
        }
        around
    }
}
