//! Ends that hostile programs may come to.

use talpf_runtime::{Error, Runtime};

use super::{Bystander, Wrong};

/// The end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Well,
    /// A task has failed, or its group was cancelled.
    Fails,
    Hangs,
}

/// Tells the end of a wait, which nobody should refuse.
pub(super) fn end_of<T>(result: Result<T, Error>) -> Result<End, Wrong> {
    match result {
        Ok(_) => Ok(End::Well),
        Err(Error::TaskFailed(_) | Error::Cancelled { .. }) => Ok(End::Fails),
        Err(Error::Hang(_)) => Ok(End::Hangs),
        Err(error) => Err(Wrong(error.to_string())),
    }
}

/// Compares an end with those that may be.
pub(super) fn expect(what: &str, end: End, may_be: &[End]) -> Result<(), Wrong> {
    if may_be.contains(&end) {
        return Ok(());
    }
    Err(Wrong(format!("{what}: {end:?}, not one of {may_be:?}")))
}

/// Waits for the first group of a runtime, checks the bystander, and shuts the runtime down. Unless
/// it hangs, it still runs tasks before that.
pub(super) fn finish(
    runtime: Runtime,
    bystander: &Bystander,
    may_be: &[End],
) -> Result<End, Wrong> {
    let end = end_of(runtime.wait_blocking())?;
    expect("the wait", end, may_be)?;
    bystander.check()?;
    if end != End::Hangs {
        let probe = runtime.task("probe").run(|| 7)?;
        let found = runtime.block_on(probe)??;
        if found != 7 {
            return Err(Wrong(format!("the probe has {found}")));
        }
    }
    // What was dropped since may have failed, too.
    expect("the shutdown", end_of(runtime.shut_down())?, &[End::Well, End::Fails, end])?;
    Ok(end)
}
