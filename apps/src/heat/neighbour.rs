//! Ranks above and below a rank.

use super::Problem;
use crate::run::RankContext;

/// Neighbours of one rank.
pub(crate) struct Neighbours {
    pub(crate) above: Option<Neighbour>,
    pub(crate) below: Option<Neighbour>,
}

/// Neighbour, and the rows that it shares with this rank, as rows of the matrices with halos on
/// both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) rank: usize,
    pub(crate) edge: usize,
    pub(crate) halo: usize,
    pub(crate) its_halo: usize,
}

impl Neighbours {
    pub(crate) fn new(ctx: &RankContext, problem: &Problem) -> Self {
        let (here, ranks) = (ctx.rank(), ctx.size());
        let rows_of = |rank| problem.band(rank, ranks).len();
        let rows = rows_of(here);
        let above = |rank: usize| Neighbour { rank, edge: 1, halo: 0, its_halo: rows_of(rank) + 1 };
        let below = |rank| Neighbour { rank, edge: rows, halo: rows + 1, its_halo: 0 };
        Self {
            above: here.checked_sub(1).map(above),
            below: Some(here + 1).filter(|&rank| rank < ranks).map(below),
        }
    }

    /// Iterates over the neighbours, the one above first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Neighbour> + Clone {
        self.above.iter().chain(&self.below)
    }
}
