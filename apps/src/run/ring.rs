//! Ring of ranks that pass on data.
//!
//! Every rank owns a number of pieces. In hop 0 it has its own, in hop `h` those of the rank `h`
//! positions before it; after as many hops as there are ranks, less one, each has had all pieces.
//! Two buffers alternate for the pieces of other ranks: while one is sent, the other receives.
//! Windows and receives ensure that a buffer is not overwritten before it was read and sent. One
//! buffer would not be enough, because a rank could empty it only after the next rank has emptied
//! its own, all the way round the ring.

use std::ops::Range;

use talpf::{MemorySlot, Rank, RemoteRegion};
use talpf_runtime::{Ix2, Matrix, Region, Tiling};

use super::{Exchange, Machine, Piece, RankContext, Step};
use crate::{Error, matrix, memory};

/// Pieces of one rank, and buffers for the pieces of the others.
pub(crate) struct Ring {
    rank: usize,
    ranks: usize,
    shape: Shape,
    /// Own pieces, then buffers for those of other ranks: none with one rank, one with two.
    buffers: Vec<Matrix<f64>>,
    /// Slots of the buffers, if the variant is one-sided.
    slots: Vec<MemorySlot<f64>>,
    exchange: Exchange,
}

/// Shape of a rank's pieces in a matrix. Every rank has room for the same number of pieces, and
/// passes on empty ones too, so that all rounds are alike.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Number of pieces.
    pub(crate) pieces: usize,
    /// Number of rows of a piece.
    pub(crate) rows: usize,
    /// Number of columns of all pieces.
    pub(crate) cols: usize,
    /// Number of columns of a tile; a tile has the rows of a piece.
    pub(crate) tile_cols: usize,
}

impl Ring {
    /// Joins the ring with the own pieces of this rank, row by row; missing pieces are filled with
    /// zeros. Without execution all are missing. Collective.
    pub(crate) async fn new(
        ctx: &RankContext,
        machine: Machine,
        shape: Shape,
        mut own: Vec<f64>,
    ) -> Result<Self, Error> {
        let (rank, ranks) = (ctx.rank(), ctx.size());
        let len = shape.pieces * shape.rows * shape.cols;
        if machine.executes() {
            own.resize(len, 0.0);
        } else {
            own = memory::untouched(len);
        }
        let tiling = Tiling::new(shape.rows, shape.tile_cols);
        let mut buffers = vec![Matrix::new(ctx.group(), own, shape.cols, tiling)?];
        for _ in 1..ranks.min(3) {
            // The pages are touched before the first hop.
            let visitors = if machine.executes() {
                matrix::Matrix::zeros(shape.pieces * shape.rows, shape.cols).into_cells()
            } else {
                memory::untouched(len)
            };
            buffers.push(Matrix::new(ctx.group(), visitors, shape.cols, tiling)?);
        }
        let mut slots = Vec::new();
        for buffer in &buffers {
            slots.extend(ctx.register(buffer).await?);
        }
        Ok(Self { rank, ranks, shape, buffers, slots, exchange: Exchange::new(ctx) })
    }

    /// Returns the own pieces.
    pub(crate) fn own(&self) -> &Matrix<f64> {
        &self.buffers[0]
    }

    /// Returns the rank whose pieces this rank has in a hop, and their buffer.
    pub(crate) fn at(&self, hop: usize) -> (usize, &Matrix<f64>) {
        ((self.rank + self.ranks - hop) % self.ranks, &self.buffers[self.buffer(hop)])
    }

    /// Declares the exchange after which this rank has the pieces of the next hop, and the end of
    /// its round, if it has one.
    pub(crate) fn pass_on<'a>(&'a self, hop: usize, step: Step<'_, 'a>) -> Result<(), Error> {
        let (here, there) = (self.buffer(hop), self.buffer(hop + 1));
        let next = (self.rank + 1) % self.ranks;
        let previous = (self.rank + self.ranks - 1) % self.ranks;
        // All ranks have the same buffers: a piece goes to the buffer in which the next rank keeps
        // its next hop. Messages of the same hop in two steps cannot overlap: they use the same
        // regions.
        let pieces = |buffer: usize, peer: usize, remote: usize| {
            (0..self.shape.pieces).map(move |piece| Piece {
                region: self.piece(buffer, piece),
                peer,
                tag: hop * self.shape.pieces + piece,
                remote: self.remote(remote, peer, piece),
            })
        };
        self.exchange.declare(step, pieces(here, next, there), pieces(there, previous, here))
    }

    /// Returns the index of the buffer of a hop.
    fn buffer(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => 0,
            Some(received) => 1 + received % (self.buffers.len() - 1),
        }
    }

    fn piece(&self, buffer: usize, piece: usize) -> Region<'_, f64, Ix2> {
        self.buffers[buffer].region(self.rows_of(piece), ..)
    }

    /// Returns a piece in a buffer of another rank, if the variant is one-sided.
    fn remote(&self, buffer: usize, rank: usize, piece: usize) -> Option<RemoteRegion<'_, f64>> {
        let slot = self.slots.get(buffer)?;
        Some(slot.region(Rank(rank as u32), self.rows_of(piece), ..))
    }

    /// Returns the rows of a piece in a buffer.
    fn rows_of(&self, piece: usize) -> Range<usize> {
        let first = piece * self.shape.rows;
        first..first + self.shape.rows
    }
}
