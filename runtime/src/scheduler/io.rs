//! Access of threads to tokio, whose I/O and timers tasks may await.

use tokio::runtime::Handle;

/// Lets this thread use the I/O of tokio until the guard drops.
#[cfg(not(talpf_shuttle))]
pub(super) fn enter_tokio(tokio: &Handle) -> tokio::runtime::EnterGuard<'_> {
    tokio.enter()
}

/// Placeholder for tokio's guard: tokio's state of a thread would be that of all threads of
/// shuttle.
#[cfg(talpf_shuttle)]
pub(super) struct Entered;

#[cfg(talpf_shuttle)]
pub(super) fn enter_tokio(_: &Handle) -> Entered {
    Entered
}
