//! Binding operations to the running task.

use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::{Out, PendingEvent};

use crate::error::Error;
use crate::request::Request;
use crate::status::Status;

/// Binds `request` to the running task and returns at once: the task is complete, and the regions
/// of the buffer are released, when the operation has ended. An error of the operation fails the
/// task.
///
/// **Errors**: called outside a task.
///
/// **Source**: `TAMPI_Iwait`, thesis, chapter 3.2.
pub fn iwait<B: Send + 'static>(request: Request<B>) -> Result<(), Error> {
    bind(request, |_| {})
}

/// As [`iwait`], for several requests.
pub fn iwaitall<B: Send + 'static>(
    requests: impl IntoIterator<Item = Request<B>>,
) -> Result<(), Error> {
    requests.into_iter().try_for_each(iwait)
}

/// As [`iwait`], and what is known of the message is in the first of `statuses` when the task is
/// complete; tasks that read it depend on that region. If the operation fails it is undefined.
///
/// **Errors**: also a region without elements.
pub fn iwait_status<B: Send + 'static>(
    request: Request<B>,
    statuses: Out<Status>,
) -> Result<(), Error> {
    iwaitall_statuses([request], statuses)
}

/// As [`iwait_status`], for several requests: the status of each is in its place.
///
/// **Errors**: also fewer statuses than requests. No request is bound then.
pub fn iwaitall_statuses<B: Send + 'static>(
    requests: impl IntoIterator<Item = Request<B>>,
    statuses: Out<Status>,
) -> Result<(), Error> {
    let requests: Vec<_> = requests.into_iter().collect();
    if requests.len() > statuses.len() {
        let (value, limit) = (requests.len() as u64, statuses.len() as u64);
        return Err(Error::Limit { what: "number of requests with a status", value, limit });
    }
    // The last of them lets go of the region, the first that fails fails it.
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

/// Binds `request` to the running task; `told` learns how it has ended, before the task is complete.
#[inline]
fn bind<B: Send + 'static>(
    request: Request<B>,
    told: impl FnOnce(Result<&Status, &Error>) + Send + 'static,
) -> Result<(), Error> {
    let event = PendingEvent::of_current_task()?;
    request.finish(move |buffer, lost, result| match result {
        Ok(status) => {
            told(Ok(&status));
            drop(event);
            drop(buffer);
        }
        Err(error) => {
            // The event before the buffer: successors must not run on what was not received.
            event.fail(error.to_string());
            told(Err(&error));
            // It may be the guard of another task.
            lost(buffer, &error);
        }
    });
    Ok(())
}
