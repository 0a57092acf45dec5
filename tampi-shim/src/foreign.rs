//! Calls of code that the program has given: wakers, operators, what waits for an operation.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `foreign`, whose panic must not stop the caller, which serves others too. `None`: it has
/// panicked.
#[inline]
pub(crate) fn caught<R>(foreign: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(foreign)).map_err(forget).ok()
}

/// Forgets what a panic carries, which may panic as it drops.
#[cold]
fn forget(payload: Box<dyn std::any::Any + Send>) {
    std::mem::forget(payload);
}
