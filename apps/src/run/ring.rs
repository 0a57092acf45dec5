//! Data that goes round all ranks.
//!
//! Every rank owns a number of pieces. In hop 0 it has its own, in hop `h` those of the rank `h`
//! places before it; after as many hops as there are ranks, less one, each has seen all. What has
//! come is kept in two buffers in turn: while one is passed on, the next comes into the other. That
//! nothing comes before the pieces there are read and passed on is the doing of the windows and of
//! the receives; two buffers and no more are needed because a rank cannot empty the only one it has
//! before the next rank has emptied its own, all the way round.

use talpf::{Context, Lane, MemorySlot, Rank, SyncHandle};
use talpf_runtime::{Ix2, Matrix, Region, Tiling, Token};

use super::{Messages, Place, Protocol, RankContext, Round, Step, Transfer};
use crate::{Error, matrix};

/// The pieces of one rank, and the buffers for those of the others.
pub(crate) struct Ring {
    rank: usize,
    ranks: usize,
    shape: Shape,
    /// The own pieces, and those of visitors: none with one rank, one with two.
    buffers: Vec<Matrix<f64>>,
    means: Means,
}

enum Means {
    /// With the slots of the buffers.
    OneSided { ctx: Context, protocol: Protocol, slots: Vec<MemorySlot<f64>>, order: Token },
    /// Tagged with the place of the piece and the hop.
    Messages(Messages),
}

/// How the pieces of a rank lie in a matrix. Every rank has the same number of places for them,
/// and passes on the empty ones too, so that all rounds are alike.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Places for pieces.
    pub(crate) pieces: usize,
    /// Rows of a piece.
    pub(crate) rows: usize,
    /// Columns of all pieces.
    pub(crate) cols: usize,
    /// Columns of a tile; it has the rows of a piece.
    pub(crate) tile_cols: usize,
}

impl Ring {
    /// Joins the ring with the own pieces of this rank, row by row; places that are left are
    /// filled with zeros. Collective.
    pub(crate) async fn new(
        ctx: &RankContext,
        shape: Shape,
        mut own: Vec<f64>,
    ) -> Result<Self, Error> {
        let (rank, ranks) = (ctx.rank(), ctx.ranks());
        let len = shape.pieces * shape.rows * shape.cols;
        own.resize(len, 0.0);
        let tiling = Tiling::new(shape.rows, shape.tile_cols);
        let mut buffers = vec![Matrix::new(ctx.group(), own, shape.cols, tiling)?];
        for _ in 1..ranks.min(3) {
            // Their pages exist before the first hop.
            let visitors = matrix::Matrix::zeros(shape.pieces * shape.rows, shape.cols);
            let visitors = visitors.into_cells();
            buffers.push(Matrix::new(ctx.group(), visitors, shape.cols, tiling)?);
        }
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let mut slots = Vec::new();
                for buffer in &buffers {
                    slots.push(ctx.register_global(buffer).await?);
                }
                let order = Token::new(ctx.group())?;
                Means::OneSided { ctx: ctx.clone(), protocol: *protocol, slots, order }
            }
        };
        Ok(Self { rank, ranks, shape, buffers, means })
    }

    /// The own pieces.
    pub(crate) fn own(&self) -> &Matrix<f64> {
        &self.buffers[0]
    }

    /// Whose pieces this rank has in a hop, and where they are.
    pub(crate) fn at(&self, hop: usize) -> (usize, &Matrix<f64>) {
        ((self.rank + self.ranks - hop) % self.ranks, &self.buffers[self.buffer(hop)])
    }

    /// Declares the exchange after which this rank has the pieces of the next hop, and the end of
    /// its round, if rounds end; where that is spawned, hands out what to wait for.
    pub(crate) fn pass_on<'a>(
        &'a self,
        hop: usize,
        step: Step<'_, 'a>,
    ) -> Result<Option<SyncHandle>, Error> {
        let (here, there) = (self.buffer(hop), self.buffer(hop + 1));
        let next = (self.rank + 1) % self.ranks;
        let previous = (self.rank + self.ranks - 1) % self.ranks;
        match &self.means {
            Means::Messages(messages) => {
                for piece in 0..self.shape.pieces {
                    // The same hop of two steps cannot overlap: it reads and writes the same place.
                    let tag = hop * self.shape.pieces + piece;
                    messages.declare_send(step, &self.piece(here, piece), next, tag)?;
                    messages.declare_receive(step, &self.piece(there, piece), previous, tag)?;
                }
                Ok(None)
            }
            Means::OneSided { ctx, protocol, slots, order } => {
                // Buffers are the same ones on all ranks: what is passed on goes to where the next
                // rank keeps its next hop.
                let (slot, rank) = match protocol.transfer {
                    Transfer::Put => (&slots[there], Rank(next as u32)),
                    Transfer::Get => (&slots[here], Rank(previous as u32)),
                };
                let place = |piece| {
                    let index = piece * self.shape.rows * self.shape.cols;
                    Place { slot: slot.clone(), rank, index }
                };
                let pieces = 0..self.shape.pieces;
                let round = Round {
                    ctx,
                    protocol: *protocol,
                    lane: Lane::default(),
                    order,
                    given: pieces.clone().map(|piece| self.piece(here, piece)).collect(),
                    taken: pieces.clone().map(|piece| self.piece(there, piece)).collect(),
                    places: pieces.map(place).collect(),
                };
                round.declare(step)
            }
        }
    }

    /// The buffer of a hop.
    fn buffer(&self, hop: usize) -> usize {
        match hop.checked_sub(1) {
            None => 0,
            Some(turn) => 1 + turn % (self.buffers.len() - 1),
        }
    }

    fn piece(&self, buffer: usize, piece: usize) -> Region<'_, f64, Ix2> {
        let first = piece * self.shape.rows;
        self.buffers[buffer].region(first..first + self.shape.rows, ..)
    }
}
