//! The operations that a rank has to retry (see `retry`).
//!
//! Retries are made by one thread at a time. Once each operation was retried in vain, as it lacks credit at a remote
//! target, all are retried again only after a message has come that may have given some. A flag of the rank says
//! whether one has:
//!
//! | who retries | who takes in messages |
//! |---|---|
//! | takes the operations, sets the flag, fences | gives credit, fences |
//! | operations ask for credit | takes the flag back; if it was set: fences, and rings the doorbell |
//! | gives back those that lack it, fences | |
//! | checks the flag: has them retried unless it is set | |
//!
//! The thread that answers the doorbell may find the operations taken. Then the one that retries sees that the flag was
//! taken back.

use std::collections::{BTreeMap, VecDeque};

use talpf_primitives::{AtomicUsize, Mutex, Ordering, TryLock, fence};

use crate::numbers::{LaneNumber, Rank, Round};
use crate::sync::ResponseFlag;

/// The operations that one rank has to retry.
pub(crate) struct RetryQueue<T> {
    queues: Mutex<Queues<T>>,
    count: AtomicUsize,
    /// Held by the thread that retries.
    retrying: TryLock<()>,
    /// Least number of operations of each destination that were retried in vain, as they lack credit, since one was
    /// added or credit may have been given; that of all if there are fewer. Changed under the lock.
    lacking: AtomicUsize,
}

/// The outcome of an attempt at the operations.
pub(super) struct Retried<T> {
    /// Operations that remain, and their number.
    pub(super) kept: Queues<T>,
    pub(super) count: usize,
    /// Least number of operations of each destination that were retried, or that of all if there are fewer. `None`
    /// unless all that were retried lack credit at a remote target.
    pub(super) lacking: Option<usize>,
}

/// The operations of a target that are retried one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sequence {
    /// Operations of a lane.
    Lane(LaneNumber),
    /// Operations with notifications of an id.
    Notification(u32),
}

/// The target, and the sequence and round, of an operation.
type Destination = (Rank, Sequence, Round);
/// Operations by destination, each queue in order.
pub(super) type Queues<T> = BTreeMap<Destination, VecDeque<T>>;

impl<T> Default for RetryQueue<T> {
    fn default() -> Self {
        let (queues, count) = (Mutex::default(), AtomicUsize::new(0));
        let (retrying, lacking) = (TryLock::default(), AtomicUsize::new(0));
        RetryQueue { queues, count, retrying, lacking }
    }
}

impl<T> RetryQueue<T> {
    pub(crate) fn push(&self, destination: Destination, operation: T) {
        let mut queues = self.queues.lock();
        // Often it is the only one.
        let queue = queues.entry(destination).or_insert_with(|| VecDeque::with_capacity(1));
        queue.push_back(operation);
        self.lacking.store(0, Ordering::Relaxed);
        self.count.store(self.len() + 1, Ordering::Relaxed);
    }

    /// Returns the number of operations. A hint: some may be under retry.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns `true` if all operations lack credit, and no message has come since that may have given some.
    /// `awaits_credit` is the flag of their rank.
    #[inline]
    pub(crate) fn all_lack_credit(&self, awaits_credit: &ResponseFlag) -> bool {
        self.lacking.load(Ordering::Relaxed) >= self.len() && awaits_credit.is_set()
    }

    /// Takes all operations.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> {
        self.take_all().0.into_values().flatten()
    }

    /// Retries operations. Returns `true` if some remain: the caller then checks whether they
    /// [lack credit](Self::all_lack_credit). `awaits_credit` is the flag of their rank.
    ///
    /// A thread that finds another one retrying leaves the operations to that.
    pub(super) fn retry(
        &self,
        awaits_credit: &ResponseFlag,
        retry: impl FnOnce(Queues<T>, usize) -> Retried<T>,
    ) -> bool {
        let Some(retrying) = self.retrying.try_lock() else { return false };
        let (queues, count) = self.take_all();
        let before = match awaits_credit.renew() {
            true => self.lacking.load(Ordering::Relaxed),
            false => 0,
        };
        let Retried { kept, count, lacking } = retry(queues, count);
        let remain = !kept.is_empty();
        if remain {
            self.give_back(kept, count, lacking.map_or(0, |lacking| before + lacking));
        }
        drop(retrying);
        fence(Ordering::SeqCst);
        remain
    }

    /// Takes all operations, and their number.
    fn take_all(&self) -> (Queues<T>, usize) {
        let mut queues = self.queues.lock();
        let count = self.len();
        self.count.store(0, Ordering::Relaxed);
        (std::mem::take(&mut queues), count)
    }

    /// Queues the `count` operations of `kept` before those that were added meanwhile. `lacking` is as in the queue.
    fn give_back(&self, kept: Queues<T>, count: usize, lacking: usize) {
        let mut queues = self.queues.lock();
        let newer = std::mem::take(&mut *queues);
        self.lacking.store(if newer.is_empty() { lacking } else { 0 }, Ordering::Relaxed);
        *queues = joined(kept, newer);
        self.count.store(self.len() + count, Ordering::Relaxed);
    }
}

/// Returns all operations, of each destination those of `first` before the others. The time is that of the fewer
/// ones: those that remain, or those that came meanwhile.
fn joined<T>(mut first: Queues<T>, mut rest: Queues<T>) -> Queues<T> {
    if first.len() < rest.len() {
        for (destination, queue) in first {
            let behind = rest.entry(destination).or_default();
            *behind = in_order(queue, std::mem::take(behind));
        }
        return rest;
    }
    for (destination, queue) in rest {
        let before = first.entry(destination).or_default();
        *before = in_order(std::mem::take(before), queue);
    }
    first
}

/// Returns the operations of `first`, then those of `rest`. The shorter queue is moved.
fn in_order<T>(mut first: VecDeque<T>, mut rest: VecDeque<T>) -> VecDeque<T> {
    if first.len() < rest.len() {
        while let Some(last) = first.pop_back() {
            rest.push_front(last);
        }
        return rest;
    }
    first.append(&mut rest);
    first
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn queues(operations: &[(u64, u32)]) -> Queues<u32> {
        let queue = RetryQueue::default();
        for (round, operation) in operations {
            queue.push((Rank(0), Sequence::Notification(0), Round(*round)), *operation);
        }
        queue.take_all().0
    }

    #[test]
    fn operations_that_are_given_back_come_before_newer_ones_whichever_are_more() {
        let few = [(2, 20), (2, 21)];
        let many = [(1, 10), (2, 22), (2, 23), (2, 24), (3, 30), (4, 40)];
        for (older, newer) in [(&few[..], &many[..]), (&many[..], &few[..])] {
            let retries = RetryQueue::default();
            let awaits_credit = ResponseFlag::default();
            awaits_credit.renew();
            retries.give_back(queues(newer), newer.len(), newer.len() - 1);
            assert!(!retries.all_lack_credit(&awaits_credit), "one was not retried");
            retries.give_back(queues(older), older.len(), 8);
            assert!(!retries.all_lack_credit(&awaits_credit), "the newer ones came meanwhile");
            assert_eq!(retries.len(), 8);
            let in_order = [older, newer].concat();
            let of_round = |round| in_order.iter().filter(move |(of, _)| *of == round);
            let expected = (1..=4).flat_map(of_round).map(|(_, operation)| *operation);
            assert_eq!(retries.drain().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, AtomicU32};
    use loom::thread;

    use super::*;

    /// A rank with an operation, and its target.
    #[derive(Default)]
    struct Shared {
        retries: RetryQueue<()>,
        awaits_credit: ResponseFlag,
        has_credit: AtomicBool,
        landed: AtomicU32,
    }

    impl Shared {
        /// Retries the operation, as long as it is there and may have credit.
        fn retry(&self) {
            while self.retries.len() > 0 && !self.retries.all_lack_credit(&self.awaits_credit) {
                let remain = self.retries.retry(&self.awaits_credit, |queues, count| {
                    if !self.has_credit.load(Ordering::Acquire) {
                        return Retried { kept: queues, count, lacking: Some(count) };
                    }
                    self.landed.fetch_add(count as u32, Ordering::Relaxed);
                    Retried { kept: Queues::new(), count: 0, lacking: None }
                });
                if !remain {
                    break;
                }
            }
        }

        fn give_credit(&self) {
            self.has_credit.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.awaits_credit.take() {
                fence(Ordering::SeqCst);
                self.retry();
            }
        }
    }

    #[test]
    fn loom_an_operation_lands_once_there_is_credit() {
        loom::model(|| {
            let shared = Arc::new(Shared::default());
            shared.retries.push((Rank(0), Sequence::Notification(0), Round(0)), ());
            let target = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.give_credit())
            };
            shared.retry();
            target.join().unwrap();
            assert_eq!(shared.landed.load(Ordering::Relaxed), 1, "an operation is forgotten");
        });
    }
}
