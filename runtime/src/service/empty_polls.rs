//! The time since a poll last found something.
//!
//! Several threads may poll for one service at the same time. Both fields are hints: a race between
//! two polls lengthens or shortens the time by a few polls.

use std::time::Duration;

use talpf_primitives::{AtomicU32, AtomicU64, Ordering};

use super::timing::POLLS_PER_READING;

/// A sequence of empty polls.
#[derive(Debug)]
pub(super) struct EmptyPolls {
    count: AtomicU32,
    /// Time of the first reading of the sequence.
    since_ns: AtomicU64,
}

impl EmptyPolls {
    pub(super) fn new() -> Self {
        EmptyPolls { count: AtomicU32::new(0), since_ns: AtomicU64::new(0) }
    }

    /// Ends the sequence: a poll has found something.
    #[inline]
    pub(super) fn end(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// Notes an empty poll. Returns `true` if the sequence has lasted for `patience`, and for each
    /// further poll. `now_ns` is read every few polls, or with each poll if these are `slow`.
    #[inline]
    pub(super) fn last(
        &self,
        patience: Duration,
        slow: bool,
        now_ns: impl FnOnce() -> u64,
    ) -> bool {
        let mut count = self.count.load(Ordering::Relaxed).wrapping_add(1);
        let mut is_over = false;
        if count.is_multiple_of(POLLS_PER_READING) || slow {
            let now_ns = now_ns();
            if count <= POLLS_PER_READING {
                self.since_ns.store(now_ns, Ordering::Relaxed);
            }
            let since_ns = self.since_ns.load(Ordering::Relaxed);
            is_over = u128::from(now_ns.saturating_sub(since_ns)) >= patience.as_nanos();
            if is_over || slow {
                // The next poll reads the clock, too, and not as the first.
                count = count.max(POLLS_PER_READING) | (POLLS_PER_READING - 1);
            }
        }
        self.count.store(count, Ordering::Relaxed);
        is_over
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_nanos(100);

    /// Makes `count` polls that read `times`. Returns the number of readings and the last result.
    fn poll(polls: &EmptyPolls, slow: bool, times: &[u64], count: u32) -> (usize, bool) {
        let (mut read, mut is_over) = (0, false);
        for _ in 0..count {
            is_over = polls.last(PATIENCE, slow, || {
                read += 1;
                times[read - 1]
            });
        }
        (read, is_over)
    }

    #[test]
    fn a_row_of_fast_polls_reads_the_clock_rarely_until_it_is_over() {
        let polls = EmptyPolls::new();
        assert_eq!(poll(&polls, false, &[1_000], 31), (1, false));
        assert_eq!(poll(&polls, false, &[1_099], 1), (1, false));
        assert_eq!(poll(&polls, false, &[], 15), (0, false));
        assert_eq!(poll(&polls, false, &[1_100], 1), (1, true));
        assert_eq!(poll(&polls, false, &[1_101, 1_102, 1_103], 3), (3, true));
        polls.end();
        assert_eq!(poll(&polls, false, &[2_000], 31), (1, false));
    }

    #[test]
    fn slow_polls_read_the_clock_every_time() {
        let polls = EmptyPolls::new();
        assert_eq!(poll(&polls, true, &[1_000, 1_050, 1_099], 3), (3, false));
        assert_eq!(poll(&polls, true, &[1_100, 1_101], 2), (2, true));
    }

    #[test]
    fn a_row_of_more_polls_than_can_be_counted_begins_anew() {
        let polls = EmptyPolls::new();
        polls.count.store(u32::MAX, Ordering::Relaxed);
        polls.since_ns.store(5, Ordering::Relaxed);
        assert_eq!(poll(&polls, false, &[1_000], 1), (1, false));
        assert_eq!(poll(&polls, false, &[1_001], 16), (1, false));
    }
}
