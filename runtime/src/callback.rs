//! Calls of code that belongs to the program, outside the bodies of tasks.
//!
//! Wakers, closures, operators, and the drops of values of the program may panic, spawn tasks, or
//! poll a future on the spot. So each is called with no lock held, and a panic is caught there: it
//! becomes the failure of the task that the call was for or, if there is no such task, of a group.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use talpf_primitives::assert_nothing_held;

/// Calls `work` of the program, which reports name `what`.
///
/// **Errors**: the text of a panic.
#[inline]
pub(crate) fn call<R>(what: &'static str, work: impl FnOnce() -> R) -> Result<R, String> {
    assert_nothing_held(what);
    catch_panic(work)
}

/// Calls `work`.
///
/// **Errors**: the text of a panic.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = panic_text(&*payload);
        drop_quietly(payload);
        text
    })
}

/// Returns the text of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&'static str>().copied());
    text.unwrap_or("panicked with a value that is no text").to_owned()
}

/// Drops a value whose drop may panic when nobody can be notified. The payload of that panic may
/// panic again, and is leaked.
pub(crate) fn drop_quietly<T>(value: T) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(value))));
}
