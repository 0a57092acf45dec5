//! Counts of the puts that travel with their claims between this rank and a peer.

use std::sync::atomic::{AtomicU32, Ordering};

/// Counts of eager puts, all wrapping.
#[derive(Default)]
pub(super) struct EagerCounts {
    /// Puts that were sent to the peer.
    sent: AtomicU32,
    /// Puts that have landed there, as far as the peer has reported.
    landed_there: AtomicU32,
    /// Puts that came from the peer.
    received: AtomicU32,
    /// Puts of the peer that have landed here, and count as arrivals of their rounds.
    landed_here: AtomicU32,
    /// Puts that were reported to the peer.
    reported: AtomicU32,
}

impl EagerCounts {
    /// Counts one more put to the peer, unless `credits` may not have landed there.
    pub(super) fn take_credit(&self, credits: usize) -> bool {
        let more = |sent: u32| {
            let waiting = sent.wrapping_sub(self.landed_there.load(Ordering::Acquire));
            ((waiting as usize) < credits).then_some(sent.wrapping_add(1))
        };
        self.sent.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Takes in a report of the peer. Reports may overtake each other on their way in.
    pub(super) fn take_landed(&self, landed: u32) {
        let later = |known: u32| {
            let is_later = (landed.wrapping_sub(known) as i32) > 0;
            is_later.then_some(landed)
        };
        let _ = self.landed_there.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    /// Counts a put that came from the peer.
    pub(super) fn note_received(&self) {
        self.received.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns `true` if every put that came from the peer has landed here.
    pub(super) fn have_landed(&self) -> bool {
        let landed = self.landed_here.load(Ordering::Acquire);
        landed == self.received.load(Ordering::Acquire)
    }

    /// Counts a put of the peer that has landed here.
    pub(super) fn note_landed(&self) {
        self.landed_here.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of puts that have landed here and were not reported.
    pub(super) fn unreported(&self) -> u32 {
        let landed = self.landed_here.load(Ordering::Acquire);
        landed.wrapping_sub(self.reported.load(Ordering::Acquire)).min(i32::MAX as u32)
    }

    /// Returns the number of puts that have landed here, which is reported by the caller.
    pub(super) fn report(&self) -> u32 {
        let landed = self.landed_here.load(Ordering::Acquire);
        self.reported.store(landed, Ordering::Release);
        landed
    }
}
