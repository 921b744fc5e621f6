//! Whether the levels of a role nest, and how a flow can carry them if they do.
//!
//! Two levels cross when some domain of one and some domain of the other overlap without one containing the other, seen
//! on the candidates alone. Levels without a crossing form a tree. A role alone can have two trees, one before its hosts
//! and one behind them: the flow then runs through both, and is exact again (intersection of two laminar matroids).

use super::classes::{Part, PartRole};

/// For one role: which of its levels cross.
#[derive(Clone, Debug)]
pub(super) struct Crossings {
    pairs: Vec<Vec<bool>>,
}

/// Where the tree of a level stands, per level; none: the level is left out.
pub(super) type Sides = Vec<Option<Side>>;

/// A tree before or behind the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Unseen,
    One(usize),
    Several,
}

impl Crossings {
    /// Compares the levels of role `role` of `part`.
    pub(super) fn of(part: &Part, role: usize) -> Self {
        let PartRole { cells, levels, .. } = &part.roles[role];
        let mut pairs = vec![vec![false; *levels]; *levels];
        let with_cells = (0..*levels).filter(|level| cells.iter().any(|cell| cell.level == *level)).count();
        if with_cells < 2 {
            return Self { pairs };
        }
        let seats = || part.classes.iter().filter_map(|class| class.seats[role].as_ref());
        // The cell of every other level that holds all of a cell, if one does.
        let mut within = vec![vec![Within::Unseen; *levels]; cells.len()];
        let mut by_level = vec![None; *levels];
        for seat in seats() {
            by_level.fill(None);
            for &cell in &seat.cells {
                by_level[cells[cell].level] = Some(cell);
            }
            for &cell in &seat.cells {
                for (within, other) in within[cell].iter_mut().zip(&by_level) {
                    *within = match (*within, *other) {
                        (Within::Unseen, Some(other)) => Within::One(other),
                        (Within::One(known), Some(other)) if known == other => Within::One(known),
                        _ => Within::Several,
                    };
                }
            }
        }
        for seat in seats() {
            for (at, &one) in seat.cells.iter().enumerate() {
                for &other in &seat.cells[at + 1..] {
                    let (a, b) = (cells[one].level, cells[other].level);
                    if within[one][b] != Within::One(other) && within[other][a] != Within::One(one) {
                        (pairs[a][b], pairs[b][a]) = (true, true);
                    }
                }
            }
        }
        Self { pairs }
    }

    /// Trees for all levels, if there are any; a role that shares its hosts with others has only the one before them.
    pub(super) fn trees(&self, alone: bool) -> Option<Sides> {
        let mut sides: Sides = vec![None; self.pairs.len()];
        for start in 0..sides.len() {
            if sides[start].is_some() {
                continue;
            }
            sides[start] = Some(Side::Before);
            let mut reached = vec![start];
            while let Some(level) = reached.pop() {
                for other in (0..sides.len()).filter(|other| self.pairs[level][*other]) {
                    if !alone || sides[other] == sides[level] {
                        return None;
                    }
                    if sides[other].is_none() {
                        sides[other] = sides[level].map(Side::opposite);
                        reached.push(other);
                    }
                }
            }
        }
        Some(sides)
    }

    /// Trees for some levels: as many as fit, those from `first` on before the others.
    pub(super) fn some_trees(&self, alone: bool, first: usize) -> Sides {
        let count = self.pairs.len();
        let mut sides: Sides = vec![None; count];
        for level in (0..count).map(|at| (at + first) % count) {
            let fits = |side: Side| (0..count).all(|other| sides[other] != Some(side) || !self.pairs[level][other]);
            sides[level] = if fits(Side::Before) {
                Some(Side::Before)
            } else {
                (alone && fits(Side::Behind)).then_some(Side::Behind)
            };
        }
        sides
    }
}

impl Side {
    fn opposite(self) -> Self {
        match self {
            Self::Before => Self::Behind,
            Self::Behind => Self::Before,
        }
    }
}
