//! Tasks that wait for a time.

use std::cmp::{Ordering as Compare, Reverse};
use std::collections::BinaryHeap;
use std::task::Waker;
use std::time::Duration;

use talpf_primitives::{AtomicU64, Mutex, Ordering};

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Tasks that wait for a time. Workers check for due ones between tasks.
pub(crate) struct Timers {
    heap: Mutex<BinaryHeap<Reverse<Timer>>>,
    next_ns: AtomicU64,
}

struct Timer {
    due_ns: u64,
    waker: Waker,
}

impl Timers {
    pub(super) fn new() -> Self {
        Timers { heap: Mutex::default(), next_ns: AtomicU64::new(NEVER) }
    }

    pub(super) fn add(&self, due_ns: u64, waker: Waker) {
        let mut heap = self.heap.lock();
        heap.push(Reverse(Timer { due_ns, waker }));
        self.note_next(&heap);
    }

    /// Returns the time at which the next timer is due, if there is any.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        (next_ns != NEVER).then_some(next_ns)
    }

    /// Removes all due timers, in the order in which to wake them so that the task due first runs
    /// first.
    #[cold]
    pub(super) fn take_due(&self, now_ns: u64) -> impl Iterator<Item = Waker> + use<> {
        let mut due = Vec::new();
        let mut heap = self.heap.lock();
        while heap.peek().is_some_and(|Reverse(timer)| timer.due_ns <= now_ns) {
            due.extend(heap.pop().map(|Reverse(timer)| timer.waker));
        }
        self.note_next(&heap);
        drop(heap);
        // The last one woken is the next to run.
        let mut due = due.into_iter();
        let first = due.next();
        due.chain(first)
    }

    fn note_next(&self, heap: &BinaryHeap<Reverse<Timer>>) {
        let next_ns = heap.peek().map_or(NEVER, |Reverse(timer)| timer.due_ns);
        self.next_ns.store(next_ns, Ordering::Relaxed);
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.due_ns == other.due_ns
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Compare> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Compare {
        self.due_ns.cmp(&other.due_ns)
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
