//! Shutdown: every request completes, at every rank, before MPI is finalised.
//!
//! A rank whose program has ended waits at a barrier, and makes progress meanwhile: other ranks may
//! still receive its messages. After the barrier no program runs, so no new receive will take a
//! message: receives are cancelled, and messages that are left are received and dropped, so that
//! their sends end. The second barrier is for ranks that still wait for that.
//!
//! Sends are never cancelled, which MPI 4 deprecates: those of a rank that has failed, or whose
//! tasks were cancelled, keep their guards until the messages are received. Every rank that knows
//! of the failure receives and drops messages with every pass.

use std::thread;
use std::time::Duration;

use talpf_runtime::Clock;
use talpf_runtime::service::{Backoff, Pace};

use super::Refused;
use super::transport::MpiTransport;
use crate::error::Error;

impl MpiTransport {
    /// Makes progress until `done` returns `true`.
    fn poll_until(&self, mut done: impl FnMut(&Self) -> bool) {
        let (backoff, clock) = (Backoff::new(Pace::Adaptive), Clock::start());
        loop {
            let ended = self.advance(|| false);
            self.poll_failure_broadcast();
            if done(self) {
                return;
            }
            // Busy with what `done` waits for, if with nothing else.
            match backoff.nap_of_thread(ended > 0, || clock.now_ns()) {
                None => thread::yield_now(),
                Some(nap) if self.is_busy() => thread::sleep(nap),
                Some(_) => thread::sleep(WITHOUT_WORK),
            }
        }
    }

    /// Ends the operations under way, at all ranks, and then MPI. Called on the thread that has
    /// initialised MPI, when no task runs any more.
    ///
    /// **Errors**: an error of MPI.
    pub(super) fn finish(&self) -> Result<(), Refused> {
        self.pass_barrier()?;
        if self.engine.failure().is_some() && self.blocking_calls.under_way() > 0 {
            // The call may wait for a rank that has failed before it took part.
            self.library.abort(1);
        }
        self.blocking_calls.join();
        // After a failure, every pass receives and drops messages.
        self.set_failure(Error::Abandoned);
        self.discard_all();
        self.poll_until(|this| this.engine.is_empty() && this.failure_broadcast.is_over());
        self.pass_barrier()?;
        // Receives that the last passes have started.
        self.poll_until(|this| this.engine.is_empty());
        if let Some(clock) = self.clock.get() {
            clock.read(&self.library)?;
        }
        self.contexts.free_all();
        self.library.end();
        Ok(())
    }

    fn pass_barrier(&self) -> Result<(), Refused> {
        let mut request = self.library.world().start_barrier()?;
        self.poll_until(|this| this.or_abort(request.test()).is_some());
        Ok(())
    }
}

/// Period of polling for the end of the run, without operations under way.
const WITHOUT_WORK: Duration = Duration::from_millis(1);
