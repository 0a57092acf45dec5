//! Outcomes of hostile programs.

use talpf_runtime::{Error, Runtime};

use super::{Bystander, EpisodeError};

/// Outcome of a wait or of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Completes,
    /// A task failed, or its group was cancelled.
    Fails,
    Hangs,
}

/// Classifies the result of a wait, which must not be refused.
pub(super) fn outcome_of<T>(result: Result<T, Error>) -> Result<Outcome, EpisodeError> {
    match result {
        Ok(_) => Ok(Outcome::Completes),
        Err(Error::TaskFailed(_) | Error::Cancelled { .. }) => Ok(Outcome::Fails),
        Err(Error::Hang(_)) => Ok(Outcome::Hangs),
        Err(error) => Err(EpisodeError(error.to_string())),
    }
}

/// Checks that an outcome is one of those expected.
pub(super) fn expect(what: &str, end: Outcome, permitted: &[Outcome]) -> Result<(), EpisodeError> {
    if permitted.contains(&end) {
        return Ok(());
    }
    Err(EpisodeError(format!("{what}: {end:?}, not one of {permitted:?}")))
}

/// Waits for the first group of a runtime, checks the bystander, and shuts the runtime down. Before
/// the shutdown the runtime must still run tasks, unless it hangs.
pub(super) fn finish(
    runtime: Runtime,
    bystander: &Bystander,
    permitted: &[Outcome],
) -> Result<Outcome, EpisodeError> {
    let end = outcome_of(runtime.wait_blocking())?;
    expect("the wait", end, permitted)?;
    bystander.check()?;
    if end != Outcome::Hangs {
        let probe = runtime.task("probe").run(|| 7)?;
        let found = runtime.block_on(probe)??;
        if found != 7 {
            return Err(EpisodeError(format!("the probe has {found}")));
        }
    }
    // Values dropped since then may have failed too.
    expect(
        "the shutdown",
        outcome_of(runtime.shut_down())?,
        &[Outcome::Completes, Outcome::Fails, end],
    )?;
    Ok(end)
}
