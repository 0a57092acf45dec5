//! Tasks with gets or messages of tiles: one program for all variants with ranks.
//!
//! The tiles of a round arrive in one of two pairs of buffers, so that those of the next round are
//! in flight while this one computes. A rank exposes its tiles of `A` and `B` in every round.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ndarray::{ArrayView2, ArrayViewMut2};
use talpf::{Context, MemorySlot, Rank, SyncHandle, SyncMode};
use talpf_runtime::{Array, Token};

use crate::matmul::kernel::{self, Factor, Term};
use crate::matmul::{Problem, Solution, panels};
use crate::partition::{pieces, share};
use crate::run::{
    Machine, Messages, Observer, Pace, Part, RankContext, RunInput, Steps, Variant, solve_on_ranks,
};
use crate::{Error, Matrix};

/// Multiplies the matrices of `problem` with tasks on a square number of ranks.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    solve_on_ranks(problem, machine, variant, observer, rank, |parts| {
        let (size, side) = (problem.size(), machine.ranks().isqrt());
        let mut result = Matrix::zeros(size, size);
        for (rank, tile) in parts.into_iter().enumerate() {
            let (rows, cols) = (share(size, rank / side, side), share(size, rank % side, side));
            let tile = Matrix::from_cells(tile, cols.len());
            result.block_mut(rows, cols).assign(&tile.view());
        }
        result
    })
}

/// Runs the program of a rank.
async fn rank(ctx: RankContext, input: Arc<RunInput<Problem>>) -> Result<Part, Error> {
    let mut tiles = Tiles::new(&ctx, &input).await?;
    let mut steps = Steps::new(&ctx, &input.observer)?;

    ctx.barrier().await?;
    let started = Instant::now();
    for iteration in 0..input.problem.iterations() {
        let step = steps.begin().await?;
        let mut syncs = Vec::new();
        for round in 0..tiles.side {
            syncs.extend(tiles.spawn_exchange(iteration, round)?);
            tiles.spawn_products(&ctx, round, &step)?;
        }
        steps.end(&ctx, syncs)?;
        tiles.swap();
    }
    steps.finish(&ctx).await?;
    let ended = Instant::now();

    Ok(Part { result: tiles.collect(&ctx).await?, started, ended })
}

/// Tiles of rank `(row, col)` in a square of `side x side`: those of `B` packed, all others stored
/// row by row.
struct Tiles {
    problem: Problem,
    side: usize,
    row: usize,
    col: usize,
    a: Array<f64>,
    b: Array<f64>,
    c: Array<f64>,
    fetched_a: [Array<f64>; 2],
    fetched_b: [Array<f64>; 2],
    means: Means,
    pace: Pace,
}

/// Means by which tiles get to the ranks that need them.
enum Means {
    /// Gets from the slots of `a`, `b` and `c`.
    Gets {
        ctx: Context,
        mode: SyncMode,
        slots: [MemorySlot<f64>; 3],
    },
    Messages(Messages),
}

impl Tiles {
    async fn new(ctx: &RankContext, input: &RunInput<Problem>) -> Result<Self, Error> {
        let (size, side) = (input.problem.size(), input.machine.ranks().isqrt());
        let (row, col) = (ctx.rank() / side, ctx.rank() % side);
        let (rows, cols) = (share(size, row, side), share(size, col, side));
        let tile =
            |cells: Vec<f64>| Array::new(ctx.group(), cells, input.problem.block() * cols.len());
        let packed = |cells: Vec<f64>| {
            let tile = cells.len();
            Array::new(ctx.group(), cells, tile)
        };
        let initial = |factor| kernel::initial(factor, rows.clone(), cols.clone());
        let a = tile(initial(Factor::A).into_cells())?;
        let b = packed(panels::pack(initial(Factor::B).view()))?;
        let c = tile(vec![0.0; rows.len() * cols.len()])?;
        let largest = size.div_ceil(side);
        let fetched_a = || tile(vec![0.0; largest * largest]);
        let fetched_b = || packed(vec![0.0; panels::len(largest, largest)]);
        let fetched_a = [fetched_a()?, fetched_a()?];
        let fetched_b = [fetched_b()?, fetched_b()?];
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let (a, b) = (ctx.register_global(&a).await?, ctx.register_global(&b).await?);
                let slots = [a, b, ctx.register_global(&c).await?];
                for buffer in fetched_a.iter().chain(&fetched_b) {
                    ctx.register_local(buffer)?;
                }
                Means::Gets { ctx: ctx.clone(), mode: protocol.mode, slots }
            }
        };
        let (problem, pace) = (input.problem, Pace::of(ctx, input.machine));
        Ok(Self { problem, side, row, col, a, b, c, fetched_a, fetched_b, means, pace })
    }

    /// Makes the product the left factor of the next multiplication.
    fn swap(&mut self) {
        mem::swap(&mut self.a, &mut self.c);
        if let Means::Gets { slots, .. } = &mut self.means {
            slots.swap(0, 2);
        }
    }

    /// Returns the number of rows or columns of the tiles with this index.
    fn extent(&self, number: usize) -> usize {
        share(self.problem.size(), number, self.side).len()
    }

    /// Returns the column of `A` and row of `B` whose tiles this rank needs in a round.
    fn depth(&self, round: usize) -> usize {
        (self.row + self.col + round) % self.side
    }

    /// Spawns the exchange after which this rank has both tiles of a round, and the sync of the
    /// round, if it has one.
    fn spawn_exchange(&self, iteration: usize, round: usize) -> Result<Option<SyncHandle>, Error> {
        let depth = self.depth(round);
        let rank = |row: usize, col: usize| row * self.side + col;
        let a_len = self.extent(self.row) * self.extent(depth);
        let b_len = panels::len(self.extent(depth), self.extent(self.col));
        let fetched_a = self.fetched_a[round % 2].region(..a_len);
        let fetched_b = self.fetched_b[round % 2].region(..b_len);
        match &self.means {
            Means::Gets { ctx, mode, slots: [a, b, _] } => {
                let owner = |row: usize, col: usize| Rank(rank(row, col) as u32);
                ctx.get(a.at(owner(self.row, depth), 0), &fetched_a)?;
                ctx.get(b.at(owner(depth, self.col), 0), &fetched_b)?;
                let sync = ctx.sync(*mode);
                Ok(Some(sync.expose(&self.a.all()).expose(&self.b.all()).spawn()?))
            }
            Means::Messages(messages) => {
                // Tiles of `a` of two multiplications may overtake each other, those of three
                // cannot;
                // those of `b` never change.
                let tags = 4 * round + 2 * (iteration % 2);
                // Rank whose depth in this round is the position of the own tile.
                let back = |from: usize, by: usize| {
                    (from + 2 * self.side - by - round % self.side) % self.side
                };
                let to_a = rank(self.row, back(self.col, self.row));
                let to_b = rank(back(self.row, self.col), self.col);
                messages.declare_send(messages.group(), &self.a.all(), to_a, tags)?;
                messages.declare_send(messages.group(), &self.b.all(), to_b, tags + 1)?;
                messages.declare_receive(
                    messages.group(),
                    &fetched_a,
                    rank(self.row, depth),
                    tags,
                )?;
                messages.declare_receive(
                    messages.group(),
                    &fetched_b,
                    rank(depth, self.col),
                    tags + 1,
                )?;
                Ok(None)
            }
        }
    }

    /// Spawns a task for each block of rows of the tile.
    fn spawn_products(&self, ctx: &RankContext, round: usize, step: &Token) -> Result<(), Error> {
        let term = Term { is_first: round == 0, is_last: round + 1 == self.side };
        let (a, b) = (&self.fetched_a[round % 2], &self.fetched_b[round % 2]);
        let (depth, cols) = (self.extent(self.depth(round)), self.extent(self.col));
        for rows in pieces(0..self.extent(self.row), self.problem.block()) {
            let pace = self.pace.clone();
            let cells = |cols: usize| -> Range<usize> { rows.start * cols..rows.end * cols };
            ctx.group()
                .task("multiply")
                .input(&a.region(cells(depth)))
                .input(&b.region(..panels::len(depth, cols)))
                .inout(&self.c.region(cells(cols)))
                .input(&step.region())
                .spawn(move |a, b, c, step| {
                    pace.compute((a, b, c, step), |(a, b, c, _)| {
                        let height = rows.len();
                        let shaped = "as many cells as rows and columns say";
                        let a = ArrayView2::from_shape((height, depth), a).expect(shaped);
                        let c = ArrayViewMut2::from_shape((height, cols), c).expect(shaped);
                        kernel::multiply(a, b, c, term);
                    });
                })?;
        }
        Ok(())
    }

    /// Converts the tiles into that of the last product.
    async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.a.all());
        Ok(task.run(|cells| cells.to_vec())?.await?)
    }
}
