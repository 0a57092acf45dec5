//! Calls of foreign code, which the program has supplied: wakers, operators, waiters of operations.
//!
//! Foreign code may do anything, also take a lock of its caller. It is therefore called without any
//! lock held, which debug builds check.

use std::panic::{AssertUnwindSafe, catch_unwind};

use talpf_primitives::assert_nothing_held;

/// Calls `foreign`, described by `what`. Returns `None` if it panics: a panic must not stop the
/// caller, which serves other operations, too.
#[inline]
#[track_caller]
pub(crate) fn call<R>(what: &str, foreign: impl FnOnce() -> R) -> Option<R> {
    assert_nothing_held(what);
    catch_unwind(AssertUnwindSafe(foreign)).map_err(forget).ok()
}

/// Leaks the payload of a panic, whose drop may panic again.
#[cold]
fn forget(payload: Box<dyn std::any::Any + Send>) {
    std::mem::forget(payload);
}
