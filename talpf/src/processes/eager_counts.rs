//! Counts of the puts that travel with their claims between this rank and a peer.

use std::sync::atomic::{AtomicU32, Ordering};

/// Counts of eager puts, all wrapping. Any thread sends; the peer's messages are handled by one thread
/// at a time, and arrivals are taken in by one.
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
    /// Times that a put found no credit since the last report of the peer.
    refused: AtomicU32,
}

/// Times that puts find no credit and the peer reports nothing, after which it may be that those before
/// wait for a window, and others must not wait for them.
const PATIENCE: u32 = 64;

impl EagerCounts {
    /// Counts as many of `wanted` more puts to the peer as leave no more than `credits` that may not
    /// have landed there, and returns their number.
    pub(super) fn take_credits(&self, wanted: usize, credits: usize) -> usize {
        let mut taken = 0;
        let more = |sent: u32| {
            let waiting = sent.wrapping_sub(self.landed_there.load(Ordering::Acquire));
            taken = wanted.min(credits.saturating_sub(waiting as usize));
            (taken > 0).then_some(sent.wrapping_add(taken as u32))
        };
        match self.sent.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => taken,
            Err(_) => {
                // Of two refusals at the same time one may be missed.
                let refused = self.refused.load(Ordering::Relaxed);
                self.refused.store(refused.saturating_add(1), Ordering::Relaxed);
                0
            }
        }
    }

    /// Returns `true` if puts without credit may not get any until others have landed, which may wait
    /// for them.
    pub(super) fn are_stuck(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > PATIENCE
    }

    /// Takes in a report of the peer. Reports may overtake each other on their way out.
    pub(super) fn take_landed(&self, landed: u32) {
        let known = self.landed_there.load(Ordering::Relaxed);
        if (landed.wrapping_sub(known) as i32) > 0 {
            self.landed_there.store(landed, Ordering::Release);
            self.refused.store(0, Ordering::Relaxed);
        }
    }

    /// Counts puts that came from the peer.
    pub(super) fn note_received(&self, puts: u32) {
        let received = self.received.load(Ordering::Relaxed);
        self.received.store(received.wrapping_add(puts), Ordering::Release);
    }

    /// Returns `true` if every put that came from the peer has landed here.
    pub(super) fn have_landed(&self) -> bool {
        let landed = self.landed_here.load(Ordering::Acquire);
        landed == self.received.load(Ordering::Acquire)
    }

    /// Counts puts of the peer that have landed here.
    pub(super) fn note_landed(&self, puts: u32) {
        let landed = self.landed_here.load(Ordering::Relaxed);
        self.landed_here.store(landed.wrapping_add(puts), Ordering::Release);
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

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn puts_get_as_many_credits_as_are_left() {
        let counts = EagerCounts::default();
        assert_eq!(counts.take_credits(6, 10), 6);
        assert_eq!(counts.take_credits(6, 10), 4);
        assert_eq!(counts.take_credits(1, 10), 0);
        counts.take_landed(3);
        assert_eq!(counts.take_credits(2, 10), 2);
        assert_eq!(counts.take_credits(2, 10), 1);
        counts.take_landed(13);
        assert_eq!(counts.take_credits(11, 10), 10);
        // A report that was overtaken, and a peer that reports more than there are.
        counts.take_landed(5);
        assert_eq!(counts.take_credits(1, 10), 0);
        counts.take_landed(30);
        assert_eq!(counts.take_credits(1, 10), 0);
    }

    #[test]
    fn puts_that_often_find_no_credit_are_stuck_until_a_report() {
        let counts = EagerCounts::default();
        assert_eq!(counts.take_credits(1, 1), 1);
        for _ in 0..PATIENCE {
            assert_eq!(counts.take_credits(1, 1), 0);
            assert!(!counts.are_stuck());
        }
        assert_eq!(counts.take_credits(1, 1), 0);
        assert!(counts.are_stuck());
        counts.take_landed(0);
        assert!(counts.are_stuck(), "nothing new has landed");
        counts.take_landed(1);
        assert!(!counts.are_stuck());
        assert_eq!(counts.take_credits(1, 1), 1);
    }
}
