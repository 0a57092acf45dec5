//! Tasks, and gets of tiles.
//!
//! The tiles of a round come into one of two pairs of buffers, so that those of the next round are
//! under way while this one computes. A rank exposes its tiles of `A` and `B` in every round.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ndarray::{ArrayView2, ArrayViewMut2};
use talpf::{Context, MemorySlot, SyncHandle, SyncMode};
use talpf_runtime::{Array, Token};

use crate::matmul::kernel::{self, Factor, Term};
use crate::matmul::{Problem, Solution};
use crate::run::{Machine, Observer, Pace, Part, Steps, on_ranks};
use crate::share::{pieces, share};
use crate::{Error, Matrix};

/// Multiplies the matrices of `problem` with tasks on a square number of ranks.
///
/// **Errors**: [`Error::Talpf`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    observer: &Observer,
) -> Result<Solution, Error> {
    let job = Arc::new(Job { problem: *problem, machine, observer: observer.clone() });
    let (parts, seconds) = on_ranks(machine, observer, |ctx| rank(ctx, Arc::clone(&job)))?;
    let (size, side) = (problem.size(), machine.ranks().isqrt());
    let mut result = Matrix::zeros(size, size);
    for (rank, tile) in parts.into_iter().enumerate() {
        let (rows, cols) = (share(size, rank / side, side), share(size, rank % side, side));
        let tile = Matrix::from_cells(tile, cols.len());
        result.block_mut(rows, cols).assign(&tile.view());
    }
    Ok(Solution { result, seconds, machine })
}

/// What is the same for all ranks.
struct Job {
    problem: Problem,
    machine: Machine,
    observer: Observer,
}

/// The program of a rank.
async fn rank(ctx: Context, job: Arc<Job>) -> Result<Part<Vec<f64>>, Error> {
    let mut tiles = Tiles::new(&ctx, &job).await?;
    let mut steps = Steps::new(&ctx, &job.observer)?;

    ctx.sync(SyncMode::DEFAULT).await?;
    let started = Instant::now();
    for _ in 0..job.problem.iterations() {
        let step = steps.begin().await?;
        let mut syncs = Vec::new();
        for round in 0..tiles.side {
            syncs.push(tiles.spawn_gets(&ctx, round)?);
            tiles.spawn_products(&ctx, round, &step)?;
        }
        steps.end(&ctx, syncs)?;
        mem::swap(&mut tiles.a, &mut tiles.c);
    }
    steps.finish().await?;
    let ended = Instant::now();

    Ok(Part { result: tiles.collect(&ctx).await?, started, ended })
}

/// The tiles of rank `(row, col)` in a square of `side x side`, each stored row by row.
struct Tiles {
    problem: Problem,
    side: usize,
    row: usize,
    col: usize,
    a: Tile,
    b: Tile,
    c: Tile,
    fetched_a: [Tile; 2],
    fetched_b: [Tile; 2],
    pace: Pace,
}

struct Tile {
    array: Array<f64>,
    slot: MemorySlot<f64>,
}

impl Tiles {
    async fn new(ctx: &Context, job: &Job) -> Result<Self, Error> {
        let (size, side) = (job.problem.size(), job.machine.ranks().isqrt());
        let (row, col) = (ctx.rank().0 as usize / side, ctx.rank().0 as usize % side);
        let (rows, cols) = (share(size, row, side), share(size, col, side));
        let tile = async |cells: Vec<f64>| {
            let array = Array::new(ctx.group(), cells, job.problem.block() * cols.len())?;
            let slot = ctx.register_global(&array).await?;
            Ok::<_, Error>(Tile { array, slot })
        };
        let largest = size.div_ceil(side);
        let buffer = || vec![0.0; largest * largest];
        Ok(Self {
            problem: job.problem,
            side,
            row,
            col,
            a: tile(kernel::initial(Factor::A, rows.clone(), cols.clone()).into_cells()).await?,
            b: tile(kernel::initial(Factor::B, rows.clone(), cols.clone()).into_cells()).await?,
            c: tile(vec![0.0; rows.len() * cols.len()]).await?,
            fetched_a: [tile(buffer()).await?, tile(buffer()).await?],
            fetched_b: [tile(buffer()).await?, tile(buffer()).await?],
            pace: Pace::of(ctx, job.machine),
        })
    }

    /// Rows or columns of tiles with this number.
    fn extent(&self, number: usize) -> usize {
        share(self.problem.size(), number, self.side).len()
    }

    /// The column of `A` and row of `B` whose tiles this rank needs in a round.
    fn depth(&self, round: usize) -> usize {
        (self.row + self.col + round) % self.side
    }

    /// Spawns the gets of both tiles of a round, and the sync that ends it.
    fn spawn_gets(&self, ctx: &Context, round: usize) -> Result<SyncHandle, Error> {
        let depth = self.depth(round);
        let (a, b) = (&self.fetched_a[round % 2], &self.fetched_b[round % 2]);
        let owner = |row: usize, col: usize| ctx.peer((row * self.side + col) as u32);
        let a_len = self.extent(self.row) * self.extent(depth);
        ctx.get(self.a.slot.at(owner(self.row, depth)?, 0), &a.array.region(..a_len))?;
        let b_len = self.extent(depth) * self.extent(self.col);
        ctx.get(self.b.slot.at(owner(depth, self.col)?, 0), &b.array.region(..b_len))?;
        let sync = ctx.sync(SyncMode::DEFAULT);
        Ok(sync.expose(&self.a.array.all()).expose(&self.b.array.all()).spawn()?)
    }

    /// Spawns a task for some rows of the tile each.
    fn spawn_products(&self, ctx: &Context, round: usize, step: &Token) -> Result<(), Error> {
        let term = Term { is_first: round == 0, is_last: round + 1 == self.side };
        let (a, b) = (&self.fetched_a[round % 2].array, &self.fetched_b[round % 2].array);
        let (depth, cols) = (self.extent(self.depth(round)), self.extent(self.col));
        for rows in pieces(0..self.extent(self.row), self.problem.block()) {
            let pace = self.pace.clone();
            let cells = |cols: usize| -> Range<usize> { rows.start * cols..rows.end * cols };
            ctx.group()
                .task("multiply")
                .input(&a.region(cells(depth)))
                .input(&b.region(..depth * cols))
                .inout(&self.c.array.region(cells(cols)))
                .input(&step.region())
                .spawn_async(async move |a, b, mut c, _step| {
                    let height = rows.len();
                    let shaped = "as many cells as rows and columns say";
                    let a = ArrayView2::from_shape((height, depth), &a).expect(shaped);
                    let b = ArrayView2::from_shape((depth, cols), &b).expect(shaped);
                    let c = ArrayViewMut2::from_shape((height, cols), &mut c).expect(shaped);
                    pace.compute(|| kernel::multiply(a, b, c, term)).await;
                })?;
        }
        Ok(())
    }

    /// Gives up the tiles for that of the last product.
    async fn collect(self, ctx: &Context) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.a.array.all());
        Ok(task.run(|cells| cells.to_vec())?.await?)
    }
}
