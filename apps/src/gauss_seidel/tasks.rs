//! Tasks, and the exchange of outermost rows: one program for all variants with ranks.
//!
//! A rank computes step `t` of its band in superstep `2 t + rank`: the row above it is of the same
//! step and one superstep old, the row below it of the step before and one superstep old as well.
//! So neighbours take turns; in every superstep half of the ranks compute and pass on their
//! outermost rows to those who compute in the next, which hold a window for them, or a receive.
//!
//! **talpf-default** ends a superstep with one sync of all ranks. Who does not compute waits until
//! the last of the others has: half of the ranks are idle at any time.
//!
//! **talpf-lanes** has a lane for each block column, and its supersteps are rounds of that lane. A
//! round ends for a rank as soon as the pieces of its neighbours over that column have arrived, so a
//! rank starts on the first column while its neighbours compute the next ones, and all ranks work
//! on different columns at the same time.
//!
//! **tampi** does the same with a message for each piece.
//!
//! Within a rank, blocks wait for the blocks around them by their regions.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ndarray::Axis;
use talpf::{Arrivals, Context, Lane, MemorySlot, SyncHandle, SyncMode};
use talpf_runtime::{Matrix, Token};

use super::kernel::{self, Ring};
use super::{Problem, Solution};
use crate::Error;
use crate::heat::{Border, Neighbour, Neighbours, collect_field};
use crate::run::{
    Communication, Machine, Messages, Observer, Pace, Part, RankContext, Steps, on_ranks,
};
use crate::share::pieces;

/// Lanes beside that of the superstep. More block columns than that share lanes.
const LANES: usize = 255;

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    communication: Communication,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let (problem, border, observer) = (problem.clone(), problem.border(), observer.clone());
    let job = Arc::new(Job { problem, border, machine, observer });
    let program = |ctx| rank(ctx, Arc::clone(&job));
    let Some((bands, seconds)) = on_ranks(machine, communication, &job.observer, program)? else {
        return Ok(None);
    };
    Ok(Some(Solution { result: job.problem.assemble(&job.border, bands), seconds, machine }))
}

/// What is the same for all ranks.
struct Job {
    problem: Problem,
    border: Border,
    machine: Machine,
    observer: Observer,
}

/// The program of a rank.
async fn rank(ctx: RankContext, job: Arc<Job>) -> Result<Part, Error> {
    let band = Band::new(&ctx, &job).await?;
    let mut steps = Steps::new(&ctx, &job.observer)?;

    ctx.barrier().await?;
    let started = Instant::now();
    let mut syncs = Vec::new();
    for superstep in 0..2 * (band.steps - 1) + ctx.ranks() {
        let computes = band.step_of(ctx.rank(), superstep).is_some();
        if computes {
            let step = steps.begin().await?;
            band.spawn_step(&ctx, &step)?;
            band.spawn_sends()?;
        }
        band.spawn_receives(superstep, &mut syncs)?;
        if computes {
            steps.end(&ctx, syncs.drain(..))?;
        }
    }
    steps.finish(&ctx).await?;
    for sync in syncs {
        sync.await?;
    }
    let ended = Instant::now();

    Ok(Part { result: collect_field(&ctx, band.field).await?, started, ended })
}

/// The rows of one rank.
struct Band {
    field: Matrix<f64>,
    neighbours: Neighbours,
    means: Means,
    pace: Pace,
    steps: usize,
    block: usize,
    /// The columns of each block column, without the border.
    columns: Vec<Range<usize>>,
}

/// How outermost rows get to the neighbours.
enum Means {
    /// With the lane of each block column.
    Puts { ctx: Context, mode: SyncMode, slot: MemorySlot<f64>, lanes: Vec<Lane> },
    /// Tagged with the number of their block column.
    Messages(Messages),
}

impl Band {
    async fn new(ctx: &RankContext, job: &Job) -> Result<Self, Error> {
        let block = job.problem.block();
        let columns: Vec<_> = pieces(1..job.problem.cols() + 1, block).collect();
        let field = job.problem.field(ctx, &job.border, (block, block))?;
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let share = columns.len().div_ceil(LANES);
                let lane_of = |column: usize| match protocol.mode.arrivals {
                    Arrivals::Msg(_) => Lane(1 + (column / share) as u8),
                    _ => Lane::default(),
                };
                let lanes = (0..columns.len()).map(lane_of).collect();
                let slot = ctx.register_global(&field).await?;
                Means::Puts { ctx: ctx.clone(), mode: protocol.mode, slot, lanes }
            }
        };
        Ok(Self {
            field,
            neighbours: Neighbours::new(ctx, &job.problem),
            means,
            pace: Pace::of(ctx, job.machine),
            steps: job.problem.steps(),
            block,
            columns,
        })
    }

    /// The step that `rank` computes in a superstep, if it does.
    fn step_of(&self, rank: usize, superstep: usize) -> Option<usize> {
        let twice = superstep.checked_sub(rank)?;
        (twice % 2 == 0 && twice / 2 < self.steps).then_some(twice / 2)
    }

    /// Spawns a task for every block: column by column, because neighbours wait for them so.
    fn spawn_step(&self, ctx: &RankContext, step: &Token) -> Result<(), Error> {
        let matrix = &self.field;
        let last = matrix.rows() - 1;
        for cols in &self.columns {
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

    /// Spawns the puts or sends of the outermost rows, a piece for each block.
    fn spawn_sends(&self) -> Result<(), Error> {
        for (column, cols) in self.columns.iter().enumerate() {
            for with in self.neighbours.iter() {
                let edge = self.field.row(with.edge, cols.clone());
                match &self.means {
                    Means::Puts { ctx, slot, lanes, .. } => {
                        let at = with.its_halo * self.field.cols() + cols.start;
                        let to = slot.at(ctx.peer(with.rank as u32)?, at);
                        ctx.put_on(lanes[column], &edge, to)?;
                    }
                    Means::Messages(messages) => messages.spawn_send(&edge, with.rank, column)?,
                }
            }
        }
        Ok(())
    }

    /// Spawns the receives of what neighbours send in this superstep, or the sync of every lane
    /// with windows for what they put.
    fn spawn_receives(&self, superstep: usize, syncs: &mut Vec<SyncHandle>) -> Result<(), Error> {
        let computes = |with: &&Neighbour| self.step_of(with.rank, superstep).is_some();
        let sources: Vec<_> = self.neighbours.iter().filter(computes).collect();
        let halo = |with: &Neighbour, column: usize| {
            self.field.row(with.halo, self.columns[column].clone())
        };
        match &self.means {
            Means::Messages(messages) => {
                for column in 0..self.columns.len() {
                    for with in &sources {
                        messages.spawn_receive(&halo(with, column), with.rank, column)?;
                    }
                }
            }
            Means::Puts { ctx, mode, lanes, .. } => {
                let mut columns = 0..0;
                for lane in lanes.chunk_by(|one, next| one == next) {
                    columns = columns.end..columns.end + lane.len();
                    let mut mode = *mode;
                    if let Arrivals::Msg(count) = &mut mode.arrivals {
                        *count = (sources.len() * lane.len()) as u32;
                    }
                    let mut sync = ctx.sync_of(lane[0], mode);
                    for column in columns.clone() {
                        for with in &sources {
                            sync = sync.window(&halo(with, column));
                        }
                    }
                    syncs.push(sync.spawn()?);
                }
            }
        }
        Ok(())
    }
}
