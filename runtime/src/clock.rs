//! The clock of a runtime, the only code that reads the time.
//!
//! All other code takes the time from the clock of its runtime, so a runtime with another source of
//! time runs in that time: workers and timers through the runtime, programs through their group. A
//! program without a runtime starts a clock of its own.
//! Deliberately absent: the date, which only the command line shows.

use std::sync::Arc;
use std::time::Duration;

/// A clock that counts nanoseconds since it was started, usually with the runtime. Clones count
/// from the same start.
///
/// **Cost**: one counter read, about 10 ns.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The invariant time-stamp counter, if the machine has one; the time that an executor sets, in
    /// virtual time.
    counter: quanta::Clock,
    /// Count at the start.
    origin: u64,
}

/// The hand of a clock of virtual time, which starts at 0.
#[derive(Debug)]
pub(crate) struct ClockHand(Arc<quanta::Mock>);

impl Clock {
    /// Creates a clock of real time that starts now.
    pub fn start() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Clock { counter, origin }
    }

    /// Creates a clock of virtual time, with its hand.
    pub(crate) fn virtual_time() -> (Self, ClockHand) {
        let (counter, mock) = quanta::Clock::mock();
        (Clock { counter, origin: 0 }, ClockHand(mock))
    }

    /// Returns the time since the start. **Units**: nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }

    /// Returns the time since the start.
    #[inline]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
    }
}

impl ClockHand {
    /// Moves the clock forward. A time before the present one is ignored.
    pub(crate) fn move_to(&self, time_ns: u64) {
        self.0.increment(time_ns.saturating_sub(self.0.value()));
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_clone_counts_from_the_same_start() {
        let clock = Clock::start();
        let clone = clock.clone();
        let times = [clock.now(), clone.now(), clock.now()];
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn virtual_time_stands_still_until_its_hand_moves() {
        let (clock, hand) = Clock::virtual_time();
        let clone = clock.clone();
        assert_eq!(clock.now_ns(), 0);
        hand.move_to(7);
        hand.move_to(3);
        assert_eq!([clock.now_ns(), clone.now_ns()], [7, 7]);
    }
}
