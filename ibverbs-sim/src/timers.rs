//! Timers: the queue pairs that wait for a deadline.
//!
//! The crate reads no clock: the time is that of the last [`Context::advance`](crate::Context). A
//! deadline may be listed twice, or stay listed after its wait has ended; the queue pair checks for
//! itself.

use std::{collections::BTreeMap, sync::Weak};

use talpf_primitives::{AtomicU64, Mutex, Ordering};

use crate::queue_pair::QueuePairCore;

#[derive(Default)]
pub(crate) struct Timers {
    now_ns: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Number of deadlines ever listed. It orders equal deadlines, so that one seed gives one
    /// order.
    listed: u64,
    by_deadline: BTreeMap<(u64, u64), Weak<QueuePairCore>>,
}

impl Timers {
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    /// Lists a queue pair, or returns `false` if its deadline has been reached. The time is read
    /// under the lock, so a thread that has moved it before resumes the queue pair.
    pub(crate) fn arm(&self, deadline_ns: u64, queue_pair: &Weak<QueuePairCore>) -> bool {
        let mut waiting = self.waiting.lock();
        if deadline_ns <= self.now_ns() {
            return false;
        }
        waiting.listed += 1;
        let key = (deadline_ns, waiting.listed);
        waiting.by_deadline.insert(key, Weak::clone(queue_pair));
        true
    }

    /// Returns the next deadline.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.lock().by_deadline.keys().next().map(|&(deadline, _)| deadline)
    }

    /// Moves the time forward, and takes the queue pairs whose deadlines it reaches.
    pub(crate) fn advance(&self, now_ns: u64) -> Vec<Weak<QueuePairCore>> {
        self.now_ns.fetch_max(now_ns, Ordering::SeqCst);
        let mut waiting = self.waiting.lock();
        let later = match now_ns.checked_add(1) {
            Some(next) => waiting.by_deadline.split_off(&(next, 0)),
            None => BTreeMap::new(),
        };
        std::mem::replace(&mut waiting.by_deadline, later).into_values().collect()
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
