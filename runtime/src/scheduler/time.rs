//! Waiting for a time, and waiting for idleness.

use std::cmp::{Ordering as Compare, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::Shared;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::task::note_wait;

const NEVER: u64 = u64::MAX;
/// What a task notes that waits for a time: it goes on by itself.
pub(crate) const A_TIME: &str = "a time";

/// What waits for a time. Workers look at it between tasks.
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

    fn add(&self, due_ns: u64, waker: Waker) {
        let mut heap = self.heap.lock();
        heap.push(Reverse(Timer { due_ns, waker }));
        self.note_next(&heap);
    }

    /// When the next one is due, if any waits.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        (next_ns != NEVER).then_some(next_ns)
    }

    /// Wakes everything that is due, what was due first to run first.
    #[cold]
    pub(super) fn fire(&self, now_ns: u64) {
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
        due.chain(first).for_each(Waker::wake);
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

/// What waits for one worker to have nothing else to do, each with the time it waits at most.
///
/// The worker wakes them when it is idle. The others leave that to it, as two workers that took turns
/// with one poller would pass its memory to and fro for nothing, unless it is in a task or something
/// has waited too long.
pub(crate) struct IdleWaiters {
    queue: Mutex<VecDeque<(u64, Waker)>>,
    /// When the first one of them will have waited too long.
    first_ns: AtomicU64,
}

impl IdleWaiters {
    pub(super) fn new() -> Self {
        IdleWaiters { queue: Mutex::default(), first_ns: AtomicU64::new(NEVER) }
    }

    fn add(&self, latest_ns: u64, waker: Waker) {
        let mut queue = self.queue.lock();
        queue.push_back((latest_ns, waker));
        self.note_first(&queue);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first_ns.load(Ordering::Relaxed) == NEVER
    }

    #[inline]
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        self.first_ns.load(Ordering::Relaxed) <= now_ns
    }

    /// Wakes the one that has waited longest.
    pub(super) fn wake_one(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut queue = self.queue.lock();
        let first = queue.pop_front();
        self.note_first(&queue);
        drop(queue);
        first.map(|(_, waker)| waker.wake()).is_some()
    }

    /// Wakes those that have waited too long.
    pub(super) fn wake_late(&self, now_ns: u64) {
        let mut late = Vec::new();
        let mut queue = self.queue.lock();
        queue.retain(|(latest_ns, waker)| {
            let stays = *latest_ns > now_ns;
            if !stays {
                late.push(waker.clone());
            }
            stays
        });
        self.note_first(&queue);
        drop(queue);
        late.into_iter().for_each(Waker::wake);
    }

    fn note_first(&self, queue: &VecDeque<(u64, Waker)>) {
        let first_ns = queue.iter().map(|(latest_ns, _)| *latest_ns).min().unwrap_or(NEVER);
        self.first_ns.store(first_ns, Ordering::Relaxed);
    }
}

/// Completes `period` from now, or a little later. Suspends even if that is 0.
pub(crate) fn wait_for(
    shared: Arc<Shared>,
    period: Duration,
) -> impl Future<Output = ()> + Send + use<> {
    let due_ns = shared.clock.now_ns().saturating_add(nanoseconds(period));
    let mut added = false;
    poll_fn(move |cx| {
        if added && shared.clock.now_ns() >= due_ns {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut added, true) {
            shared.timers.add(due_ns, cx.waker().clone());
            shared.wake_one();
        }
        note_wait(A_TIME);
        Poll::Pending
    })
}

/// Completes when this worker has nothing else to do, at the latest after `latest` or a little
/// later.
pub(crate) fn idle(shared: &Arc<Shared>, latest: Duration) -> impl Future<Output = ()> + Send {
    let mut added = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut added, true) {
            return Poll::Ready(());
        }
        let latest_ns = shared.clock.now_ns().saturating_add(nanoseconds(latest));
        let seat = super::worker_index(shared);
        shared.seats[seat.unwrap_or(0)].idle_waiters.add(latest_ns, cx.waker().clone());
        if seat.is_none() {
            shared.wake_one();
        }
        note_wait("an idle worker");
        Poll::Pending
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
