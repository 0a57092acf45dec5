//! Tasks, and puts of outermost rows: one program for both `talpf-*` variants.
//!
//! A rank computes step `t` of its band in superstep `2 t + rank`: the row above it is of the same
//! step and one superstep old, the row below it of the step before and one superstep old as well.
//! So neighbours take turns; in every superstep half of the ranks compute and put their outermost
//! rows to those who compute in the next, which hold a window for them.
//!
//! **talpf-default** ends a superstep with one sync of all ranks. Who does not compute waits until
//! the last of the others has: half of the ranks are idle at any time.
//!
//! **talpf-lanes** has a lane for each block column, and its supersteps are rounds of that lane. A
//! round ends for a rank as soon as the pieces of its neighbours over that column have arrived, so a
//! rank starts on the first column while its neighbours compute the next ones, and all ranks work
//! on different columns at the same time.
//!
//! Within a rank, blocks wait for the blocks around them by their regions.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ndarray::Axis;
use talpf::{Arrivals, Context, Lane, Sync, SyncHandle, SyncMode};
use talpf_runtime::Token;

use super::kernel::{self, Ring};
use super::{Problem, Solution};
use crate::Error;
use crate::heat::{Border, Field, Neighbour, Neighbours};
use crate::run::{Machine, Observer, Pace, Part, Protocol, Steps, on_ranks};
use crate::share::pieces;

/// Lanes beside that of the superstep. More block columns than that share lanes.
const LANES: usize = 255;

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    protocol: Protocol,
    observer: &Observer,
) -> Result<Solution, Error> {
    let (problem, border, observer) = (problem.clone(), problem.border(), observer.clone());
    let job = Arc::new(Job { problem, border, machine, mode: protocol.mode, observer });
    let (bands, seconds) = on_ranks(machine, &job.observer, |ctx| rank(ctx, Arc::clone(&job)))?;
    Ok(Solution { result: job.problem.assemble(&job.border, bands), seconds, machine })
}

/// What is the same for all ranks.
struct Job {
    problem: Problem,
    border: Border,
    machine: Machine,
    mode: SyncMode,
    observer: Observer,
}

/// The program of a rank.
async fn rank(ctx: Context, job: Arc<Job>) -> Result<Part<Vec<f64>>, Error> {
    let band = Band::new(&ctx, &job).await?;
    let mut steps = Steps::new(&ctx, &job.observer)?;

    ctx.sync(SyncMode::DEFAULT).await?;
    let started = Instant::now();
    let mut syncs = Vec::new();
    for superstep in 0..2 * (band.steps - 1) + ctx.ranks() as usize {
        let computes = band.step_of(ctx.rank().0 as usize, superstep).is_some();
        if computes {
            let step = steps.begin().await?;
            band.spawn_step(&ctx, &step)?;
            band.spawn_puts(&ctx)?;
        }
        band.spawn_syncs(&ctx, superstep, &mut syncs)?;
        if computes {
            steps.end(&ctx, std::mem::take(&mut syncs))?;
        }
    }
    steps.finish().await?;
    for sync in syncs {
        sync.await?;
    }
    let ended = Instant::now();

    Ok(Part { result: band.field.collect(&ctx).await?, started, ended })
}

/// The rows of one rank.
struct Band {
    field: Field,
    neighbours: Neighbours,
    pace: Pace,
    steps: usize,
    block: usize,
    mode: SyncMode,
    /// The lanes, and the columns of the blocks that each has, with the border.
    lanes: Vec<(Lane, Vec<Range<usize>>)>,
}

impl Band {
    async fn new(ctx: &Context, job: &Job) -> Result<Self, Error> {
        let block = job.problem.block();
        let columns: Vec<_> = pieces(1..job.problem.cols() + 1, block).collect();
        let lanes = match job.mode.arrivals {
            Arrivals::Msg(_) => {
                let columns = columns.chunks(columns.len().div_ceil(LANES));
                (1..).map(Lane).zip(columns.map(<[_]>::to_vec)).collect()
            }
            _ => vec![(Lane::default(), columns)],
        };
        Ok(Self {
            field: Field::new(ctx, &job.problem, &job.border, (block, block)).await?,
            neighbours: Neighbours::new(ctx, &job.problem)?,
            pace: Pace::of(ctx, job.machine),
            steps: job.problem.steps(),
            block,
            mode: job.mode,
            lanes,
        })
    }

    /// The step that `rank` computes in a superstep, if it does.
    fn step_of(&self, rank: usize, superstep: usize) -> Option<usize> {
        let twice = superstep.checked_sub(rank)?;
        (twice % 2 == 0 && twice / 2 < self.steps).then_some(twice / 2)
    }

    /// Spawns a task for every block: column by column, because neighbours wait for them so.
    fn spawn_step(&self, ctx: &Context, step: &Token) -> Result<(), Error> {
        let matrix = &self.field.matrix;
        let last = matrix.rows() - 1;
        for cols in self.lanes.iter().flat_map(|(_, columns)| columns) {
            for rows in pieces(1..last, self.block) {
                let (left, right) = (cols.start - 1..cols.start, cols.end..cols.end + 1);
                let pace = self.pace.clone();
                ctx.group()
                    .task("gauss-seidel")
                    .inout(&matrix.region(rows.clone(), cols.clone()))
                    .input(&matrix.row(rows.start - 1, cols.clone()))
                    .input(&matrix.row(rows.end, cols.clone()))
                    .input(&matrix.region(rows.clone(), left))
                    .input(&matrix.region(rows.clone(), right))
                    .input(&step.region())
                    .spawn_async(async move |mut block, above, below, left, right, _step| {
                        let ring = Ring {
                            above: &above,
                            below: &below,
                            left: left.view().index_axis_move(Axis(1), 0),
                            right: right.view().index_axis_move(Axis(1), 0),
                        };
                        pace.compute(|| kernel::sweep(block.view_mut(), ring)).await;
                    })?;
            }
        }
        Ok(())
    }

    /// Spawns the puts of the outermost rows, a piece for each block.
    fn spawn_puts(&self, ctx: &Context) -> Result<(), Error> {
        let Field { matrix, slot } = &self.field;
        for (lane, columns) in &self.lanes {
            for cols in columns {
                for with in self.neighbours.iter() {
                    let to = slot.at(with.rank, with.its_halo * matrix.cols() + cols.start);
                    ctx.put_on(*lane, &matrix.row(with.edge, cols.clone()), to)?;
                }
            }
        }
        Ok(())
    }

    /// Spawns the sync of every lane, with windows for what neighbours put in this superstep.
    fn spawn_syncs(
        &self,
        ctx: &Context,
        superstep: usize,
        syncs: &mut Vec<SyncHandle>,
    ) -> Result<(), Error> {
        let puts = |with: &&Neighbour| self.step_of(with.rank.0 as usize, superstep).is_some();
        let sources: Vec<_> = self.neighbours.iter().filter(puts).collect();
        for (lane, columns) in &self.lanes {
            let mut mode = self.mode;
            if let Arrivals::Msg(count) = &mut mode.arrivals {
                *count = (sources.len() * columns.len()) as u32;
            }
            let open = |sync: Sync, cols: &Range<usize>| {
                let halo = |with: &&Neighbour| self.field.matrix.row(with.halo, cols.clone());
                sources.iter().map(halo).fold(sync, |sync, halo| sync.window(&halo))
            };
            let sync = columns.iter().fold(ctx.sync_of(*lane, mode), open);
            syncs.push(sync.spawn()?);
        }
        Ok(())
    }
}
