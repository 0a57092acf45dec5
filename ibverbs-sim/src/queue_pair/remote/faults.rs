//! Faults of requests to another process, by the plan of this device.
//!
//! The faults are those of the link within a process, for the same seed. A request that is lost is not given to the
//! rail, or its response is ignored, and the wait for a response ends in its repetition: the peer acknowledges again
//! what it has carried out. A response that is lost is not made up for by that to a later request. One
//! that refuses a request is never lost, as within a process.
//!
//! The attempt as the last wait ends comes too late, while within a process its response is there at once.
//!
//! A request that is delayed leaves once those before it have ended and its time has come. Behind one that
//! brings data nothing is sent: it may be repeated, and has to find what it found before.
//!
//! All data is in packets, since what is copied at once meets no fault: permits are ignored.

use super::{Requester, Syndrome};
use crate::{
    link::{AttemptError, Fate},
    port::Response,
    queue_pair::{QueuePairCore, requester::PSN_MASK},
};

impl QueuePairCore {
    /// Returns the reason for which the next request may not be sent yet, on a link with faults.
    #[cold]
    pub(super) fn held_back_by_faults(&self, requester: &mut Requester) -> Option<AttemptError> {
        if requester.outstanding.awaits_data() {
            return Some(AttemptError::Busy);
        }
        let fate = self.context.device.link.fate(self.number, requester.next_psn, 0);
        // Of this attempt alone.
        let was_delayed = std::mem::take(&mut requester.retry.was_delayed);
        if fate.delay_ns == 0 || was_delayed {
            return None;
        }
        let until_ns = self.context.timers.now_ns().saturating_add(fate.delay_ns);
        Some(AttemptError::Delayed { until_ns })
    }

    /// Counts the repetition of the oldest request, which had no response. Returns `true` if the link delays it.
    pub(super) fn delays_repetition(&self, requester: &mut Requester) -> bool {
        let outstanding = &requester.outstanding;
        if !self.context.device.link.has_faults() || outstanding.response.was_delayed {
            return false;
        }
        requester.outstanding.repeated += 1;
        let fate = self.fate_of_oldest(requester);
        if fate.delay_ns == 0 {
            return false;
        }
        let now_ns = self.context.timers.now_ns();
        requester.outstanding.response.delay(now_ns.saturating_add(fate.delay_ns));
        true
    }

    /// Returns `true` if the link loses the response to the oldest request.
    pub(super) fn loses_response(&self, requester: &Requester, response: &Response<'_>) -> bool {
        self.context.device.link.has_faults()
            && matches!(response.syndrome, Syndrome::Ack { .. })
            && self.fate_of_oldest(requester).is_response_lost
    }

    #[cold]
    fn fate_of_oldest(&self, requester: &Requester) -> Fate {
        let outstanding = &requester.outstanding;
        let psn = requester.next_psn.wrapping_sub(outstanding.len() as u32) & PSN_MASK;
        self.context.device.link.fate(self.number, psn, outstanding.repeated)
    }
}
