//! Tasks, and the exchange of halos: one program for all variants with ranks.
//!
//! Each rank owns a band of rows and keeps two matrices of it, old and new, which swap roles after
//! every step. A step declares, in this order:
//!
//! 1. the tasks that compute the strips of `new` from `old` ([`band`]),
//! 2. the exchange of the outermost rows of `new` ([`exchange`]),
//! 3. with puts and gets, the sync that ends the round and lets the exchange touch `new`.
//!
//! Nothing else orders them: a strip waits for the strips and halos around it in the step before,
//! an exchange for the strip whose row it carries. So ranks, and strips within a rank, drift apart
//! as far as their dependencies allow; where steps are spawned, up to a number of [`Steps`]. What
//! differs between variants is the [`Exchange`] alone. Replayed, 2 and 3 are one task, which waits
//! for all the rows that it carries.
//!
//! Deliberately absent: double buffers and acknowledgements. That two matrices take turns is
//! Jacobi's own; a halo is kept from being overwritten too early by its window or its receive, and
//! with [`Way::Links`], which makes use of the turns, by the exchange of the step before.

mod band;
mod exchange;

use std::sync::Arc;
use std::time::Instant;

use self::band::Band;
use self::exchange::{Exchange, Way};
use super::{Problem, Solution};
use crate::Error;
use crate::heat::Border;
use crate::run::{
    Job, Machine, Observer, Pace, Part, RankContext, Step, Steps, Variant, declare_count,
    solve_on_ranks,
};

/// Steps that overlap: a strip passes as many while it is in a cache.
const LOOKAHEAD: usize = 8;

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let is_raw = variant == Variant::TalpfRawCached;
    let way = if is_raw { Way::Links } else { Way::Windows };
    let border = Arc::new(problem.border());
    let program = |ctx, job| rank(ctx, job, Arc::clone(&border), way);
    let assemble = |bands| problem.assemble(&border, bands);
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// The program of a rank.
async fn rank(
    ctx: RankContext,
    job: Arc<Job<Problem>>,
    border: Arc<Border>,
    way: Way,
) -> Result<Part, Error> {
    let band = Band::new(&ctx, &job.problem, &border)?;
    let exchange = Exchange::new(&ctx, &job.problem, way, &band).await?;
    let pace = Pace::of(&ctx, job.machine);
    let steps = job.problem.steps();

    ctx.barrier().await?;
    let started = Instant::now();
    if job.machine.replays() {
        ctx.group().iterate_unrolled(steps, 2, |iteration, turn| {
            let step = Step::Replayed(iteration);
            band.declare_step(&ctx, turn, step, &pace)?;
            exchange.declare(&band, turn, step)?;
            match band.last_strip(turn) {
                Some(last) => declare_count(&ctx, &job.observer, iteration, &last),
                None => Ok(()),
            }
        })?;
        ctx.group().wait().await?;
    } else {
        let mut under_way = Steps::overlapping(LOOKAHEAD, &ctx, &job.observer)?;
        for step in 0..steps {
            let token = under_way.begin().await?;
            band.declare_step(&ctx, step, Step::Spawned(&token), &pace)?;
            let exchanged = exchange.declare(&band, step, Step::Spawned(&token))?;
            under_way.end(&ctx, exchanged)?;
        }
        under_way.finish(&ctx).await?;
    }
    let ended = Instant::now();

    exchange.end()?;
    Ok(Part { result: band.collect(&ctx, steps).await?, started, ended })
}
