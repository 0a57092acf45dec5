//! The exchange of the outermost rows between neighbours.

use talpf::{Arrivals, Context, SyncHandle};

use super::band::Band;
use crate::Error;
use crate::heat::Neighbours;
use crate::jacobi::Problem;
use crate::run::{Protocol, Transfer};

/// What one rank exchanges in every step.
pub(super) struct Exchange {
    protocol: Protocol,
    neighbours: Neighbours,
}

impl Exchange {
    pub(super) fn new(ctx: &Context, problem: &Problem, protocol: Protocol) -> Result<Self, Error> {
        Ok(Self { protocol, neighbours: Neighbours::new(ctx, problem)? })
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
