//! Calls of foreign code outside bodies of tasks: wakers, and the wire.
//!
//! A panic of foreign code fails the run instead of unwinding through its caller. A waker may take
//! a lock of its caller, so wakers are called under none, which debug builds check.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use talpf_primitives::assert_nothing_held;

/// Calls `code`, which `what` names.
///
/// **Errors**: the text of a panic.
#[track_caller]
pub(crate) fn call<R>(what: &str, code: impl FnOnce() -> R) -> Result<R, String> {
    assert_nothing_held(what);
    catch(code)
}

/// Calls `code`, under whatever locks the caller holds.
///
/// **Errors**: the text of a panic.
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| message(&*payload))
}

#[cold]
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is no text").to_owned()
}
