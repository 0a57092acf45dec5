//! The ready tasks that only their worker and thieves take.
//!
//! A *queue* has the tasks that were spawned or stolen, or begin a block of steps; a *stack* has
//! those that a closing access made ready, while the data of the task that closed it is in the
//! cache. The worker takes the newest of the stack, then the oldest of the queue; thieves take the
//! oldest of the queue, then that of the stack: the task farthest from the worker's cache.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `app.jacobi_4096` | +97 % | -2 % |
//! | `app.jacobi_4096_replay` | +59 % | -1 % |
//! | `runtime.stencil_replay` | +19 % | 0 % |
//! | `app.jacobi_1024` | +15 % | +1 % |

use std::cell::Cell;

use crossbeam_deque::{Steal, Stealer, Worker};

use crate::record::RecordId;

/// The deques, as their worker uses them.
pub(in crate::scheduler) struct Deques {
    queue: Worker<RecordId>,
    stack: Worker<RecordId>,
    /// `true` while the stack may have a task: workers without released tasks do not touch it.
    is_stacked: Cell<bool>,
    /// Most tasks that are stolen at once.
    batch: usize,
    stealers: Stealers,
}

impl Deques {
    /// Creates empty deques that take at most `batch` tasks at once from other queues.
    pub(in crate::scheduler) fn new(batch: usize) -> Self {
        let (queue, stack) = (Worker::new_fifo(), Worker::new_lifo());
        let stealers = Stealers { queue: queue.stealer(), stack: stack.stealer() };
        Deques { queue, stack, is_stacked: Cell::new(false), batch, stealers }
    }

    /// Returns the deques as thieves use them.
    pub(in crate::scheduler) fn stealers(&self) -> Stealers {
        self.stealers.clone()
    }

    /// Adds a task that runs after all others.
    #[inline]
    pub(in crate::scheduler) fn push_last(&self, task: RecordId) {
        self.queue.push(task);
    }

    /// Adds a task that runs before all others.
    #[inline]
    pub(in crate::scheduler) fn push_first(&self, task: RecordId) {
        self.stack.push(task);
        self.is_stacked.set(true);
    }

    #[inline]
    pub(in crate::scheduler) fn pop(&self) -> Option<RecordId> {
        if self.is_stacked.get() {
            let newest = self.stack.pop();
            if newest.is_some() {
                return newest;
            }
            self.is_stacked.set(false);
        }
        self.queue.pop()
    }

    /// Takes the task that has waited longest, of the stack or of the queue first.
    pub(in crate::scheduler) fn pop_oldest(&self, of_stack: bool) -> Option<RecordId> {
        let bottom = || match self.stack.is_empty() {
            true => None,
            false => until_settled(|| self.stealers.stack.steal()),
        };
        match of_stack {
            true => bottom().or_else(|| self.queue.pop()),
            false => self.queue.pop().or_else(bottom),
        }
    }

    pub(in crate::scheduler) fn len(&self) -> usize {
        self.queue.len() + self.stack.len()
    }

    pub(in crate::scheduler) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.stack.is_empty()
    }

    /// Takes the first task of another queue, and moves some of the rest into this one.
    pub(in crate::scheduler) fn take_some(
        &self,
        take: impl Fn(&Worker<RecordId>, usize) -> Steal<RecordId>,
    ) -> Option<RecordId> {
        until_settled(|| take(&self.queue, self.batch))
    }
}

/// The deques, as thieves use them.
#[derive(Clone)]
pub(crate) struct Stealers {
    queue: Stealer<RecordId>,
    stack: Stealer<RecordId>,
}

impl Stealers {
    pub(in crate::scheduler) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.stack.is_empty()
    }

    pub(in crate::scheduler) fn len(&self) -> usize {
        self.queue.len() + self.stack.len()
    }

    /// Moves the oldest tasks to `to`, except the first of them, which is returned.
    pub(in crate::scheduler) fn steal_some(&self, to: &Deques) -> Option<RecordId> {
        let from = if self.queue.is_empty() { &self.stack } else { &self.queue };
        to.take_some(|to, most| from.steal_batch_with_limit_and_pop(to, most))
    }
}

/// Repeats a steal until it has not lost a race.
pub(in crate::scheduler) fn until_settled<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::super::steal_batch::BATCH;
    use super::*;

    fn filled() -> Deques {
        let deques = Deques::new(BATCH);
        [0, 1].into_iter().for_each(|task| deques.push_last(RecordId::of_test(task)));
        [2, 3].into_iter().for_each(|task| deques.push_first(RecordId::of_test(task)));
        deques
    }

    fn rest(first: Option<RecordId>, deques: &Deques) -> Vec<u32> {
        let rest = std::iter::from_fn(|| deques.pop());
        first.into_iter().chain(rest).map(RecordId::index).collect()
    }

    #[test]
    fn the_worker_takes_the_newest_that_was_released_and_the_oldest_of_others() {
        assert_eq!(rest(None, &filled()), [3, 2, 0, 1]);
    }

    #[test]
    fn the_oldest_of_either_kind_comes_first_in_alternation() {
        let deques = filled();
        assert_eq!(rest(deques.pop_oldest(true), &deques), [2, 3, 0, 1]);
        let deques = filled();
        assert_eq!(rest(deques.pop_oldest(false), &deques), [0, 3, 2, 1]);
    }

    #[test]
    fn the_oldest_of_the_other_kind_stands_in() {
        let deques = Deques::new(BATCH);
        deques.push_first(RecordId::of_test(7));
        assert_eq!(rest(deques.pop_oldest(false), &deques), [7]);
        deques.push_last(RecordId::of_test(8));
        assert_eq!(rest(deques.pop_oldest(true), &deques), [8]);
        assert!(deques.pop_oldest(true).is_none() && deques.pop_oldest(false).is_none());
    }

    #[test]
    fn a_thief_takes_from_the_far_end() {
        let (victim, thief) = (filled(), Deques::new(BATCH));
        let stolen = victim.stealers().steal_some(&thief);
        assert_eq!(stolen.map(RecordId::index), Some(0));
        assert_eq!(victim.len() + thief.len(), 3);
        while victim.stealers().queue.steal().success().is_some() {}
        rest(None, &thief);
        assert_eq!(victim.stealers().steal_some(&thief).map(RecordId::index), Some(2));
    }
}
