//! Binding operations to the running task.

use talpf_runtime::PendingEvent;

use crate::error::Error;
use crate::request::Request;

/// Binds `request` to the running task and returns at once: the task is complete, and the regions
/// of the buffer are released, when the operation has ended. An error of the operation fails the
/// task.
///
/// **Errors**: called outside a task.
///
/// **Source**: `TAMPI_Iwait`, thesis, chapter 3.2.
pub fn iwait<B: Send + 'static>(request: Request<B>) -> Result<(), Error> {
    let event = PendingEvent::of_current_task()?;
    // The event before the buffer: successors must not run on what was not received.
    request.finish(move |buffer, lost, result| match result {
        Ok(_) => {
            drop(event);
            drop(buffer);
        }
        Err(error) => {
            event.fail(error.to_string());
            // It may be the guard of another task.
            lost(buffer, &error);
        }
    });
    Ok(())
}

/// As [`iwait`], for several requests.
pub fn iwaitall<B: Send + 'static>(
    requests: impl IntoIterator<Item = Request<B>>,
) -> Result<(), Error> {
    requests.into_iter().try_for_each(iwait)
}
