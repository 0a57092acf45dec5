//! The private copies of one reduction, and their folding into its region.
//!
//! Without an order there is a copy for every worker that has run one of the tasks: a task takes
//! the copy of its worker, or begins a new one, and leaves it with the worker it ends on. Whenever
//! no task of the reduction is open the copies are folded into the region. In order every task has
//! a copy of its own, folded when those of all tasks spawned before it have been. A replayed task
//! begins with a copy in every step, which is folded at its end, or in order. One thread folds at a
//! time, and takes over the copies that others have to fold meanwhile.
//!
//! The region belongs to the reduction as long as one of its accesses is open, and a task leaves
//! before its access closes. So a task that waits for all of them finds the region complete.
#![allow(unsafe_code, reason = "writes the region that a reduction has to itself")]

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU64, Mutex, MutexGuard, Ordering};

use super::operator::Operator;
use crate::callback;
use crate::scheduler;

pub(super) type PrivateCopy<T> = Box<[T]>;
type KeptCopy<T> = Mutex<Option<PrivateCopy<T>>>;

/// Name of an operator in reports.
const OPERATOR: &str = "an operator of a reduction";

pub(super) struct Copies<T, O> {
    target: Target<T>,
    /// Number of tasks that have joined and not left.
    open: AtomicU64,
    /// Copies kept by worker, and last by other threads; none in order.
    kept: Box<[CachePadded<KeptCopy<T>>]>,
    queue: Mutex<FoldQueue<T>>,
    operator: PhantomData<fn() -> O>,
}

/// Copies to fold, in order or as they arrive.
struct FoldQueue<T> {
    /// Numbers, if in order, of tasks that have joined, and of those whose copies are due or
    /// folded.
    joined: u64,
    passed: u64,
    /// Tasks that have left before earlier ones, with their copies.
    left: BTreeMap<u64, Option<PrivateCopy<T>>>,
    /// Copies that may be folded now.
    due: VecDeque<PrivateCopy<T>>,
    /// `true` while a thread folds the due copies, which it does before its own access closes.
    folds: bool,
}

impl<T> FoldQueue<T> {
    fn new() -> Self {
        FoldQueue {
            joined: 0,
            passed: 0,
            left: BTreeMap::new(),
            due: VecDeque::new(),
            folds: false,
        }
    }

    /// Adds the copy of a task, in order.
    fn add(&mut self, number: u64, copy: Option<PrivateCopy<T>>) {
        self.left.insert(number, copy);
        while let Some(copy) = self.left.remove(&self.passed) {
            self.passed += 1;
            self.due.extend(copy);
        }
    }
}

impl<T: Send, O: Operator<T>> Copies<T, O> {
    pub(super) fn new(target: Target<T>, workers: usize) -> Self {
        let workers = if O::IN_ORDER { 0 } else { workers + 1 };
        Copies {
            target,
            open: AtomicU64::new(0),
            kept: (0..workers).map(|_| CachePadded::new(Mutex::new(None))).collect(),
            queue: Mutex::new(FoldQueue::new()),
            operator: PhantomData,
        }
    }

    /// Adds a task and returns its number. Called in the order of the spawns.
    pub(super) fn join(&self) -> u64 {
        if O::IN_ORDER {
            let mut queue = self.queue.lock();
            queue.joined += 1;
            return queue.joined - 1;
        }
        self.open.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a copy for a task that begins.
    pub(super) fn take(&self) -> PrivateCopy<T> {
        let kept = self.mine().and_then(|slot| slot.lock().take());
        kept.unwrap_or_else(|| (0..self.target.len()).map(|_| O::identity()).collect())
    }

    /// Ends a task, with its copy if it ran.
    ///
    /// **Errors**: the text of the operator's panic. The task is counted nevertheless.
    pub(super) fn leave(&self, number: u64, copy: Option<PrivateCopy<T>>) -> Result<(), String> {
        if O::IN_ORDER {
            let mut queue = self.queue.lock();
            queue.add(number, copy);
            return self.fold_due(queue);
        }
        let kept = callback::call(OPERATOR, || copy.into_iter().for_each(|copy| self.keep(copy)));
        // Release for the copy this task has left, acquire for those of the others.
        if self.open.fetch_sub(1, Ordering::AcqRel) > 1 {
            return kept;
        }
        // Another task may join, run and leave meanwhile.
        let mut queue = self.queue.lock();
        queue.due.extend(self.kept.iter().filter_map(|slot| slot.lock().take()));
        kept.and(self.fold_due(queue))
    }

    /// Ends a step of a replayed task; all of these join before the first step. Any of them may be
    /// the last before a task reads the region.
    ///
    /// **Errors**: the text of the operator's panic.
    pub(super) fn add_step(
        &self,
        number: u64,
        step: u64,
        copy: PrivateCopy<T>,
    ) -> Result<(), String> {
        let mut queue = self.queue.lock();
        if O::IN_ORDER {
            let number = step * queue.joined + number;
            queue.add(number, Some(copy));
        } else {
            queue.due.push_back(copy);
        }
        self.fold_due(queue)
    }

    /// Folds the due copies, and those that become due meanwhile, unless another thread does so.
    /// Operators are code of the program, so the lock is not held.
    ///
    /// **Errors**: the first panic of an operator. All other copies are folded nevertheless.
    fn fold_due<'a>(&'a self, mut queue: MutexGuard<'a, FoldQueue<T>>) -> Result<(), String> {
        let mut folded = Ok(());
        if std::mem::replace(&mut queue.folds, true) {
            return folded;
        }
        while let Some(copy) = queue.due.pop_front() {
            drop(queue);
            let this = callback::call(OPERATOR, || self.fold(copy));
            folded = folded.and(this);
            queue = self.queue.lock();
        }
        queue.folds = false;
        folded
    }

    /// Leaves a copy with this worker.
    fn keep(&self, mut copy: PrivateCopy<T>) {
        while let Some(slot) = self.mine() {
            let mut kept = slot.lock();
            let Some(other) = kept.take() else {
                *kept = Some(copy);
                return;
            };
            drop(kept);
            combine::<T, O>(&mut copy, other);
        }
    }

    /// Returns the kept copy of this thread's worker.
    fn mine(&self) -> Option<&KeptCopy<T>> {
        let last = self.kept.len().checked_sub(1)?;
        let index = scheduler::own_index().map_or(last, |index| index.min(last));
        Some(&self.kept[index])
    }

    /// Folds a copy into the region. Called by the one thread that folds.
    fn fold(&self, copy: PrivateCopy<T>) {
        let mut copy = copy.into_vec().into_iter();
        for row in 0..self.target.rows {
            // SAFETY: the reduction has the region to itself while any access of it is open, which
            // that of the caller is, and `fold_due` lets one thread fold at a time.
            let row = unsafe { &mut *self.target.row(row) };
            row.iter_mut().zip(copy.by_ref()).for_each(|(into, from)| O::combine(into, from));
        }
    }
}

fn combine<T, O: Operator<T>>(into: &mut [T], from: PrivateCopy<T>) {
    into.iter_mut().zip(from.into_vec()).for_each(|(into, from)| O::combine(into, from));
}

/// The region of a reduction, rows x cols.
#[derive(Clone)]
pub(super) struct Target<T> {
    first: *mut T,
    pub(super) rows: usize,
    pub(super) cols: usize,
    stride: usize,
}

// SAFETY: stands for a `&mut` to the elements, as a guard does, which `Copies` uses by one thread
// at a time.
unsafe impl<T: Send> Send for Target<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Target<T> {}

impl<T> Target<T> {
    /// # Safety
    /// Row for row, `first` and the elements that follow are of an array, which lives while an
    /// access to them is open; and one is open whenever a task leaves the reduction or adds a copy.
    pub(super) unsafe fn new(first: *mut T, rows: usize, cols: usize, stride: usize) -> Self {
        Target { first, rows, cols, stride }
    }

    fn len(&self) -> usize {
        self.rows * self.cols
    }

    fn row(&self, row: usize) -> *mut [T] {
        let start = self.first.wrapping_add(row * self.stride);
        std::ptr::slice_from_raw_parts_mut(start, self.cols)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use crate::operator::{InOrder, Sum};
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;

    /// Ends three tasks on two threads; a thread that has seen all of them closed sees the whole
    /// sum.
    fn the_region_is_complete_when_all_have_closed<O: Operator<u64>>() {
        loom::model(|| {
            let region: &mut [u64] = Box::leak(Box::new([100]));
            let first = region.as_mut_ptr();
            // SAFETY: the element is leaked.
            let target = unsafe { Target::new(first, 1, 1, 1) };
            let copies = Arc::new(Copies::<u64, O>::new(target, 0));
            let numbers = [copies.join(), copies.join(), copies.join()];
            let end = move |copies: &Copies<u64, O>, task: usize| {
                let mut copy = copies.take();
                copy[0] += 1 << task;
                copies.leave(numbers[task], Some(copy)).unwrap();
            };
            let closed = Arc::new(AtomicBool::new(false));
            let other = {
                let (copies, closed) = (copies.clone(), closed.clone());
                loom::thread::spawn(move || {
                    end(&copies, 1);
                    closed.store(true, std::sync::atomic::Ordering::Release);
                })
            };
            end(&copies, 2);
            end(&copies, 0);
            if closed.load(std::sync::atomic::Ordering::Acquire) {
                // SAFETY: the region was leaked above, and nobody writes it any more.
                assert_eq!(unsafe { *first }, 107);
            }
            other.join().unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { *first }, 107);
        });
    }

    #[test]
    fn copies_of_workers() {
        the_region_is_complete_when_all_have_closed::<Sum>();
    }

    #[test]
    fn copies_in_order() {
        the_region_is_complete_when_all_have_closed::<InOrder<Sum>>();
    }
}
