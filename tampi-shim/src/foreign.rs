//! Calls of code that the program has given: wakers, operators, what waits for an operation.
//!
//! Such code may do anything, also come back for a lock of its caller. So it is called under none,
//! which debug builds check.

use std::panic::{AssertUnwindSafe, catch_unwind};

use talpf_primitives::assert_nothing_held;

/// Calls `foreign`, which is `what`. Its panic must not stop the caller, which serves others, too:
/// then `None`.
#[inline]
#[track_caller]
pub(crate) fn call<R>(what: &str, foreign: impl FnOnce() -> R) -> Option<R> {
    assert_nothing_held(what);
    catch_unwind(AssertUnwindSafe(foreign)).map_err(forget).ok()
}

/// Forgets what a panic carries, which may panic as it drops.
#[cold]
fn forget(payload: Box<dyn std::any::Any + Send>) {
    std::mem::forget(payload);
}
