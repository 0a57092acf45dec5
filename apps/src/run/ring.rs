//! Data that goes round all ranks.
//!
//! Every rank owns a number of pieces. In hop 0 it has its own, in hop `h` those of the rank `h`
//! places before it; after as many hops as there are ranks, less one, each has seen all. What has
//! come is kept in two buffers in turn: while one is passed on, the next comes into the other. That
//! nothing comes before the pieces there are read and passed on is the doing of the windows; two
//! buffers and no more are needed because a rank cannot empty the only one it has before the next
//! rank has emptied its own, all the way round.

use talpf::{Context, MemorySlot, Rank, SyncHandle};
use talpf_runtime::{Matrix, Region, Tiling};

use super::{Protocol, Transfer};
use crate::Error;

/// The pieces of one rank, and the buffers for those of the others.
pub(crate) struct Ring {
    protocol: Protocol,
    rank: usize,
    next: Rank,
    previous: Rank,
    shape: Shape,
    own: Buffer,
    /// None with one rank, one with two.
    visitors: Vec<Buffer>,
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

struct Buffer {
    matrix: Matrix<f64>,
    slot: MemorySlot<f64>,
}

impl Buffer {
    /// `values` are all places, row by row.
    async fn new(ctx: &Context, shape: Shape, values: Vec<f64>) -> Result<Self, Error> {
        let tiling = Tiling { rows: shape.rows, cols: shape.tile_cols, ..Tiling::default() };
        let matrix = Matrix::new(ctx.group(), values, shape.cols, tiling)?;
        let slot = ctx.register_global(&matrix).await?;
        Ok(Self { matrix, slot })
    }
}

impl Ring {
    /// Joins the ring with the own pieces of this rank, row by row; places that are left are
    /// filled with zeros.
    pub(crate) async fn new(
        ctx: &Context,
        protocol: Protocol,
        shape: Shape,
        mut own: Vec<f64>,
    ) -> Result<Self, Error> {
        let (rank, ranks) = (ctx.rank().0, ctx.ranks());
        let len = shape.pieces * shape.rows * shape.cols;
        own.resize(len, 0.0);
        let mut visitors = Vec::new();
        for _ in 1..ranks.min(3) {
            visitors.push(Buffer::new(ctx, shape, vec![0.0; len]).await?);
        }
        Ok(Self {
            protocol,
            rank: rank as usize,
            next: ctx.peer((rank + 1) % ranks)?,
            previous: ctx.peer((rank + ranks - 1) % ranks)?,
            shape,
            own: Buffer::new(ctx, shape, own).await?,
            visitors,
        })
    }

    /// The own pieces.
    pub(crate) fn own(&self) -> &Matrix<f64> {
        &self.own.matrix
    }

    /// Whose pieces this rank has in a hop, and where they are.
    pub(crate) fn at(&self, ctx: &Context, hop: usize) -> (usize, &Matrix<f64>) {
        let ranks = ctx.ranks() as usize;
        ((self.rank + ranks - hop) % ranks, &self.buffer(hop).matrix)
    }

    /// Spawns the exchange after which this rank has the pieces of the next hop, and the sync that
    /// ends its round.
    pub(crate) fn pass_on(&self, ctx: &Context, hop: usize) -> Result<SyncHandle, Error> {
        let (here, there) = (self.buffer(hop), self.buffer(hop + 1));
        for piece in 0..self.shape.pieces {
            let at = piece * self.shape.rows * self.shape.cols;
            match self.protocol.transfer {
                // Buffers are the same ones on all ranks: what is passed on goes to where the
                // next rank keeps its next hop.
                Transfer::Put => {
                    ctx.put(&self.piece(here, piece), there.slot.at(self.next, at))?;
                }
                Transfer::Get => {
                    ctx.get(here.slot.at(self.previous, at), &self.piece(there, piece))?;
                }
            }
        }
        let mut sync = ctx.sync(self.protocol.mode);
        for piece in 0..self.shape.pieces {
            sync = match self.protocol.transfer {
                Transfer::Put => sync.window(&self.piece(there, piece)),
                Transfer::Get => sync.expose(&self.piece(here, piece)),
            };
        }
        Ok(sync.spawn()?)
    }

    fn buffer(&self, hop: usize) -> &Buffer {
        match hop.checked_sub(1) {
            None => &self.own,
            Some(turn) => &self.visitors[turn % self.visitors.len()],
        }
    }

    fn piece<'a>(&self, buffer: &'a Buffer, piece: usize) -> Region<'a, f64, talpf_runtime::Ix2> {
        let first = piece * self.shape.rows;
        buffer.matrix.region(first..first + self.shape.rows, ..)
    }
}
