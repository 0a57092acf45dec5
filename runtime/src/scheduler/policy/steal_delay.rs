//! The time for which an idle worker leaves tasks to the worker they are queued for.
//!
//! A task of a group with an affinity brings its tiles along when it is stolen. Its preferred
//! worker is given as long to take it as the largest of those tiles needs to move. Workers that
//! park without spinning, or that share cores, steal at once.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `app.jacobi_512` | +7 % | 0 % |

use talpf_primitives::{AtomicU64, Ordering};

use crate::idle_policy::IdlePolicy;

/// Bytes that move from a distant cache in a nanosecond.
const MOVED_PER_NS: u64 = 8;
/// Longest delay.
const LONGEST_NS: u64 = 50_000;

/// The delay of thefts in a runtime, which only grows.
pub(in crate::scheduler) struct StealDelay {
    longest_ns: u64,
    delay_ns: AtomicU64,
}

impl StealDelay {
    pub(in crate::scheduler) fn new(idle: IdlePolicy, oversubscribed: bool) -> Self {
        let longest_ns = match idle {
            _ if oversubscribed => 0,
            IdlePolicy::Spin => LONGEST_NS,
            // A worker tries to steal before it parks.
            IdlePolicy::Adaptive { spin } => LONGEST_NS.min(spin.as_nanos() as u64 / 2),
            IdlePolicy::Park => 0,
        };
        StealDelay { longest_ns, delay_ns: AtomicU64::new(0) }
    }

    /// Notes that tasks with tiles of `bytes` are queued for one worker.
    pub(in crate::scheduler) fn note_tile(&self, bytes: usize) {
        let moving_ns = bytes as u64 / MOVED_PER_NS;
        self.delay_ns.fetch_max(moving_ns.min(self.longest_ns), Ordering::Relaxed);
    }

    /// Returns `true` if a worker that has had no task for `idle_ns` may steal.
    #[inline]
    pub(in crate::scheduler) fn is_over(&self, idle_ns: u64) -> bool {
        idle_ns >= self.delay_ns.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn assert_is(delay: &StealDelay, delay_ns: u64) {
        assert!(delay.is_over(delay_ns), "longer than {delay_ns} ns");
        assert!(delay_ns == 0 || !delay.is_over(delay_ns - 1), "shorter than {delay_ns} ns");
    }

    #[test]
    fn the_largest_tile_says_how_long_a_theft_is_delayed() {
        let delay = StealDelay::new(IdlePolicy::Spin, false);
        assert_is(&delay, 0);
        for (bytes, delay_ns) in [(128 << 10, 16_384), (8, 16_384), (160_000, 20_000)] {
            delay.note_tile(bytes);
            assert_is(&delay, delay_ns);
        }
    }

    #[test]
    fn a_delay_is_at_most_50_us_and_half_of_the_spin() {
        let adaptive = |spin_us| IdlePolicy::Adaptive { spin: Duration::from_micros(spin_us) };
        for (idle, longest_ns) in [
            (IdlePolicy::Spin, 50_000),
            (adaptive(101), 50_000),
            (adaptive(99), 49_500),
            (adaptive(0), 0),
        ] {
            for (bytes, delay_ns) in [(8 * 49_400, 49_400), (8 * 50_000, 50_000), (1 << 40, 50_000)]
            {
                let delay = StealDelay::new(idle, false);
                delay.note_tile(bytes);
                assert_is(&delay, longest_ns.min(delay_ns));
            }
        }
    }

    #[test]
    fn workers_that_park_at_once_or_share_cores_steal_at_once() {
        for (idle, oversubscribed) in [(IdlePolicy::Park, false), (IdlePolicy::Spin, true)] {
            let delay = StealDelay::new(idle, oversubscribed);
            delay.note_tile(1 << 30);
            assert_is(&delay, 0);
        }
    }
}
