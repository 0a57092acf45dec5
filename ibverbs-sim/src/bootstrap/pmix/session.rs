//! A connection to a launcher, by the library.
//!
//! Calls of the library wait for the launcher, some of them without end. So a thread makes them, and the process
//! that asks waits for it as long as it wants. A thread that does not come back is left to itself, and the library
//! with it: there are no further calls, and the launcher takes the process for one that has failed.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    abi::Process,
    library::{Cause, Failure, Library, NAME},
};

/// Time that the library has beyond the timeout that it was given, to keep to that.
const GRACE: Duration = Duration::from_secs(1);

type Call = Box<dyn FnOnce(&Library) + Send>;

/// Connection to a launcher.
#[derive(Debug)]
pub(super) struct Session {
    /// Calls to be made; `None` once the thread does not come back.
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
    timeout: Duration,
    is_initialized: bool,
}

impl Session {
    /// Starts the thread that makes the calls.
    ///
    /// **Errors**: text of the operating system, which refuses a thread.
    pub(super) fn start(library: &'static Library, timeout: Duration) -> Result<Self, String> {
        let (calls, to_be_made) = mpsc::channel::<Call>();
        let thread = thread::Builder::new().name("pmix".to_owned()).spawn(move || {
            for call in to_be_made {
                call(library);
            }
        });
        let thread = thread.map_err(|error| format!("a thread for {}: {error}", NAME))?;
        Ok(Self { calls: Some(calls), thread: Some(thread), timeout, is_initialized: false })
    }

    /// Returns the time that calls have.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects this process to its launcher, and returns what it is there.
    pub(super) fn initialize(&mut self) -> Result<Process, Failure> {
        let process = self.call("PMIx_Init", Library::initialize)?;
        self.is_initialized = true;
        Ok(process)
    }

    /// Makes a call, in the name of the function that it may hang in.
    pub(super) fn call<R: Send + 'static>(
        &mut self,
        name: &'static str,
        call: impl FnOnce(&Library) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let timed_out = || Failure { call: name, cause: Cause::TimedOut };
        let calls = self.calls.as_ref().ok_or_else(timed_out)?;
        let (answer, answered) = mpsc::sync_channel(1);
        let made = calls.send(Box::new(move |library| {
            // Nobody waits for an answer that comes too late.
            let _ = answer.send(call(library));
        }));
        let outcome = made
            .map_err(|_| RecvTimeoutError::Disconnected)
            .and_then(|()| answered.recv_timeout(self.timeout.saturating_add(GRACE)));
        outcome.unwrap_or_else(|_| {
            self.calls = None;
            self.thread = None;
            Err(timed_out())
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The launcher takes a process that ends without this for one that has failed.
        if self.is_initialized {
            let _ = self.call("PMIx_Finalize", Library::finalize);
        }
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
