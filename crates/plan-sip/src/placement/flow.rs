//! Minimum-cost flow with convex arcs, by successive shortest paths with potentials (primal-dual).
//!
//! Costs are pairs compared lexicographically, which form an ordered group, so every argument about shortest paths holds
//! as it does for numbers. All costs are non-negative before the first unit flows; potentials keep all reduced costs of
//! residual arcs non-negative from then on, so at any time the flow is the cheapest for what each source has sent.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::{Add, AddAssign, Neg, Sub},
};

/// What a choice costs: spread, then how scarce hosts are in its domains, then how crowded these are. Compared in this
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cost {
    /// Sum of marginal ranks in the domains of the role.
    pub(super) spread: i64,
    /// Candidates of the role outside the domains chosen.
    pub(super) scarce: i64,
    /// Hosts taken by anybody in the domains chosen.
    pub(super) taken: i64,
}

impl Cost {
    pub(super) const ZERO: Self = Self { spread: 0, scarce: 0, taken: 0 };

    /// What a domain of which the cluster has `held` hosts costs for one more: (held + 1)² − held².
    pub(super) fn one_more(held: u32) -> Self {
        Self { spread: 2 * i64::from(held) + 1, ..Self::ZERO }
    }

    /// What so many of this cost cost together.
    pub(super) fn times(self, count: usize) -> Self {
        let count = i64::try_from(count).expect("no more than there are hosts");
        Self { spread: self.spread * count, scarce: self.scarce * count, taken: self.taken * count }
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { spread: self.spread + other.spread, scarce: self.scarce + other.scarce, taken: self.taken + other.taken }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Neg for Cost {
    type Output = Self;
    fn neg(self) -> Self {
        Self { spread: -self.spread, scarce: -self.scarce, taken: -self.taken }
    }
}

impl Sub for Cost {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

/// A node of a [`Network`].
pub(super) type Node = usize;

/// What the units of an arc cost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Price {
    /// Each the same.
    Each(Cost),
    /// The k-th as the k-th host beyond these: convex.
    Beyond(u32),
}

#[derive(Clone, Debug)]
struct Arc {
    from: Node,
    to: Node,
    capacity: u32,
    flow: u32,
    /// The flow never falls below this again.
    floor: u32,
    price: Price,
}

/// One direction of an arc: `2 * arc` along it, `2 * arc + 1` back.
type Side = usize;

/// A network with one sink, node 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    arcs: Vec<Arc>,
    sides: Vec<Vec<Side>>,
    potential: Vec<Cost>,
}

/// The sink.
pub(super) const SINK: Node = 0;

impl Network {
    /// A network of the sink alone.
    pub(super) fn new() -> Self {
        Self { arcs: Vec::new(), sides: vec![Vec::new()], potential: vec![Cost::ZERO] }
    }

    /// A new node.
    pub(super) fn node(&mut self) -> Node {
        self.sides.push(Vec::new());
        self.potential.push(Cost::ZERO);
        self.sides.len() - 1
    }

    /// A new arc; its number. To be added before anything flows.
    pub(super) fn arc(&mut self, from: Node, to: Node, capacity: u32, price: Price) -> usize {
        let arc = self.arcs.len();
        self.arcs.push(Arc { from, to, capacity, flow: 0, floor: 0, price });
        self.sides[from].push(2 * arc);
        self.sides[to].push(2 * arc + 1);
        arc
    }

    /// What flows through an arc.
    pub(super) fn flow(&self, arc: usize) -> u32 {
        self.arcs[arc].flow
    }

    fn ends(&self, side: Side) -> (Node, Node) {
        let arc = &self.arcs[side / 2];
        if side.is_multiple_of(2) { (arc.from, arc.to) } else { (arc.to, arc.from) }
    }

    fn open(&self, side: Side) -> bool {
        let arc = &self.arcs[side / 2];
        if side.is_multiple_of(2) { arc.flow < arc.capacity } else { arc.flow > arc.floor }
    }

    fn cost(&self, side: Side) -> Cost {
        let arc = &self.arcs[side / 2];
        match (arc.price, side.is_multiple_of(2)) {
            (Price::Each(cost), true) => cost,
            (Price::Each(cost), false) => -cost,
            (Price::Beyond(held), true) => Cost::one_more(held + arc.flow),
            (Price::Beyond(held), false) => -Cost::one_more(held + arc.flow - 1),
        }
    }

    fn reduced(&self, side: Side) -> Cost {
        let (from, to) = self.ends(side);
        self.cost(side) + self.potential[from] - self.potential[to]
    }

    fn push(&mut self, side: Side) {
        let arc = &mut self.arcs[side / 2];
        if side.is_multiple_of(2) {
            arc.flow += 1;
        } else {
            arc.flow -= 1;
        }
    }

    /// Sends up to `units` from `source` to the sink, as many as fit and as cheaply as possible; how many were sent.
    /// What other sources have sent still arrives, perhaps elsewhere.
    pub(super) fn send(&mut self, source: Node, units: u32) -> u32 {
        let mut sent = 0;
        while sent < units && self.lower_potentials(source) {
            sent += self.push_along_tight(source, units - sent);
        }
        sent
    }

    /// Makes all residual arcs of a shortest path to the sink tight (reduced cost zero); false when there is no path.
    fn lower_potentials(&mut self, source: Node) -> bool {
        let mut distance: Vec<Option<Cost>> = vec![None; self.sides.len()];
        let mut heap = BinaryHeap::from([Reverse((Cost::ZERO, source))]);
        distance[source] = Some(Cost::ZERO);
        let mut reached = None;
        while let Some(Reverse((so_far, node))) = heap.pop() {
            if distance[node] != Some(so_far) {
                continue;
            }
            if node == SINK {
                reached = Some(so_far);
                break;
            }
            for &side in &self.sides[node] {
                if self.open(side) {
                    let to = self.ends(side).1;
                    let through = so_far + self.reduced(side);
                    if distance[to].is_none_or(|known| through < known) {
                        distance[to] = Some(through);
                        heap.push(Reverse((through, to)));
                    }
                }
            }
        }
        let Some(limit) = reached else { return false };
        for (potential, distance) in self.potential.iter_mut().zip(distance) {
            *potential += distance.map_or(limit, |distance| distance.min(limit));
        }
        true
    }

    /// Depth-first along tight arcs, unit by unit. A node left without success stays left for this round; what that
    /// misses, the next round finds.
    fn push_along_tight(&mut self, source: Node, units: u32) -> u32 {
        let mut left = vec![false; self.sides.len()];
        let mut next = vec![0_usize; self.sides.len()];
        let mut sent = 0;
        let mut path: Vec<Side> = Vec::new();
        left[source] = true;
        while sent < units {
            let node = path.last().map_or(source, |side| self.ends(*side).1);
            if node == SINK {
                for side in path.drain(..) {
                    self.push(side);
                    left[self.ends(side).1] = false;
                }
                sent += 1;
                continue;
            }
            let found = loop {
                let Some(&side) = self.sides[node].get(next[node]) else { break None };
                if self.open(side) && !left[self.ends(side).1] && self.reduced(side) == Cost::ZERO {
                    break Some(side);
                }
                next[node] += 1;
            };
            match found {
                Some(side) => {
                    left[self.ends(side).1] = true;
                    path.push(side);
                }
                None if path.pop().is_some() => {}
                None => break,
            }
        }
        sent
    }

    /// Which nodes residual arcs lead to from `source`: the source's side of the minimum cut, when nothing more fits.
    pub(super) fn reachable(&self, source: Node) -> Vec<bool> {
        let mut seen = vec![false; self.sides.len()];
        let mut stack = vec![source];
        seen[source] = true;
        while let Some(node) = stack.pop() {
            for &side in &self.sides[node] {
                let to = self.ends(side).1;
                if self.open(side) && !seen[to] {
                    seen[to] = true;
                    stack.push(to);
                }
            }
        }
        seen
    }

    /// From now on the flow of `arc` stays at least `floor`.
    pub(super) fn keep(&mut self, arc: usize, floor: u32) {
        self.arcs[arc].floor = floor;
    }

    /// The strongly connected components of the tight residual arcs, as a number per node.
    ///
    /// All cheapest flows differ by cycles of tight residual arcs only, so an arc can carry one unit more at the same
    /// cost if and only if it is tight, open, and both its ends are in one component.
    pub(super) fn tight_components(&self) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let count = self.sides.len();
        let (mut index, mut low, mut component) = (vec![UNSEEN; count], vec![0; count], vec![UNSEEN; count]);
        let (mut time, mut components) = (0, 0);
        let mut open_nodes: Vec<Node> = Vec::new();
        for root in 0..count {
            if index[root] != UNSEEN {
                continue;
            }
            let mut calls = vec![(root, 0_usize)];
            while let Some(&mut (node, ref mut at)) = calls.last_mut() {
                if *at == 0 {
                    (index[node], low[node]) = (time, time);
                    time += 1;
                    open_nodes.push(node);
                }
                if let Some(&side) = self.sides[node].get(*at) {
                    *at += 1;
                    let to = self.ends(side).1;
                    if !self.open(side) || self.reduced(side) != Cost::ZERO {
                        continue;
                    }
                    if index[to] == UNSEEN {
                        calls.push((to, 0));
                    } else if component[to] == UNSEEN {
                        low[node] = low[node].min(index[to]);
                    }
                    continue;
                }
                calls.pop();
                if low[node] == index[node] {
                    while let Some(member) = open_nodes.pop() {
                        component[member] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
                if let Some(&(parent, _)) = calls.last() {
                    low[parent] = low[parent].min(low[node]);
                }
            }
        }
        component
    }

    /// Whether an arc could carry one unit more at the same cost as far as it alone is concerned.
    pub(super) fn may_rise(&self, arc: usize) -> bool {
        self.open(2 * arc) && self.reduced(2 * arc) == Cost::ZERO
    }

    /// Makes an arc at its floor carry one unit more at the same cost, given the components; false when it cannot.
    pub(super) fn raise(&mut self, arc: usize, components: &[usize]) -> bool {
        let side = 2 * arc;
        let (from, to) = self.ends(side);
        if !self.may_rise(arc) || components[from] != components[to] {
            return false;
        }
        // A tight way back from `to` to `from` exists; breadth first finds one.
        let mut came_by: Vec<Option<Side>> = vec![None; self.sides.len()];
        let mut queue = std::collections::VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            if node == from {
                break;
            }
            for &side in &self.sides[node] {
                let next = self.ends(side).1;
                if next != to && came_by[next].is_none() && self.open(side) && self.reduced(side) == Cost::ZERO {
                    came_by[next] = Some(side);
                    queue.push_back(next);
                }
            }
        }
        let mut node = from;
        while node != to {
            let Some(side) = came_by[node] else { return false };
            self.push(side);
            node = self.ends(side).0;
        }
        self.push(side);
        true
    }
}
