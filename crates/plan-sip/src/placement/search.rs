//! Roles whose levels do not nest and that share hosts (or cross threefold): an exact search, bounded in steps.
//!
//! Flows on some of the levels give upper bounds first, so most impossible wishes are refused without a search. Then
//! branch and bound over (role, class): take one host of the class, or take none of it from here on. A first search
//! goes by cost and finds the least; a second goes by the fixed order of hosts and stops at the first choice of that
//! cost. Both are complete, so an end before the bound is a proof.

use super::{
    choose::{Flow, Outcome},
    classes::Part,
    flow::Cost,
    nesting::Crossings,
};

/// The bound: visits of a (role, class) pair in all searches for one part together; and as many each for the least cost
/// and for the fixed order.
pub(super) const STEPS: u64 = 1_000_000;

/// The depth of the search is the number of hosts placed.
const DEPTH: u64 = 1_000;

/// Chooses as [`super::choose::choose`] does.
pub(super) fn choose(part: &Part, crossings: &[Crossings], whole: bool) -> Outcome {
    let count = part.roles.len();
    let mut steps = STEPS;
    let mut found = vec![0; count];
    let mut proven = vec![true; count];
    for role in 0..count {
        let mut wanted = found.clone();
        wanted[role] = part.roles[role].need;
        let bound = upper_bound(part, crossings, &wanted, role);
        (found[role], proven[role]) = most(part, &found, role, bound, &mut steps);
    }
    let short: Vec<bool> = part.roles.iter().zip(&found).map(|(role, found)| *found < role.need).collect();
    // More for an earlier role than was found would mean less for a later one: what that lacks is not proven either.
    let mut doubtful = false;
    for role in (0..count).filter(|role| short[*role]) {
        doubtful |= !proven[role];
        proven[role] = !doubtful;
    }
    let rivals = short.iter().enumerate().map(|(role, short)| if *short { vec![role] } else { Vec::new() }).collect();
    let items = if whole && short.contains(&true) { vec![Vec::new(); count] } else { best(part, &found) };
    Outcome { items, found, proven, rivals }
}

/// At most so many for `role`, with the earlier ones as wanted: the least that a flow on some of the levels allows.
fn upper_bound(part: &Part, crossings: &[Crossings], wanted: &[u32], role: usize) -> u32 {
    let levels = part.roles.iter().map(|role| role.levels).max().unwrap_or(0);
    let alone = part.roles.len() == 1;
    let bound = |first: usize| {
        let sides: Vec<_> = crossings.iter().map(|crossings| crossings.some_trees(alone, first)).collect();
        Flow::new(part, &sides).send(wanted)[role]
    };
    (0..levels).map(bound).min().unwrap_or(wanted[role])
}

/// The most that `role` can get besides what earlier roles have, from `bound` downwards; and whether that is proven.
fn most(part: &Part, fixed: &[u32], role: usize, bound: u32, steps: &mut u64) -> (u32, bool) {
    let mut proven = true;
    for target in (1..=bound).rev() {
        let mut needs = fixed.to_vec();
        needs[role] = target;
        // Half of what is left for each target, so that a hard one leaves enough to find the next; but always enough
        // for a straight descent.
        let descent = u64::from(target) * part.classes.len() as u64 * part.roles.len() as u64;
        let allowed = (*steps / 2).max(descent);
        let mut search = Search::new(part, &needs, Order::Cost, allowed);
        search.first_will_do = true;
        search.role(0);
        *steps = steps.saturating_sub(allowed - search.steps.min(allowed));
        if search.best.is_some() {
            return (target, proven);
        }
        proven &= search.complete();
    }
    (0, proven)
}

/// The best choice for exactly these needs, which are known to be possible; without proof if the bound is met.
fn best(part: &Part, needs: &[u32]) -> Vec<Vec<u32>> {
    let mut by_cost = Search::new(part, needs, Order::Cost, STEPS);
    by_cost.role(0);
    let Some((cost, taken)) = by_cost.best.clone() else { return vec![Vec::new(); needs.len()] };
    let mut taken = taken;
    if by_cost.complete() {
        let mut by_order = Search::new(part, needs, Order::Hosts, STEPS);
        (by_order.limit, by_order.first_will_do) = (Some(cost), true);
        by_order.role(0);
        if let Some((_, first)) = by_order.best {
            taken = first;
        }
    }
    let mut gone = vec![0; part.classes.len()];
    let mut items = Vec::with_capacity(needs.len());
    for taken in taken {
        let mut of_role = Vec::new();
        for (class, count) in taken.into_iter().enumerate() {
            of_role.extend_from_slice(&part.classes[class].items[gone[class]..gone[class] + count]);
            gone[class] += count;
        }
        of_role.sort_unstable();
        items.push(of_role);
    }
    items
}

/// Which class is tried first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Cost,
    Hosts,
}

/// A search for a cheapest choice of exactly these needs.
struct Search<'a> {
    part: &'a Part,
    order: Order,
    /// Hosts still needed, per role.
    needs: Vec<u32>,
    /// Hosts in each cell by now, per role.
    used: Vec<Vec<u32>>,
    /// Hosts left in each class.
    left: Vec<usize>,
    /// Hosts taken, per role and class.
    taken: Vec<Vec<usize>>,
    /// Classes a role takes no more from.
    closed: Vec<Vec<bool>>,
    cost: Cost,
    /// Choices dearer than this are not wanted.
    limit: Option<Cost>,
    first_will_do: bool,
    best: Option<(Cost, Vec<Vec<usize>>)>,
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(part: &'a Part, needs: &[u32], order: Order, steps: u64) -> Self {
        let roles = part.roles.len();
        Self {
            part,
            order,
            needs: needs.to_vec(),
            used: part.roles.iter().map(|role| vec![0; role.cells.len()]).collect(),
            left: part.classes.iter().map(|class| class.items.len()).collect(),
            taken: vec![vec![0; part.classes.len()]; roles],
            closed: vec![vec![false; part.classes.len()]; roles],
            cost: Cost::ZERO,
            limit: None,
            first_will_do: false,
            best: None,
            steps: if needs.iter().map(|need| u64::from(*need)).sum::<u64>() > DEPTH { 0 } else { steps },
        }
    }

    /// Whether the search came to its end: what it did not find does not exist.
    fn complete(&self) -> bool {
        self.steps > 0
    }

    fn ended(&self) -> bool {
        self.steps == 0 || (self.first_will_do && self.best.is_some())
    }

    /// Hosts of `class` that `role` can still take, and what the next one costs.
    fn offer(&self, role: usize, class: usize) -> Option<(usize, Cost)> {
        let seat = self.part.classes[class].seats[role].as_ref()?;
        if self.closed[role][class] {
            return None;
        }
        let (mut fit, mut cost) = (self.left[class], seat.cost);
        for &cell in &seat.cells {
            let used = self.used[role][cell];
            let cell = &self.part.roles[role].cells[cell];
            fit = fit.min((cell.room - used) as usize);
            cost += Cost::one_more(cell.owned + used);
        }
        (fit > 0).then_some((fit, cost))
    }

    /// At least so much do the needs of `role` cost from here; none when they cannot be met. Each host offered is
    /// counted at the price of the next one: prices only rise, and offers only shrink.
    fn lower_bound(&mut self, role: usize) -> Option<Cost> {
        let part = self.part;
        let about = &part.roles[role];
        self.steps = self.steps.saturating_sub(part.classes.len() as u64);
        let mut offers: Vec<(Cost, usize)> = Vec::new();
        let mut in_cell = vec![0_usize; about.cells.len()];
        let mut in_levels = vec![0_usize; about.levels];
        for (class, about) in part.classes.iter().enumerate() {
            if let (Some((fit, cost)), Some(seat)) = (self.offer(role, class), &about.seats[role]) {
                offers.push((cost, fit));
                for sum in &mut in_levels {
                    *sum += fit;
                }
                for cell in &seat.cells {
                    in_cell[*cell] += fit;
                }
            }
        }
        let mut wanted = self.needs[role] as usize;
        for (at, cell) in about.cells.iter().enumerate() {
            in_levels[cell.level] -= in_cell[at].saturating_sub((cell.room - self.used[role][at]) as usize);
        }
        if in_levels.iter().any(|supply| *supply < wanted) {
            return None;
        }
        offers.sort_unstable();
        let mut cost = Cost::ZERO;
        for (each, fit) in offers {
            let count = fit.min(wanted);
            cost += each.times(count);
            wanted -= count;
        }
        (wanted == 0).then_some(cost)
    }

    /// Continues with `role`; the roles before it have what they need.
    fn role(&mut self, role: usize) {
        if self.ended() {
            return;
        }
        if role == self.needs.len() {
            if self.wanted(self.cost) {
                self.best = Some((self.cost, self.taken.clone()));
            }
            return;
        }
        if self.needs[role] == 0 {
            return self.role(role + 1);
        }
        let mut closed_here = Vec::new();
        while !self.ended() && self.promising(role) {
            let Some(class) = self.pick(role) else { break };
            self.take(role, class, true);
            self.role(role);
            self.take(role, class, false);
            self.closed[role][class] = true;
            closed_here.push(class);
        }
        for class in closed_here {
            self.closed[role][class] = false;
        }
    }

    /// Whether this branch can still hold a choice that is wanted.
    fn promising(&mut self, from: usize) -> bool {
        let mut least = self.cost;
        for role in from..self.needs.len() {
            match self.lower_bound(role) {
                Some(cost) => least += cost,
                None => return false,
            }
        }
        self.wanted(least)
    }

    /// Whether a choice of this cost is not too dear, and better than what was found.
    fn wanted(&self, cost: Cost) -> bool {
        self.limit.is_none_or(|limit| cost <= limit) && self.best.as_ref().is_none_or(|(best, _)| cost < *best)
    }

    /// The class to try next.
    fn pick(&self, role: usize) -> Option<usize> {
        let offers = (0..self.part.classes.len()).filter_map(|class| Some((class, self.offer(role, class)?.1)));
        let next = |class: usize| {
            let items = &self.part.classes[class].items;
            items[items.len() - self.left[class]]
        };
        match self.order {
            Order::Cost => offers.min_by_key(|(class, cost)| (*cost, next(*class))).map(|(class, _)| class),
            Order::Hosts => offers.min_by_key(|(class, _)| next(*class)).map(|(class, _)| class),
        }
    }

    /// Takes a host of `class` for `role`, or gives the last one back.
    fn take(&mut self, role: usize, class: usize, forward: bool) {
        let part = self.part;
        let Some(seat) = &part.classes[class].seats[role] else { return };
        let mut cost = seat.cost;
        for &cell in &seat.cells {
            let used = &mut self.used[role][cell];
            let owned = part.roles[role].cells[cell].owned;
            if forward {
                cost += Cost::one_more(owned + *used);
                *used += 1;
            } else {
                *used -= 1;
                cost += Cost::one_more(owned + *used);
            }
        }
        if forward {
            (self.cost, self.needs[role]) = (self.cost + cost, self.needs[role] - 1);
            (self.left[class], self.taken[role][class]) = (self.left[class] - 1, self.taken[role][class] + 1);
        } else {
            (self.cost, self.needs[role]) = (self.cost - cost, self.needs[role] + 1);
            (self.left[class], self.taken[role][class]) = (self.left[class] + 1, self.taken[role][class] - 1);
        }
    }
}
