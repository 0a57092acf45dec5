//! The ranks above and below.

use talpf::{Context, Rank};

use super::Problem;
use crate::Error;

/// The neighbours of one rank.
pub(crate) struct Neighbours {
    pub(crate) above: Option<Neighbour>,
    pub(crate) below: Option<Neighbour>,
}

/// A neighbour, and the rows that it shares with this rank; rows are those of the matrices with
/// their halos, here and there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) rank: Rank,
    pub(crate) edge: usize,
    pub(crate) halo: usize,
    pub(crate) its_edge: usize,
    pub(crate) its_halo: usize,
}

impl Neighbours {
    pub(crate) fn new(ctx: &Context, problem: &Problem) -> Result<Self, Error> {
        let (here, ranks) = (ctx.rank().0 as usize, ctx.ranks() as usize);
        let rows_of = |rank| problem.band(rank, ranks).len();
        let rows = rows_of(here);
        let above = |above: usize| {
            let its_rows = rows_of(above);
            let rank = ctx.peer(above as u32)?;
            let (its_edge, its_halo) = (its_rows, its_rows + 1);
            Ok::<_, Error>(Neighbour { rank, edge: 1, halo: 0, its_edge, its_halo })
        };
        let below = |below: usize| {
            let rank = ctx.peer(below as u32)?;
            Ok::<_, Error>(Neighbour { rank, edge: rows, halo: rows + 1, its_edge: 1, its_halo: 0 })
        };
        Ok(Self {
            above: here.checked_sub(1).map(above).transpose()?,
            below: Some(here + 1).filter(|&rank| rank < ranks).map(below).transpose()?,
        })
    }

    /// Both of them, the one above first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Neighbour> + Clone {
        self.above.iter().chain(&self.below)
    }
}
