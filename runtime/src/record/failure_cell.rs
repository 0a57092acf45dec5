//! The failure of a task, in its record.
#![allow(unsafe_code, reason = "keeps an `Arc` of the failure in an atomic pointer")]

use std::ptr;
use std::sync::Arc;

use talpf_primitives::{AtomicPtr, Ordering};

use crate::error::Failure;

/// An `Arc` of the first failure of a task, or nothing. Any thread with a unit of the task's
/// completion may set and read it; the thread that completes the task takes it out.
#[derive(Default)]
pub(crate) struct FailureCell(AtomicPtr<Failure>);

impl FailureCell {
    /// Returns the failure, which stays in the cell.
    ///
    /// # Safety
    /// The caller has a unit of the task's completion, or completes it and has not taken the
    /// failure.
    #[inline]
    pub(crate) unsafe fn get(&self) -> Option<Arc<Failure>> {
        let failure = self.0.load(Ordering::Acquire);
        if failure.is_null() {
            return None;
        }
        // SAFETY: the cell owns one count of this `Arc` until the thread that completes the task
        // takes it, which is not before the caller has given up its unit.
        unsafe { Arc::increment_strong_count(failure) };
        // SAFETY: the count was added above.
        Some(unsafe { reclaim(failure) })
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        !self.0.load(Ordering::Acquire).is_null()
    }

    /// Sets the failure, unless one is set.
    #[cold]
    pub(crate) fn set(&self, failure: &Arc<Failure>) {
        let raw = Arc::into_raw(Arc::clone(failure)).cast_mut();
        let empty = ptr::null_mut();
        if self.0.compare_exchange(empty, raw, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // The first failure counts.
            // SAFETY: the cell has not taken the count.
            drop(unsafe { reclaim(raw) });
        }
    }

    /// Takes the failure out. Called by the thread that completes the task.
    #[inline]
    pub(crate) fn take(&self) -> Option<Arc<Failure>> {
        if !self.is_set() {
            return None;
        }
        let failure = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the swap has taken the count of the cell.
        (!failure.is_null()).then(|| unsafe { reclaim(failure) })
    }
}

/// # Safety
/// The pointer is from `Arc::into_raw`, and the caller gives up one count.
unsafe fn reclaim(failure: *mut Failure) -> Arc<Failure> {
    // SAFETY: by the contract of this function.
    unsafe { Arc::from_raw(failure) }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::record::EventCounter;

    fn failure(reason: usize) -> Arc<Failure> {
        Arc::new(Failure::outside_tasks("a group", reason.to_string()))
    }

    /// Fails a task through two units; the thread that gives up the last one completes it.
    #[test]
    fn of_two_failures_one_is_taken_and_none_is_lost() {
        loom::model(|| {
            let shared = Arc::new((FailureCell::default(), EventCounter::new()));
            shared.1.set(2);
            let failures = [failure(0), failure(1)];
            let fail = |own: usize| {
                let (shared, failure) = (Arc::clone(&shared), Arc::clone(&failures[own]));
                move || {
                    let (cell, units) = &*shared;
                    cell.set(&failure);
                    drop(failure);
                    // SAFETY: this thread's unit is given up below.
                    let seen = unsafe { cell.get() }.expect("it has failed");
                    let taken = if units.take(1) { Some(cell.take()) } else { None };
                    (seen, taken)
                }
            };
            let other = thread::spawn(fail(1));
            let (seen, taken) = fail(0)();
            let (other_seen, other_taken) = other.join().unwrap();
            let taken = taken.xor(other_taken).flatten().expect("one completes it, with a failure");
            assert!(Arc::ptr_eq(&seen, &taken) && Arc::ptr_eq(&other_seen, &taken));
            drop((seen, other_seen));
            assert!(shared.0.take().is_none());
            for failure in failures {
                let counts = if Arc::ptr_eq(&failure, &taken) { 2 } else { 1 };
                assert_eq!(Arc::strong_count(&failure), counts);
            }
        });
    }
}
