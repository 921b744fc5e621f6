//! The exact choice for the roles of one part: maximum flow says how many, minimum cost which, a fixed order breaks ties.
//!
//! The network: role, its domains from coarse to fine, class of hosts, sink. Arcs into a domain hold its room and cost
//! the rank of the host in it; the arc into a class costs what its hosts cost besides; the arc to the sink holds how many
//! hosts the class has. Roles send in their order, and no later role takes a place away from an earlier one (it may move
//! it), so the counts are the lexicographically greatest: the sets of places that can be filled form a matroid.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    classes::Part,
    flow::{Network, Node, Price, SINK},
    nesting::{Crossings, Side, Sides},
    search,
};

/// What a part can get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Per role of the part: the items chosen, in order. Empty for all when `whole` was asked for and cannot be.
    pub(super) items: Vec<Vec<u32>>,
    /// Per role: for how many a place was found.
    pub(super) found: Vec<u32>,
    /// Per role: whether it is proven that no more can be found.
    pub(super) proven: Vec<bool>,
    /// Per role that falls short: the roles of the part whose hosts it competes for, itself included.
    pub(super) rivals: Vec<Vec<usize>>,
}

/// Chooses for all roles of a part. With `whole`, a part that falls short chooses nothing.
pub(super) fn choose(part: &Part, whole: bool) -> Outcome {
    let alone = part.roles.len() == 1;
    let crossings: Vec<Crossings> = (0..part.roles.len()).map(|role| Crossings::of(part, role)).collect();
    let sides: Option<Vec<Sides>> = crossings.iter().map(|crossings| crossings.trees(alone)).collect();
    match sides {
        Some(sides) => {
            let mut flow = Flow::new(part, &sides);
            let needs: Vec<u32> = part.roles.iter().map(|role| role.need).collect();
            let found = flow.send(&needs);
            let short = found != needs;
            let rivals = found.iter().zip(&needs).enumerate();
            let rivals = rivals.map(|(role, (found, need))| if found < need { flow.rivals(role) } else { Vec::new() });
            let rivals = rivals.collect();
            let items = if short && whole { vec![Vec::new(); found.len()] } else { flow.items() };
            Outcome { items, proven: vec![true; found.len()], found, rivals }
        }
        None => search::choose(part, &crossings, whole),
    }
}

/// Whether a flow answers for a part: its levels nest well enough.
pub(super) fn nests(part: &Part) -> bool {
    trees(part).is_some()
}

/// For how many of each role there is a place, in a part that [`nests`]; zeros for others.
pub(super) fn found(part: &Part) -> Vec<u32> {
    let needs: Vec<u32> = part.roles.iter().map(|role| role.need).collect();
    trees(part).map_or_else(|| vec![0; needs.len()], |sides| Flow::new(part, &sides).send(&needs))
}

fn trees(part: &Part) -> Option<Vec<Sides>> {
    let alone = part.roles.len() == 1;
    (0..part.roles.len()).map(|role| Crossings::of(part, role).trees(alone)).collect()
}

/// The network of a part.
pub(super) struct Flow<'a> {
    part: &'a Part,
    network: Network,
    roles: Vec<Node>,
    /// Per role: its classes and the arcs into them.
    seats: Vec<Vec<(usize, usize)>>,
    sent: Vec<u32>,
}

impl<'a> Flow<'a> {
    /// Builds the network with the levels that have a side.
    pub(super) fn new(part: &'a Part, sides: &[Sides]) -> Self {
        let mut network = Network::new();
        let classes: Vec<Node> = part.classes.iter().map(|_| network.node()).collect();
        let roles: Vec<Node> = part.roles.iter().map(|_| network.node()).collect();
        let mut cell_nodes: Vec<Vec<Option<Node>>> =
            part.roles.iter().map(|role| vec![None; role.cells.len()]).collect();
        let mut seats = vec![Vec::new(); roles.len()];
        for (class, about) in part.classes.iter().enumerate() {
            let count = about.items.len();
            let count = u32::try_from(count).expect("no more items than hosts");
            let mut behind = SINK;
            for (role, seat) in about.seats.iter().enumerate() {
                let Some(seat) = seat else { continue };
                let about = &part.roles[role];
                let nodes = &mut cell_nodes[role];
                let mut chain = |side: Side, start: Node, network: &mut Network| {
                    let mut cells: Vec<usize> = seat.cells.clone();
                    cells.retain(|cell| sides[role][about.cells[*cell].level] == Some(side));
                    cells.sort_by_key(|cell| (Reverse(about.cells[*cell].size), about.cells[*cell].level));
                    let mut last = start;
                    for cell in cells {
                        last = *nodes[cell].get_or_insert_with(|| {
                            let node = network.node();
                            let (from, to) = if side == Side::Before { (last, node) } else { (node, last) };
                            let cell = &about.cells[cell];
                            let capacity = cell.room.min(cell.size).min(about.need);
                            network.arc(from, to, capacity, Price::Beyond(cell.owned));
                            node
                        });
                    }
                    last
                };
                let finest = chain(Side::Before, roles[role], &mut network);
                behind = chain(Side::Behind, SINK, &mut network);
                let arc = network.arc(finest, classes[class], count.min(about.need), Price::Each(seat.cost));
                seats[role].push((class, arc));
            }
            network.arc(classes[class], behind, count, Price::Each(super::flow::Cost::ZERO));
        }
        Self { part, network, sent: vec![0; roles.len()], roles, seats }
    }

    /// Sends what each role needs, as far as it fits, in order; how much fitted.
    pub(super) fn send(&mut self, needs: &[u32]) -> Vec<u32> {
        for (role, &need) in needs.iter().enumerate() {
            self.sent[role] += self.network.send(self.roles[role], need);
        }
        self.sent.clone()
    }

    /// The roles on the near side of the minimum cut of a role that fell short.
    fn rivals(&self, role: usize) -> Vec<usize> {
        let reachable = self.network.reachable(self.roles[role]);
        (0..self.roles.len()).filter(|other| reachable[self.roles[*other]]).collect()
    }

    /// The items of each role: among all cheapest choices the one whose sorted lists, role by role, come first.
    ///
    /// Role by role and host by host: a host is taken if some cheapest flow, which keeps what was taken before, has it.
    /// Hosts of a class are alike, so once one is refused the rest of its class is; earlier roles take the first of them.
    fn items(&mut self) -> Vec<Vec<u32>> {
        let mut gone = vec![0_usize; self.part.classes.len()];
        let mut all = Vec::with_capacity(self.roles.len());
        let mut components: Option<Vec<usize>> = None;
        for (role, seats) in self.seats.iter().enumerate() {
            let item = |gone: &[usize], class: usize, kept: u32| {
                self.part.classes[class].items.get(gone[class] + kept as usize).copied()
            };
            let mut kept = vec![0_u32; seats.len()];
            let first =
                |(at, (class, _)): (usize, &(usize, usize))| item(&gone, *class, 0).map(|item| Reverse((item, at)));
            let mut next: BinaryHeap<Reverse<(u32, usize)>> = seats.iter().enumerate().filter_map(first).collect();
            let mut items = Vec::with_capacity(self.sent[role] as usize);
            while items.len() < self.sent[role] as usize {
                let Some(Reverse((chosen, at))) = next.pop() else { break };
                let (class, arc) = seats[at];
                if self.network.flow(arc) == kept[at] {
                    if !self.network.may_rise(arc) {
                        continue;
                    }
                    let known = components.get_or_insert_with(|| self.network.tight_components());
                    if !self.network.raise(arc, known) {
                        continue;
                    }
                    components = None;
                }
                kept[at] += 1;
                self.network.keep(arc, kept[at]);
                if self.network.flow(arc) == kept[at] {
                    components = None;
                }
                items.push(chosen);
                next.extend(item(&gone, class, kept[at]).map(|item| Reverse((item, at))));
            }
            for &(class, arc) in seats {
                gone[class] += self.network.flow(arc) as usize;
            }
            all.push(items);
        }
        all
    }
}
