//! Failure broadcast: the message by which a rank that fails makes all others fail.
//!
//! The receive of that message lasts as long as the run. It is not among the operations under way,
//! which are tested often: a thread that has tested these in vain tests it once.
#![allow(unsafe_code, reason = "hands MPI the buffer for the failure of another rank")]

use talpf_primitives::Mutex;

use super::call::Refused;
use super::request::Outcome;
use super::transport::MpiTransport;
use super::{RawCommunicator, RawRequest, Shape};
use crate::error::Error;
use crate::rank::Rank;

/// Maximum length of the reason that is sent to other ranks, in bytes.
const MOST_BYTES: usize = 1024;

/// Receive of the failure of another rank.
#[derive(Default)]
pub(super) struct FailureBroadcast(Mutex<Option<PendingReceive>>);

struct PendingReceive {
    request: RawRequest,
    /// Buffer that MPI writes to until the request completes.
    text: Box<[u8]>,
    cancelled: bool,
}

impl FailureBroadcast {
    /// Starts the receive in `world`.
    fn start_receive(&self, world: RawCommunicator) -> Result<(), Refused> {
        let mut text = vec![0; MOST_BYTES].into_boxed_slice();
        let shape = Shape::contiguous(text.len())?;
        // SAFETY: the text is kept, and not touched, until the request completes (`test`).
        let request = unsafe { world.start_receive(text.as_mut_ptr(), &shape, None, None) }?;
        *self.0.lock() = Some(PendingReceive { request, text, cancelled: false });
        Ok(())
    }

    /// Cancels the receive.
    pub(super) fn cancel(&self) {
        if let Some(pending) = &mut *self.0.lock()
            && !std::mem::replace(&mut pending.cancelled, true)
        {
            // If the call fails, a message will end the receive.
            let _ = pending.request.cancel();
        }
    }

    /// Returns `true` if no receive is under way.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Returns the rank that has failed and its reason, if a message has arrived.
    ///
    /// **Errors**: as [`RawRequest::test`].
    fn test(&self) -> Result<Option<(Rank, String)>, Refused> {
        let mut pending = self.0.lock();
        let Some(PendingReceive { request, cancelled, .. }) = &mut *pending else {
            return Ok(None);
        };
        let cancelled = *cancelled;
        let Some(outcome) = request.test()? else { return Ok(None) };
        let over = pending.take();
        Ok(over.and_then(|over| message_of(&over.text, outcome, cancelled)))
    }
}

/// Reads the message of a receive that is complete.
fn message_of(text: &[u8], outcome: Outcome, was_cancelled: bool) -> Option<(Rank, String)> {
    let status = outcome.and_then(|status| status.read(was_cancelled)).ok()?;
    let text = &text[..status.bytes.min(text.len())];
    (!status.cancelled).then(|| (Rank(status.source), String::from_utf8_lossy(text).into_owned()))
}

impl MpiTransport {
    /// Starts to receive failures of other ranks, for the rest of the run.
    pub(super) fn receive_failures(&self) -> Result<(), Refused> {
        self.failure_broadcast.start_receive(self.library.world())
    }

    /// Fails this rank if another rank has broadcast its failure. Returns `true` if this is the
    /// first failure.
    pub(super) fn poll_failure_broadcast(&self) -> bool {
        let received = self.or_abort(self.failure_broadcast.test());
        received.is_some_and(|(rank, reason)| self.set_failure(Error::PeerFailed { rank, reason }))
    }

    /// Sends the reason of the failure to all other ranks.
    pub(super) fn broadcast_failure(&self, reason: &str) {
        let text = &reason.as_bytes()[..reason.len().min(MOST_BYTES)];
        for rank in (0..self.library.size()).filter(|rank| *rank != self.library.rank()) {
            // If the send fails, the rank cannot be reached at all.
            let _ = self.send_internal(self.library.world(), rank, 0, text.into(), false);
        }
    }

    /// Fails this rank: its receives end. Returns `true` if this is the first failure.
    pub(super) fn set_failure(&self, failure: Error) -> bool {
        let first = self.engine.set_failure(failure);
        if first {
            self.failure_broadcast.cancel();
        }
        first
    }
}
