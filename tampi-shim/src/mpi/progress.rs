//! Progress: ending what is complete, and acting upon what other ranks have said.

use super::transport::MpiTransport;
use crate::error::Error;
use crate::rank::Rank;
use crate::transport::Transport;

impl MpiTransport {
    /// Ends what is complete, or waits for that while `goes_on`. Returns how much that was.
    pub(super) fn advance(&self, goes_on: impl FnMut() -> bool) -> usize {
        if !self.library.may_call() {
            return 0;
        }
        let found = match self.engine.pass(goes_on) {
            Ok(found) => found,
            // Nobody knows what MPI still does with which memory.
            Err(_) => self.library.abort(1),
        };
        if let Some((rank, reason)) = found.alarm {
            self.engine.set_failure(Error::PeerFailed { rank: Rank(rank), reason });
        }
        if self.engine.failure().is_some() {
            self.probers.wake(|_| true);
            self.drain();
        } else if !self.probers.is_empty() {
            self.serve_probers();
        }
        found.ended
    }

    /// As [`Transport::progress`], and looks on for a few microseconds while nothing is complete
    /// and this worker has nothing else to do.
    pub(super) fn advance_while_spare(&self) -> usize {
        /// Tests in vain.
        const LOOKS: usize = 64;
        let mut left = LOOKS;
        self.advance(|| {
            left -= 1;
            left > 0 && self.probers.is_empty() && self.may_look()
        })
    }
}
