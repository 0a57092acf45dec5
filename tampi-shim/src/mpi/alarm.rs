//! What a rank says to all others when it cannot go on.
//!
//! The receive that waits for it lasts as long as the run. It is not among the operations under way,
//! which are tested often: whoever has looked at these in vain looks at it once.
#![allow(unsafe_code, reason = "hands MPI the room for what another rank may say")]

use talpf_primitives::Mutex;

use super::call::Refused;
use super::request::Outcome;
use super::transport::MpiTransport;
use super::{RawCommunicator, RawRequest, Shape};
use crate::error::Error;
use crate::rank::Rank;

/// Most bytes of a reason that other ranks are told.
const MOST_BYTES: usize = 1024;

/// The receive of what another rank may say.
#[derive(Default)]
pub(super) struct Alarm(Mutex<Option<Listening>>);

struct Listening {
    request: RawRequest,
    /// What MPI writes to until the request completes.
    text: Box<[u8]>,
    cancelled: bool,
}

impl Alarm {
    /// Begins to listen in `world`.
    fn listen(&self, world: RawCommunicator) -> Result<(), Refused> {
        let mut text = vec![0; MOST_BYTES].into_boxed_slice();
        let shape = Shape::contiguous(text.len())?;
        // SAFETY: the text is kept, and not touched, until the request completes (`hear`).
        let request = unsafe { world.start_receive(text.as_mut_ptr(), &shape, None, None) }?;
        *self.0.lock() = Some(Listening { request, text, cancelled: false });
        Ok(())
    }

    /// Ends the receive.
    pub(super) fn cancel(&self) {
        if let Some(listening) = &mut *self.0.lock()
            && !std::mem::replace(&mut listening.cancelled, true)
        {
            // If MPI refuses, a message will end it.
            let _ = listening.request.cancel();
        }
    }

    /// Whether no receive is under way.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Which rank has said what, if one has.
    ///
    /// **Errors**: as [`RawRequest::test`].
    fn hear(&self) -> Result<Option<(Rank, String)>, Refused> {
        let mut listening = self.0.lock();
        let Some(Listening { request, cancelled, .. }) = &mut *listening else { return Ok(None) };
        let cancelled = *cancelled;
        let Some(outcome) = request.test()? else { return Ok(None) };
        let over = listening.take();
        Ok(over.and_then(|over| said(&over.text, outcome, cancelled)))
    }
}

/// What a receive has brought that is over.
fn said(text: &[u8], outcome: Outcome, was_cancelled: bool) -> Option<(Rank, String)> {
    let status = outcome.and_then(|status| status.read(was_cancelled)).ok()?;
    let text = &text[..status.bytes.min(text.len())];
    (!status.cancelled).then(|| (Rank(status.source), String::from_utf8_lossy(text).into_owned()))
}

impl MpiTransport {
    /// Waits, for the rest of the run, for what a rank may say that cannot go on.
    pub(super) fn listen(&self) -> Result<(), Refused> {
        self.alarm.listen(self.library.world())
    }

    /// Acts upon what a rank has said that cannot go on. Whether that is news.
    pub(super) fn heed_alarm(&self) -> bool {
        let heard = self.or_abort(self.alarm.hear());
        heard.is_some_and(|(rank, reason)| self.set_failure(Error::PeerFailed { rank, reason }))
    }

    /// Tells all other ranks why this one cannot go on.
    pub(super) fn raise_alarm(&self, reason: &str) {
        let text = &reason.as_bytes()[..reason.len().min(MOST_BYTES)];
        for rank in (0..self.library.size()).filter(|rank| *rank != self.library.rank()) {
            // A rank that cannot be told cannot be helped.
            let _ = self.send_owned(self.library.world(), rank, 0, text.into(), false);
        }
    }

    /// No rank can go on: receives end. Whether this is the first to say so.
    pub(super) fn set_failure(&self, failure: Error) -> bool {
        let first = self.engine.set_failure(failure);
        if first {
            self.alarm.cancel();
        }
        first
    }
}
