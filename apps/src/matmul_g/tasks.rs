//! Tasks with gets or messages of tiles: one program for all variants with ranks.
//!
//! The tiles of a round arrive in one of two pairs of buffers, so that those of the next round are
//! in flight while this one computes. A rank exposes its tiles of `A` and `B` in every round.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayView2, ArrayViewMut2};
use talpf::{MemorySlot, Rank};
use talpf_runtime::{Array, Region, Scope};

use crate::matmul::kernel::{self, Factor, Term};
use crate::matmul::{Problem, Solution, panels};
use crate::partition::{pieces, share};
use crate::run::{
    Exchange, LOOKAHEAD, Machine, Observer, Part, Piece, RankContext, RankSpeed, RunInput, Step,
    Steps, Variant, declare_count, solve_on_ranks, spawn_on,
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
    let tiles = Tiles::new(&ctx, &input).await?;
    let steps = input.problem.iterations();

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);
    let repeated = Steps { count: steps, unroll: 2, parts: tiles.side };
    ctx.spawn_steps(input.machine, repeated, &mut lookahead, |step, number, round| {
        tiles.declare_exchange(step, number, round)?;
        tiles.declare_products(step, number, round)?;
        if round + 1 == tiles.side {
            declare_count(&ctx, &input.observer, step, &tiles.last(number))?;
        }
        Ok(())
    })
    .await?;
    ctx.group().wait().await?;
    let ended = ctx.now();

    Ok(Part { result: tiles.collect(&ctx, steps).await?, started, ended })
}

/// Tiles of rank `(row, col)` in a square of `side x side`: those of `B` packed, all others stored
/// row by row.
struct Tiles {
    problem: Problem,
    side: usize,
    row: usize,
    col: usize,
    /// Tiles of the left factor of even multiplications, which is the product of odd ones, and of
    /// the other.
    factors: [Array<f64>; 2],
    b: Array<f64>,
    fetched_a: [Array<f64>; 2],
    fetched_b: [Array<f64>; 2],
    /// Slots of both factors and of `b`, if the variant has gets.
    slots: Vec<MemorySlot<f64>>,
    exchange: Exchange,
    speed: RankSpeed,
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
        let factors =
            [tile(initial(Factor::A).into_cells())?, tile(vec![0.0; rows.len() * cols.len()])?];
        let b = packed(panels::pack(initial(Factor::B).view()))?;
        let largest = size.div_ceil(side);
        let fetched_a = || tile(vec![0.0; largest * largest]);
        let fetched_b = || packed(vec![0.0; panels::len(largest, largest)]);
        let fetched_a = [fetched_a()?, fetched_a()?];
        let fetched_b = [fetched_b()?, fetched_b()?];
        let mut slots = Vec::new();
        for tiles in factors.iter().chain([&b]) {
            slots.extend(ctx.register(tiles).await?);
        }
        if let RankContext::OneSided(ctx, _) = ctx {
            for buffer in fetched_a.iter().chain(&fetched_b) {
                ctx.register_local(buffer)?;
            }
        }
        let (problem, speed) = (input.problem, RankSpeed::of(ctx, input));
        let exchange = Exchange::new(ctx);
        Ok(Self {
            problem,
            side,
            row,
            col,
            factors,
            b,
            fetched_a,
            fetched_b,
            slots,
            exchange,
            speed,
        })
    }

    /// Returns the number of rows or columns of the tiles with this index.
    fn extent(&self, number: usize) -> usize {
        share(self.problem.size(), number, self.side).len()
    }

    /// Returns the column of `A` and row of `B` whose tiles this rank needs in a round.
    fn depth(&self, round: usize) -> usize {
        (self.row + self.col + round) % self.side
    }

    /// Declares the exchange after which this rank has both tiles of a round, and the sync of the
    /// round, if it has one.
    fn declare_exchange<'a>(
        &'a self,
        step: Step<'_, 'a>,
        number: usize,
        round: usize,
    ) -> Result<(), Error> {
        let factor = &self.factors[number % 2];
        let depth = self.depth(round);
        let rank = |row: usize, col: usize| row * self.side + col;
        let a_len = self.extent(self.row) * self.extent(depth);
        let b_len = panels::len(self.extent(depth), self.extent(self.col));
        let fetched_a = self.fetched_a[round % 2].region(..a_len);
        let fetched_b = self.fetched_b[round % 2].region(..b_len);
        // Tiles of the factor of two multiplications may overtake each other, those of three
        // cannot; those of `b` never change.
        let tags = 4 * round + 2 * (number % 2);
        // Rank whose depth in this round is the position of the own tile.
        let back =
            |from: usize, by: usize| (from + 2 * self.side - by - round % self.side) % self.side;
        let to_a = rank(self.row, back(self.col, self.row));
        let to_b = rank(back(self.row, self.col), self.col);
        let (from_a, from_b) = (rank(self.row, depth), rank(depth, self.col));
        let sent = [(factor.all(), to_a), (self.b.all(), to_b)];
        let sent = iter::zip(sent, tags..).map(|((region, peer), tag)| Piece {
            region,
            peer,
            tag,
            remote: None,
        });
        let [a, b] = [number % 2, 2].map(|slot| self.slots.get(slot));
        let received = [(fetched_a, from_a, a), (fetched_b, from_b, b)];
        let received = iter::zip(received, tags..).map(|((region, peer, slot), tag)| {
            let remote = slot.map(|slot| slot.at(Rank(peer as u32), 0));
            Piece { region, peer, tag, remote }
        });
        self.exchange.declare(step, sent, received)
    }

    /// Declares a task for each block of rows of the tile.
    fn declare_products<'a>(
        &'a self,
        step: Step<'_, 'a>,
        number: usize,
        round: usize,
    ) -> Result<(), Error> {
        let product = &self.factors[(number + 1) % 2];
        let term = Term { is_first: round == 0, is_last: round + 1 == self.side };
        let (a, b) = (&self.fetched_a[round % 2], &self.fetched_b[round % 2]);
        let (depth, cols) = (self.extent(self.depth(round)), self.extent(self.col));
        for rows in pieces(0..self.extent(self.row), self.problem.block()) {
            let core = self.speed.core();
            let cells = |cols: usize| -> Range<usize> { rows.start * cols..rows.end * cols };
            let task = step
                .task("multiply")
                .input(&a.region(cells(depth)))
                .input(&b.region(..panels::len(depth, cols)))
                .inout(&product.region(cells(cols)));
            spawn_on!(core, task, |a, b, c| {
                let height = rows.len();
                let shaped = "as many cells as rows and columns say";
                let a = ArrayView2::from_shape((height, depth), a).expect(shaped);
                let c = ArrayViewMut2::from_shape((height, cols), c).expect(shaped);
                kernel::multiply(a, b, c, term);
            })?;
        }
        Ok(())
    }

    /// Returns the region of the task that is declared last in a step.
    fn last(&self, number: usize) -> Region<'_, f64> {
        let rows = pieces(0..self.extent(self.row), self.problem.block()).last();
        let rows = rows.unwrap_or_default();
        let cols = self.extent(self.col);
        self.factors[(number + 1) % 2].region(rows.start * cols..rows.end * cols)
    }

    /// Converts the tiles into that of the product of multiplication `steps - 1`.
    async fn collect(self, ctx: &RankContext, steps: usize) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.factors[steps % 2].all());
        Ok(task.run(|cells| cells.to_vec())?.await?)
    }
}
