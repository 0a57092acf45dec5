//! The end of a run: every request completes, at every rank, before MPI ends.
//!
//! A rank whose program has ended waits at a barrier, and goes on with what is under way: others
//! may still receive what it has sent. Behind the barrier no program runs, so what no receive has
//! taken nobody will: receives are cancelled, and messages that were not received are, so that
//! their sends end. The second barrier is for those who still wait for that.
//!
//! Sends are never cancelled, which MPI 4 deprecates: those of a rank that has failed, or whose tasks
//! were cancelled, keep their guards until somebody takes the messages. Every rank that has heard
//! of it does, with every pass.

use std::thread;
use std::time::Duration;

use super::period::{Pace, Pause};
use super::transport::MpiTransport;
use super::{PollingPeriod, Refused};
use crate::error::Error;

impl MpiTransport {
    /// Does what home is for until `done`.
    pub(super) fn serve(&self, pace: &mut Pace, mut done: impl FnMut(&Self) -> bool) {
        loop {
            let ended = self.home.carry_out() + self.advance(|| false);
            self.heed_alarm();
            if done(self) {
                return;
            }
            // Orders come at any time: it does not sleep as long as there may be one soon.
            match pace.next(ended, true) {
                None => thread::yield_now(),
                Some(Pause::For(time)) if self.is_busy() => thread::park_timeout(time.max(LEAST)),
                // What comes wakes this thread.
                Some(_) => thread::park_timeout(WITHOUT_WORK),
            }
        }
    }

    /// Ends what is under way, at all ranks, and then MPI. On the thread that has initialised it,
    /// when no task runs any more.
    ///
    /// **Errors**: what MPI refuses.
    pub(super) fn finish(&self) -> Result<(), Refused> {
        let mut pace = Pace::new(PollingPeriod::Adaptive, true);
        self.pass_barrier(&mut pace)?;
        if self.engine.failure().is_some() && self.asides.under_way() > 0 {
            // It may wait for a rank that has failed before it took part.
            self.library.abort(1);
        }
        self.asides.join();
        // With a failure, every pass receives what nobody has asked for.
        self.set_failure(Error::Abandoned);
        self.discard_all();
        self.serve(&mut pace, |this| this.engine.is_empty() && this.alarm.is_over());
        self.pass_barrier(&mut pace)?;
        // What the last passes have taken out.
        self.serve(&mut pace, |this| this.engine.is_empty());
        self.contexts.free_all();
        self.library.end();
        Ok(())
    }

    fn pass_barrier(&self, pace: &mut Pace) -> Result<(), Refused> {
        let mut request = self.library.world().start_barrier()?;
        self.serve(pace, |this| this.or_abort(request.test()).is_some());
        Ok(())
    }
}

/// A parked thread takes longer than this to wake.
const LEAST: Duration = Duration::from_micros(1);
/// How often the end of the run is looked at.
const WITHOUT_WORK: Duration = Duration::from_millis(1);
