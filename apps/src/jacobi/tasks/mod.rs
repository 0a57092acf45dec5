//! Tasks with exchange of halos: one program for all variants with ranks.
//!
//! Each rank owns a band of rows, or a rectangle if ranks are a grid, and keeps two matrices of it,
//! old and new, which swap roles after every step. A step declares, in this order:
//!
//! 1. the tasks that compute the strips of `new` from `old` ([`band`]),
//! 2. the exchange of the outermost cells of `new` ([`exchange`]),
//! 3. with puts and gets, the sync that ends the round and lets the exchange touch `new`.
//!
//! With queued puts (`lpf`), all tasks of a step are waited for before the exchange. Otherwise
//! nothing else orders them: a strip waits for the strips and halos around it in the previous step,
//! an exchange for the strip whose cells it carries. So ranks, and strips within a rank, drift apart
//! as far as their dependencies allow; if steps are spawned, up to [`LOOKAHEAD`] of them. Variants
//! differ in their [`HaloExchange`] alone.
//!
//! Deliberately absent: double buffers and acknowledgements. Jacobi alternates between two matrices
//! anyway; a halo is protected from being overwritten too early by its window or its receive, and
//! with [`PutMethod::Links`], which relies on the alternation, by the exchange of the previous
//! step.

mod band;
mod exchange;

use std::sync::Arc;

use self::band::Band;
use self::exchange::{HaloExchange, PutMethod};
use super::{Problem, Solution};
use crate::Error;
use crate::heat::{Border, Convergence, Residual};
use crate::run::{
    Machine, Observer, Part, RankContext, RankSpeed, RunInput, Steps, Variant, declare_count,
    solve_on_ranks,
};

/// Number of steps that overlap: a strip passes through as many while it is in a cache.
const LOOKAHEAD: usize = 8;

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`]; [`Error::Grid`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let is_raw = variant == Variant::TalpfRawCached;
    let method = if is_raw { PutMethod::Links } else { PutMethod::Windows };
    problem.check_execution(machine)?;
    let (border, parts) = (Arc::new(problem.border()), problem.decomposition(machine.ranks())?);
    let program = |ctx, input| rank(ctx, input, Arc::clone(&border), method);
    let assemble = |bands| problem.temperatures(&parts, &border, machine, bands);
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Runs the program of a rank.
async fn rank(
    ctx: RankContext,
    input: Arc<RunInput<Problem>>,
    border: Arc<Border>,
    method: PutMethod,
) -> Result<Part, Error> {
    let band = Band::new(&ctx, &input, &border)?;
    let exchange = HaloExchange::new(&ctx, method, &band).await?;
    let speed = RankSpeed::of(&ctx, &input);
    let mut periods = input.problem.periods();
    let residual = Residual::new(&ctx, &input.problem, band.tasks()).await?;

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);
    while let Some(period) = periods.begin() {
        let (before, last) = (residual.of_period_before(&periods)?, period.len() - 1);
        let steps = Steps { count: period.len(), unroll: 2, parts: 1 };
        ctx.spawn_steps(input.machine, steps, &mut lookahead, |step, number, _| {
            let checked = residual.in_step(step, number, last);
            band.declare_step(number, step, &speed, checked)?;
            exchange.declare(&band, number, step)?;
            match band.last_strip(number) {
                Some(last) => declare_count(&ctx, &input.observer, step, &last),
                None => Ok(()),
            }
        })
        .await?;
        if let Some(before) = before {
            periods.end_if_small(before.await?);
        }
    }
    exchange.end(&ctx).await?;
    let convergence = residual.end(&periods).await?;
    let ended = ctx.now();

    let cells = band.collect(&ctx, input.machine, periods.steps()).await?;
    Ok(Part { result: Convergence::append(convergence, cells), started, ended })
}
