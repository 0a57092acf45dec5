//! Tasks, and one-sided exchange of halos: one program for all `talpf-*` variants.
//!
//! Each rank owns a band of rows and keeps two matrices of it, old and new, which swap roles after
//! every step. Around its rows lie the border columns and a row above and below: the border of the
//! problem, or a *halo*, the copy of a neighbour's outermost row. A step spawns, in this order:
//!
//! 1. the tasks that compute the strips of `new` from `old` ([`band`]),
//! 2. the exchange of the outermost rows of `new` ([`exchange`]),
//! 3. the sync that ends the round and lets the exchange touch `new`.
//!
//! Nothing else orders them: a strip waits for the strips and halos around it in the step before,
//! an exchange for the strip whose row it carries. So ranks, and strips within a rank, drift apart
//! as far as their dependencies allow, up to [`LOOKAHEAD`] steps. What differs between variants
//! is the [`Protocol`] alone.
//!
//! Deliberately absent: double buffers and acknowledgements. That two matrices take turns is
//! Jacobi's own; a halo is kept from being overwritten too early by its window, and under
//! [`Protocol::RAW_CACHED`], which makes use of the turns, by the exchange of the step before.

mod band;
mod exchange;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use talpf::{Config, Context, PollingFrequency, SyncHandle, SyncMode, exec};
use talpf_runtime::JoinHandle;

use self::band::Band;
use self::exchange::Exchange;
use super::{Machine, Observer, Problem, Solution};
use crate::heat::Border;
use crate::{Error, Matrix};

pub use self::exchange::Protocol;

/// Steps that a rank spawns before it waits for the first of them to end. Enough to have work
/// for the time that a halo is under way; more costs memory and caches.
const LOOKAHEAD: usize = 4;

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`].
pub fn solve(
    problem: &Problem,
    machine: Machine,
    protocol: Protocol,
    observer: &Observer,
) -> Result<Solution, Error> {
    let mut config = Config {
        ranks: machine.ranks() as u32,
        polling: PollingFrequency::from_environment()?,
        ..Config::default()
    };
    config.runtime.workers = machine.workers();
    config.runtime.recorder = observer.recorder.clone();

    let job = Arc::new(Job {
        problem: problem.clone(),
        border: problem.border(),
        protocol,
        observer: observer.clone(),
    });
    let parts = exec(config, |ctx| rank(ctx, Arc::clone(&job)))?;
    Ok(job.assemble(parts, machine))
}

/// What is the same for all ranks.
struct Job {
    problem: Problem,
    border: Border,
    protocol: Protocol,
    observer: Observer,
}

/// What a rank hands back.
struct Part {
    /// Its rows with their border columns.
    cells: Vec<f64>,
    started: Instant,
    ended: Instant,
}

/// The program of a rank.
async fn rank(ctx: Context, job: Arc<Job>) -> Result<Part, Error> {
    let mut band = Band::new(&ctx, &job.problem, &job.border).await?;
    let mut exchange = Exchange::new(&ctx, &job.problem, job.protocol, &band).await?;

    ctx.sync(SyncMode::DEFAULT).await?;
    let started = Instant::now();
    let mut ahead = VecDeque::with_capacity(LOOKAHEAD);
    for step in 0..job.problem.steps() {
        if ahead.len() == LOOKAHEAD {
            end_of_first(&mut ahead, &ctx, &job).await?;
        }
        let computed = band.spawn_step(&ctx, step % LOOKAHEAD)?;
        let exchanged = exchange.spawn(&ctx, &band)?;
        ahead.push_back((computed, exchanged));
        band.swap();
    }
    while !ahead.is_empty() {
        end_of_first(&mut ahead, &ctx, &job).await?;
    }
    let ended = Instant::now();

    drop(exchange);
    let cells = band.collect(&ctx).await?;
    Ok(Part { cells, started, ended })
}

/// Waits until all strips of the oldest step are computed and its round has ended.
async fn end_of_first(
    ahead: &mut VecDeque<(JoinHandle<()>, SyncHandle)>,
    ctx: &Context,
    job: &Job,
) -> Result<(), Error> {
    if let Some((computed, exchanged)) = ahead.pop_front() {
        computed.await?;
        exchanged.await?;
        if ctx.rank().0 == 0 {
            job.observer.progress.advance();
        }
    }
    Ok(())
}

impl Job {
    fn assemble(&self, parts: Vec<Part>, machine: Machine) -> Solution {
        let started = parts.iter().map(|part| part.started).min();
        let ended = parts.iter().map(|part| part.ended).max();
        let seconds =
            started.zip(ended).map_or(0.0, |(started, ended)| (ended - started).as_secs_f64());

        let (rows, cols) = (self.problem.rows(), self.problem.cols() + 2);
        let mut matrix = Matrix::zeros(rows + 2, cols);
        self.border.apply(0, 0, matrix.view_mut());
        let mut row = 1;
        for part in parts {
            for cells in part.cells.chunks_exact(cols) {
                matrix.row_mut(row).copy_from_slice(cells);
                row += 1;
            }
        }
        Solution { matrix, seconds, machine }
    }
}
