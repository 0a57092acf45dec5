//! Exchange of the sums of all ranks.
//!
//! Each rank sends its sums to every other one, in one round: the fewest rounds, which are what
//! variants differ in, for P - 1 puts of each of P ranks. A rank that is ahead waits for the sums of
//! all others, and the sums of a rank are overwritten here once the centres have moved: their region
//! is in a window, an inbox or a receive only then.

use talpf::{MemorySlot, Rank};
use talpf_runtime::{Array, Ix1, Region};

use crate::Error;
use crate::run::{Exchange, Piece, RankContext, Step};

/// Sums of all ranks at one of them.
pub(super) struct SumExchange {
    rank: usize,
    ranks: usize,
    /// Sums of each rank, a tile for each.
    sums: Array<f64>,
    /// Slot of the sums, if the variant is one-sided.
    slot: Option<MemorySlot<f64>>,
    exchange: Exchange,
}

impl SumExchange {
    /// Prepares the exchange of `len` numbers of each rank. Collective.
    pub(super) async fn new(ctx: &RankContext, len: usize) -> Result<Self, Error> {
        let (rank, ranks) = (ctx.rank(), ctx.size());
        let sums = Array::new(ctx.group(), vec![0.0; ranks * len], len)?;
        let slot = ctx.register(&sums).await?;
        Ok(Self { rank, ranks, sums, slot, exchange: Exchange::new(ctx) })
    }

    /// Returns the sums of this rank.
    pub(super) fn own(&self) -> Region<'_, f64> {
        self.sums.tile(self.rank)
    }

    /// Returns the sums of all ranks, one rank after the other.
    pub(super) fn all(&self) -> Region<'_, f64> {
        self.sums.all()
    }

    /// Declares the exchange of a step, and the end of its round, if it has one. A rank without
    /// others declares nothing.
    pub(super) fn declare<'a>(&'a self, step: Step<'_, 'a>) -> Result<(), Error> {
        if self.ranks == 1 {
            return Ok(());
        }
        // Beginning after this rank, so that not all put to the same rank first.
        let others = (1..self.ranks).map(|distance| (self.rank + distance) % self.ranks);
        let sent = others.clone().map(|peer| self.piece(self.rank, peer));
        self.exchange.declare(step, sent, others.map(|peer| self.piece(peer, peer)))
    }

    /// Returns the sums of a rank, which are in the same place at the rank at the other end.
    fn piece(&self, rank: usize, peer: usize) -> Piece<'_, '_, Ix1> {
        let region = self.sums.tile(rank);
        let remote = self.slot.as_ref().map(|slot| slot.at(Rank(peer as u32), rank * region.len()));
        Piece { region, peer, tag: rank, remote }
    }
}
