//! The clock of a runtime, the only code that reads the time.
//!
//! All other code takes the time from the clock of its runtime, so a runtime with another source of
//! time runs in that time: workers and timers through the runtime, programs through their group. A
//! program without a runtime starts a clock of its own.
//! Deliberately absent: the date, which only the command line shows.

use std::time::Duration;

/// A clock that counts nanoseconds since it was started, usually with the runtime. Clones count
/// from the same start.
///
/// **Cost**: one counter read, about 10 ns.
#[derive(Clone, Debug)]
pub struct Clock(Source);

/// A source of time. A virtual one, which an executor advances, is another variant.
#[derive(Clone, Debug)]
enum Source {
    /// The invariant time-stamp counter, if the machine has one, and the count at the start.
    Real { counter: quanta::Clock, origin: u64 },
}

impl Clock {
    /// Creates a clock of real time that starts now.
    pub fn start() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Clock(Source::Real { counter, origin })
    }

    /// Returns the time since the start. **Units**: nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Source::Real { counter, origin } => counter.delta_as_nanos(*origin, counter.raw()),
        }
    }

    /// Returns the time since the start.
    #[inline]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
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
}
