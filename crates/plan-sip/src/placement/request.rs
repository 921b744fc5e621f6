//! What one cluster asks of placement, and the answers it can get.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use base::Key;

use super::{Explanation, Selector};

/// What one cluster asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The cluster that asks. Hosts it has taken already are told apart from those of others in explanations.
    pub cluster: Key,
    /// Where it may take hosts.
    pub namespaces: Namespaces,
    /// Hosts it must not get, e.g. those being replaced.
    pub exclude: BTreeSet<Key>,
    /// Its roles by name. ControlPlane comes first in every decision, then the others by name.
    pub roles: BTreeMap<String, Role>,
}

/// The namespaces a cluster may take hosts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    All,
    /// These only.
    Of(BTreeSet<String>),
}

/// What one role of a cluster asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Which hosts it may take.
    pub selector: Selector,
    /// At most so many of its hosts per domain. The same key twice counts as the stricter.
    pub levels: Vec<Level>,
    /// How many more hosts it wants: asked for, less owned.
    pub need: u32,
    /// Hosts of this role that the cluster already has. They stay, and occupy room.
    pub owned: Vec<Owned>,
    /// Hosts that are no candidates of this role, though perhaps of others: without an address in this network, in which
    /// the role needs one.
    pub unaddressed: BTreeMap<Key, String>,
}

/// At most `max_per_domain` hosts of a role share one value of label `key`. `topologyKey` is a level with maximum 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// The label key whose values are the domains.
    pub key: String,
    /// Hosts of the role per domain; with 0 nothing can be placed.
    pub max_per_domain: u32,
}

/// A host a cluster already has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Namespace and name.
    pub key: Key,
    /// Its labels now. Without the label of a level it occupies no room there.
    pub labels: BTreeMap<String, String>,
}

/// One host for one role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// The role.
    pub role: String,
    /// The host.
    pub host: Key,
}

/// The answer to a cluster that gets all it needs or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All needs are met: ControlPlane first, then by role; by host within a role.
    Chosen(Vec<Choice>),
    /// It cannot be done, proven; one explanation for each role that falls short (at least one).
    Short(Vec<Explanation>),
    /// The search ended before it found a solution or proved that there is none.
    Undecided(Vec<Undecided>),
}

/// The answer to a cluster that takes what it can get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// Hosts to take, ordered as in [`Answer::Chosen`].
    pub chosen: Vec<Choice>,
    /// The roles that fall short for sure.
    pub short: Vec<Explanation>,
    /// The roles that could perhaps get more than `chosen` gives them.
    pub undecided: Vec<Undecided>,
}

/// A role whose levels do not nest, and for which the bounded search did not come to an end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undecided {
    /// The role.
    pub role: String,
    /// Hosts still needed.
    pub need: u32,
    /// For how many of these a place was found.
    pub found: u32,
    /// The bound, in steps of the search.
    pub steps: u64,
}

/// Hosts of a role in one domain beyond the maximum, from before a rule or a label changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The topology key.
    pub key: String,
    /// The domain.
    pub domain: String,
    /// The maximum.
    pub max_per_domain: u32,
    /// The hosts there, in order.
    pub hosts: Vec<Key>,
}

/// The name of the role that comes first.
const FIRST_ROLE: &str = "ControlPlane";

impl Namespaces {
    /// Whether hosts of `namespace` may be taken.
    pub fn allow(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.contains(namespace),
        }
    }
}

impl Request {
    /// The roles in the order of decisions: ControlPlane, then by name.
    pub fn in_order(&self) -> impl Iterator<Item = (&str, &Role)> {
        let first = self.roles.get_key_value(FIRST_ROLE);
        let others = self.roles.iter().filter(|(name, _)| *name != FIRST_ROLE);
        first.into_iter().chain(others).map(|(name, role)| (name.as_str(), role))
    }
}

impl Role {
    /// The levels with each key once, the stricter maximum of it, in the order of first mention.
    pub fn merged_levels(&self) -> Vec<Level> {
        let mut merged: Vec<Level> = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            match merged.iter_mut().find(|known| known.key == level.key) {
                Some(known) => known.max_per_domain = known.max_per_domain.min(level.max_per_domain),
                None => merged.push(level.clone()),
            }
        }
        merged
    }

    /// Where the owned hosts break the rules already, by key and domain.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for level in self.merged_levels() {
            let mut domains: BTreeMap<&str, Vec<Key>> = BTreeMap::new();
            for owned in &self.owned {
                if let Some(domain) = owned.labels.get(&level.key) {
                    domains.entry(domain).or_default().push(owned.key.clone());
                }
            }
            for (domain, mut hosts) in domains {
                if hosts.len() > level.max_per_domain as usize {
                    hosts.sort();
                    let (key, domain) = (level.key.clone(), domain.to_owned());
                    found.push(Violation { key, domain, max_per_domain: level.max_per_domain, hosts });
                }
            }
        }
        found.sort();
        found
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, need, found, steps } = self;
        write!(
            f,
            "role {role}: {need} more hosts needed, {found} can be placed; whether more can is undecided: \
             its spread levels do not nest, and the search was ended after {steps} steps"
        )
    }
}
