//! Calls of code that is the program's own, outside bodies of tasks: wakers, and the wire.
//!
//! Such code runs under no lock, and a panic in it fails the run instead of unwinding through what
//! called it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `code`.
///
/// **Errors**: what it has panicked with.
pub(crate) fn call<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| message(&*payload))
}

#[cold]
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is no text").to_owned()
}
