//! Binds operations to the running task.

use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::{Out, PendingEvent};

use crate::error::Error;
use crate::request::Request;
use crate::status::Status;

/// Binds `request` to the running task and returns at once. The task completes, and the regions of
/// the buffer are released, only when the operation has ended. An error of the operation fails the
/// task.
///
/// **Errors**: called outside a task.
///
/// **Source**: `TAMPI_Iwait`, thesis, chapter 3.2.
pub fn iwait<B: Send + 'static>(request: Request<B>) -> Result<(), Error> {
    bind(request, |_| {})
}

/// Binds several requests to the running task. As [`iwait()`].
pub fn iwaitall<B: Send + 'static>(
    requests: impl IntoIterator<Item = Request<B>>,
) -> Result<(), Error> {
    requests.into_iter().try_for_each(iwait)
}

/// Binds `request` to the running task and writes its status to the first element of `statuses`
/// before the task completes. As [`iwait()`]. Tasks that read the status depend on that region. If
/// the operation fails, the region is poisoned.
///
/// **Errors**: as [`iwait()`]; `statuses` has no elements.
pub fn iwait_status<B: Send + 'static>(
    request: Request<B>,
    statuses: Out<Status>,
) -> Result<(), Error> {
    iwaitall_statuses([request], statuses)
}

/// Binds several requests to the running task and writes the status of request `i` to
/// `statuses[i]`. As [`iwait_status`].
///
/// **Errors**: as [`iwait()`]; fewer statuses than requests, in which case no request is bound.
pub fn iwaitall_statuses<B: Send + 'static>(
    requests: impl IntoIterator<Item = Request<B>>,
    statuses: Out<Status>,
) -> Result<(), Error> {
    let requests: Vec<_> = requests.into_iter().collect();
    if requests.len() > statuses.len() {
        let (value, limit) = (requests.len() as u64, statuses.len() as u64);
        return Err(Error::Limit { what: "number of requests with a status", value, limit });
    }
    // The last request releases the region; the first that fails poisons it.
    let shared = Arc::new(Mutex::new(Some(statuses)));
    requests.into_iter().enumerate().try_for_each(|(place, request)| {
        let shared = Arc::clone(&shared);
        bind(request, move |result| match result {
            Ok(status) => {
                if let Some(statuses) = &mut *shared.lock() {
                    statuses[place] = *status;
                }
            }
            Err(error) => {
                let statuses = shared.lock().take();
                statuses.into_iter().for_each(|statuses| statuses.fail(error.to_string()));
            }
        })
    })
}

/// Binds `request` to the running task and calls `ended` with its result before the task completes.
#[inline]
fn bind<B: Send + 'static>(
    request: Request<B>,
    ended: impl FnOnce(Result<&Status, &Error>) + Send + 'static,
) -> Result<(), Error> {
    let event = PendingEvent::of_current_task()?;
    request.finish(move |buffer, on_failure, result| match result {
        Ok(status) => {
            ended(Ok(&status));
            drop(event);
            drop(buffer);
        }
        Err(error) => {
            // The event before the buffer: successors must not run on data that was not received.
            event.fail(error.to_string());
            ended(Err(&error));
            // The buffer may be the guard of another task.
            on_failure(buffer, &error);
        }
    });
    Ok(())
}
