//! Placement: which hosts serve which roles of a cluster, exactly, reproducibly, and with a reason when it cannot be.
//!
//! # The rules
//! A host serves at most one role. It is a candidate of a role when it is free and fit, in an allowed namespace, not
//! excluded, matched by the role's selector, and carries the labels of all the role's levels. Of the hosts of a role, at
//! most `max_per_domain` share a domain of a level; hosts the cluster owns occupy room there and never move.
//!
//! # What is best
//! 1. *Counts.* [`place_all`]: every need of every role, or nothing. [`place_most`]: the counts of the roles, in order
//!    (ControlPlane, then by name), lexicographically greatest.
//! 2. *Spread.* With these counts, the least sum over roles, their levels and the domains of these of (hosts of the role in
//!    the domain, owned ones included)². The k-th host of a role in a domain thus costs 2k − 1.
//! 3. *Supply.* Then the greatest sum over chosen hosts and the levels of their role of how many candidates of the role were
//!    in the host's domain when the question was asked. Drawing from where most is left keeps the domains level, so that
//!    later clusters find as many different domains as possible; with hosts of one kind it is the same as 4.
//! 4. *Crowding.* Then the least such sum of how many hosts of the fleet were taken, by anybody, in the domain.
//! 5. *Fixed order.* Then, role by role in order, the sorted list of its hosts (by namespace, then name) that comes first.
//!
//! The five together leave exactly one answer, whatever order hosts came in.
//!
//! # How
//! Roles that share no candidate are independent (`problem`). Levels that nest, and two trees of levels of a role that
//! competes with no other, are a flow (`choose`, `flow`); everything else is a search bounded in steps (`search`).
//! Only a search can end without an answer, and says so: it never calls possible what is not, or impossible what is.
//! If the bound falls between a first solution and the proof that it is best, the best one found is chosen: the rules
//! hold and it is reproducible, only 2 to 5 are not proven.

mod choose;
mod classes;
mod explain;
mod fleet;
mod flow;
mod names;
mod nesting;
mod problem;
mod request;
mod search;
mod selector;
mod standing;
mod topology;
mod words;

use base::Key;

pub use explain::{Claimed, Dropped, Explanation, FullDomain, LevelReport, Place, Remedy, Rivals, Unlabelled};
pub use fleet::Fleet;
pub use request::{Answer, Choice, Level, Namespaces, Owned, Partial, Request, Role, Undecided, Violation};
pub use selector::{Selector, SelectorError};
pub use standing::{Host, Standing, Unfit};

use classes::Part;
use problem::RoleView;

/// Places a cluster that gets all it needs or nothing. Takes `fleet` mutably only to index what is asked for first.
pub fn place_all(fleet: &mut Fleet, request: &Request) -> Answer {
    let placed = place(fleet, request, true);
    if !placed.undecided.is_empty() && placed.short.is_empty() {
        Answer::Undecided(placed.undecided)
    } else if placed.short.is_empty() {
        Answer::Chosen(placed.chosen)
    } else {
        Answer::Short(placed.short)
    }
}

/// Places a cluster that takes what it can get, ControlPlane first. Takes `fleet` mutably as [`place_all`] does.
pub fn place_most(fleet: &mut Fleet, request: &Request) -> Partial {
    place(fleet, request, false)
}

fn place(fleet: &mut Fleet, request: &Request, whole: bool) -> Partial {
    fleet.prepare(request);
    let fleet = &*fleet;
    let allowed = problem::allowed(fleet, request);
    let roles: Vec<RoleView<'_>> = request
        .in_order()
        .filter(|(_, role)| role.need > 0)
        .map(|(name, role)| RoleView::new(fleet, name, role, &allowed))
        .collect();
    let rank = problem::ranks(fleet);
    let parts: Vec<Part> = problem::parts(&roles, fleet.order().len().max(rank.len()))
        .iter()
        .map(|chosen| Part::new(&roles, chosen, &rank))
        .collect();
    let mut outcomes: Vec<choose::Outcome> = parts.iter().map(|part| choose::choose(part, whole)).collect();
    let short = |part: &Part, outcome: &choose::Outcome| {
        part.roles.iter().zip(&outcome.found).any(|(role, found)| *found < role.need)
    };
    let any_short = parts.iter().zip(&outcomes).any(|(part, outcome)| short(part, outcome));

    let mut answer = Partial::default();
    let mut chosen: Vec<Vec<Key>> = vec![Vec::new(); roles.len()];
    let mut explained: Vec<(usize, Explanation)> = Vec::new();
    for (part, outcome) in parts.iter().zip(&mut outcomes) {
        if whole && short(part, outcome) {
            // What could be placed is part of the explanation, though nothing is.
            *outcome = choose::choose(part, false);
        }
        for (at, role) in part.roles.iter().enumerate() {
            if outcome.found[at] < role.need {
                if outcome.proven[at] {
                    explained.push((role.index, explain::explain(fleet, request, &roles, part, outcome, at)));
                } else {
                    answer.undecided.push(Undecided {
                        role: roles[role.index].name.to_owned(),
                        need: role.need,
                        found: outcome.found[at],
                        steps: search::STEPS,
                    });
                }
            }
            if !(whole && any_short) {
                let keys = outcome.items[at].iter().map(|item| fleet.key(part.slots[*item as usize]).clone());
                chosen[role.index] = keys.collect();
            }
        }
    }
    explained.sort_by_key(|(index, _)| *index);
    answer.short = explained.into_iter().map(|(_, explanation)| explanation).collect();
    answer.chosen = roles
        .iter()
        .zip(chosen)
        .flat_map(|(view, hosts)| hosts.into_iter().map(|host| Choice { role: view.name.to_owned(), host }))
        .collect();
    answer
}
