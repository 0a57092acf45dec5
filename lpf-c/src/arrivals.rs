//! Operations that have arrived at a process without a sync of its own, counted by round.

use std::collections::VecDeque;

use talpf_primitives::{Mutex, Parker, Unparker, yield_now};

use crate::barrier::Patience;

/// Counts of a process.
struct Counts {
    /// Round of the first count.
    round: u64,
    counts: VecDeque<u64>,
    /// Process that waits.
    waiter: Option<Unparker>,
}

/// Number of operations that have arrived in the open round of a process and in later ones: others may be ahead.
pub(crate) struct Arrivals(Mutex<Counts>);

impl Arrivals {
    pub(crate) fn new() -> Self {
        Arrivals(Mutex::new(Counts { round: 0, counts: VecDeque::new(), waiter: None }))
    }

    /// Notes an operation of a round of its origin. One of a round that has ended here counts nowhere.
    pub(crate) fn note(&self, round: u64) {
        let mut counts = self.0.lock();
        let Some(index) = round.checked_sub(counts.round) else { return };
        let index = index as usize;
        if counts.counts.len() <= index {
            counts.counts.resize(index + 1, 0);
        }
        counts.counts[index] += 1;
        let waiter = counts.waiter.take();
        drop(counts);
        if let Some(waiter) = waiter {
            waiter.unpark();
        }
    }

    /// Wakes the process, which checks whether there is anybody left to wait for.
    pub(crate) fn wake(&self) {
        let waiter = self.0.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.unpark();
        }
    }

    /// Waits until `expected` operations have arrived in the open round, and ends it. Returns the number that
    /// has arrived, or `None` if fewer have and `is_deserted`.
    pub(crate) fn end_round(
        &self,
        expected: u64,
        patience: Patience,
        parker: &Parker,
        is_deserted: impl Fn() -> bool,
    ) -> Option<u64> {
        let mut polls = 0;
        loop {
            // Before the count: a process leaves after its last operation.
            let deserted = is_deserted() && expected > 0;
            let mut counts = self.0.lock();
            let arrived = counts.counts.front().copied().unwrap_or(0);
            if arrived >= expected {
                counts.counts.pop_front();
                counts.round += 1;
                return Some(arrived);
            }
            if deserted {
                return None;
            }
            polls += 1;
            if polls <= patience.yields {
                drop(counts);
                yield_now();
                continue;
            }
            let is_announced = counts.waiter.replace(parker.unparker().clone()).is_some();
            drop(counts);
            // Once more after the first announcement, for those that left meanwhile.
            if is_announced {
                parker.park();
            }
        }
    }
}
