//! Queue pairs that wait for time to pass.
//!
//! The crate reads no clock: the time is whatever the last [`Context::advance`](crate::Context)
//! said. A deadline may be listed twice or outlive its reason; the queue pair looks for itself.

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
    /// Listing order breaks ties, so that one seed gives one order.
    listed: u64,
    by_deadline: BTreeMap<(u64, u64), Weak<QueuePairCore>>,
}

impl Timers {
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    /// Lists a queue pair, unless its deadline has been reached; false then. The look at the time is
    /// under the lock, so whoever has moved it before that takes the queue pair up.
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

    /// The time of the next deadline.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.lock().by_deadline.keys().next().map(|&(deadline, _)| deadline)
    }

    /// Moves the time forward and takes the queue pairs whose deadlines it reaches.
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
