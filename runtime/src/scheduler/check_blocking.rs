//! The refusal of calls that would block a worker.

use super::current::on_worker;
use crate::error::Error;
use crate::record::{record, running};

/// Refuses `call`, which is about to block its thread, in a task. Also for calls that set things up
/// before they block.
///
/// **Errors**: [`Error::BlockingInTask`], on a worker of any runtime or in the actions of a task.
pub fn check_blocking(call: &'static str) -> Result<(), Error> {
    let task = running::acts_for().or_else(running::innermost);
    match task.map(|task| record(task).label().text()) {
        Some(task) => Err(Error::BlockingInTask { call, task }),
        None if on_worker() => Err(Error::BlockingInTask { call, task: "none" }),
        None => Ok(()),
    }
}
