//! The exchange of the outermost rows between neighbours.

use talpf::{Arrivals, Context, Rank, SyncHandle, SyncMode};

use super::band::Band;
use crate::Error;
use crate::jacobi::Problem;

/// How halos travel and rounds end: all that tells one `talpf-*` variant from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    transfer: Transfer,
    /// The number of arrivals under `Msg` is filled in by each rank.
    mode: SyncMode,
}

/// Who moves a halo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    /// Its owner's neighbour, into a window on it.
    Put,
    /// Its owner, from rows that the neighbour exposes.
    Get,
}

impl Protocol {
    /// Puts; counts exchanged in every round, and a barrier.
    pub const DEFAULT: Self = Self::put(SyncMode::DEFAULT);
    /// Puts; counts exchanged once.
    pub const CACHED: Self = Self::put(SyncMode::CACHED);
    /// Puts; counts exchanged once, and a barrier in every round.
    pub const CACHED_BARRIER: Self = Self::put(SyncMode::CACHED.with_barrier());
    /// Puts; counts exchanged once, and acknowledgements in every round.
    pub const CACHED_ACK: Self = Self::put(SyncMode::CACHED.with_ack());
    /// Puts; every rank knows how many arrive.
    pub const MSG: Self = Self::put(SyncMode::msg(0));
    /// Gets; counts exchanged in every round, and a barrier.
    pub const GET: Self = Self { transfer: Transfer::Get, mode: SyncMode::DEFAULT };

    const fn put(mode: SyncMode) -> Self {
        Self { transfer: Transfer::Put, mode }
    }
}

/// What one rank exchanges in every step.
pub(super) struct Exchange {
    protocol: Protocol,
    neighbours: Vec<Neighbour>,
}

/// A neighbour, and the rows that it shares with this rank; rows are those of the matrices with
/// their halos, here and there.
struct Neighbour {
    rank: Rank,
    edge: usize,
    halo: usize,
    its_edge: usize,
    its_halo: usize,
}

impl Exchange {
    pub(super) fn new(ctx: &Context, problem: &Problem, protocol: Protocol) -> Result<Self, Error> {
        let (here, ranks) = (ctx.rank().0 as usize, ctx.ranks() as usize);
        let rows_of = |rank| problem.band(rank, ranks).len();
        let rows = rows_of(here);
        let mut neighbours = Vec::with_capacity(2);
        if let Some(above) = here.checked_sub(1) {
            let its_rows = rows_of(above);
            neighbours.push(Neighbour {
                rank: ctx.peer(above as u32)?,
                edge: 1,
                halo: 0,
                its_edge: its_rows,
                its_halo: its_rows + 1,
            });
        }
        if here + 1 < ranks {
            neighbours.push(Neighbour {
                rank: ctx.peer(here as u32 + 1)?,
                edge: rows,
                halo: rows + 1,
                its_edge: 1,
                its_halo: 0,
            });
        }
        Ok(Self { protocol, neighbours })
    }

    /// Spawns the exchange of the newest matrix of `band`, a piece for each strip, and the sync
    /// that ends its round.
    pub(super) fn spawn(&self, ctx: &Context, band: &Band) -> Result<SyncHandle, Error> {
        let (field, transfer) = (band.newest(), self.protocol.transfer);
        let matrix = &field.matrix;
        let pieces = self
            .neighbours
            .iter()
            .flat_map(|neighbour| band.strip_cols().map(move |cols| (neighbour, cols)));
        for (with, cols) in pieces.clone() {
            let at = |row: usize| field.slot.at(with.rank, row * matrix.cols() + cols.start);
            match transfer {
                Transfer::Put => {
                    ctx.put(&matrix.row(with.edge, cols.clone()), at(with.its_halo))?
                }
                Transfer::Get => {
                    ctx.get(at(with.its_edge), &matrix.row(with.halo, cols.clone()))?
                }
            }
        }

        let mut mode = self.protocol.mode;
        if let Arrivals::Msg(count) = &mut mode.arrivals {
            *count = pieces.clone().count() as u32;
        }
        let sync = pieces.fold(ctx.sync(mode), |sync, (with, cols)| match transfer {
            Transfer::Put => sync.window(&matrix.row(with.halo, cols)),
            Transfer::Get => sync.expose(&matrix.row(with.edge, cols)),
        });
        Ok(sync.spawn()?)
    }
}
