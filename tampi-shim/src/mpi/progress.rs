//! Progress: ending what is complete.

use super::request::Outcome;
use super::transport::MpiTransport;
use super::{RawRequest, Refused};
use crate::transport::Transport;

impl MpiTransport {
    /// Ends what is complete, or waits for that while `goes_on`. Returns how much that was.
    pub(super) fn advance(&self, goes_on: impl FnMut() -> bool) -> usize {
        if !self.library.may_call() {
            return 0;
        }
        let ended = self.or_abort(self.engine.pass(goes_on));
        if self.engine.failure().is_some() {
            self.probers.wake(|_| true);
            self.drain_all();
        } else if !self.probers.is_empty() {
            self.serve_probers();
        }
        ended
    }

    /// Ends all ranks if MPI has refused to look at requests: nobody knows what it still does with
    /// which memory.
    #[inline]
    pub(super) fn or_abort<R>(&self, looked: Result<R, Refused>) -> R {
        looked.unwrap_or_else(|_| self.library.abort(1))
    }

    /// How a request has ended, if it has; looks on, up to `most` times, while it has not and this
    /// worker has nothing else to do.
    #[inline]
    pub(super) fn test_while_spare(&self, request: &mut RawRequest, most: u32) -> Option<Outcome> {
        let mut left = most;
        loop {
            let outcome = self.or_abort(request.test());
            left -= 1;
            if outcome.is_some() || left == 0 || !self.may_spin() {
                return outcome;
            }
        }
    }

    /// As [`Transport::progress`], and looks on, up to `most` times, while nothing is complete and
    /// this worker has nothing else to do.
    pub(super) fn advance_while_spare(&self, most: usize) -> usize {
        let mut left = most;
        self.advance(|| {
            left -= 1;
            left > 0 && self.probers.is_empty() && self.may_spin()
        })
    }
}
