//! Progress: ends complete operations.

use super::request::Outcome;
use super::transport::MpiTransport;
use super::{RawRequest, Refused};
use crate::transport::Transport;

impl MpiTransport {
    /// Ends complete operations; repeats while none is complete and `keep_polling` returns `true`.
    /// Returns the number of ended operations.
    pub(super) fn advance(&self, keep_polling: impl FnMut() -> bool) -> usize {
        let ended = self.or_abort(self.engine.pass(keep_polling));
        if self.engine.failure().is_some() {
            self.probers.wake(|_| true);
            self.drain_all();
        } else if !self.probers.is_empty() {
            self.serve_probers();
        }
        ended
    }

    /// Ends all processes if a test of requests has failed: MPI may still use the memory of any of
    /// them.
    #[inline]
    pub(super) fn or_abort<R>(&self, tested: Result<R, Refused>) -> R {
        tested.unwrap_or_else(|_| self.library.abort(1))
    }

    /// Returns the outcome of a request, if it is complete. Tests up to `most` times, while the
    /// request is not complete and this worker has nothing else to do.
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

    /// Makes progress as [`Transport::progress`]. Tests up to `most` times, while nothing is
    /// complete and this worker has nothing else to do.
    pub(super) fn advance_while_spare(&self, most: usize) -> usize {
        let mut left = most;
        self.advance(|| {
            left -= 1;
            left > 0 && self.probers.is_empty() && self.may_spin()
        })
    }
}
