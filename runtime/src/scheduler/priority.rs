//! Ready tasks with a priority other than 0 or a cost.

use std::collections::{BTreeMap, VecDeque};

use talpf_primitives::{AtomicUsize, Mutex, Ordering};

use crate::record::{RecordId, Urgency};

/// Buckets by priority and cost, first in, first out in each.
///
/// Workers read the two lengths on every round and take the lock only if there is something.
#[derive(Default)]
pub(crate) struct PriorityQueue {
    above: AtomicUsize,
    below: AtomicUsize,
    buckets: Mutex<BTreeMap<Urgency, VecDeque<RecordId>>>,
}

impl PriorityQueue {
    pub(crate) fn push(&self, urgency: Urgency, task: RecordId) {
        let mut buckets = self.buckets.lock();
        buckets.entry(urgency).or_default().push_back(task);
        self.length(urgency > Urgency::default()).fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the first task of the highest priority above 0.
    #[inline]
    pub(crate) fn pop_above(&self) -> Option<RecordId> {
        self.pop(true)
    }

    /// Takes the first task of the highest priority below 0.
    #[inline]
    pub(crate) fn pop_below(&self) -> Option<RecordId> {
        self.pop(false)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.above.load(Ordering::Relaxed) + self.below.load(Ordering::Relaxed)
    }

    fn length(&self, above: bool) -> &AtomicUsize {
        if above { &self.above } else { &self.below }
    }

    #[inline]
    fn pop(&self, above: bool) -> Option<RecordId> {
        if self.length(above).load(Ordering::Relaxed) == 0 { None } else { self.take(above) }
    }

    #[cold]
    fn take(&self, above: bool) -> Option<RecordId> {
        let mut buckets = self.buckets.lock();
        let mut highest = buckets.last_entry()?;
        if (*highest.key() > Urgency::default()) != above {
            return None;
        }
        let task = highest.get_mut().pop_front();
        if highest.get().is_empty() {
            highest.remove();
        }
        self.length(above).fetch_sub(1, Ordering::Relaxed);
        task
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn highest_first_then_in_order() {
        let queue = PriorityQueue::default();
        for (priority, task) in [(1, 10), (5, 50), (-2, 90), (5, 51), (1, 11), (-1, 91)] {
            queue.push(Urgency::default().with_priority(priority), RecordId::of_test(task));
        }
        let above: Vec<u32> = std::iter::from_fn(|| queue.pop_above()).map(|t| t.index()).collect();
        assert_eq!(above, [50, 51, 10, 11]);
        let below: Vec<u32> = std::iter::from_fn(|| queue.pop_below()).map(|t| t.index()).collect();
        assert_eq!(below, [91, 90]);
        assert!(queue.is_empty());
    }
}
