//! Trampoline: runs the steps of collectives on a thread one after another.
//!
//! A collective that continues may end messages of others on its thread, so that those continue,
//! too. They run one after another, not nested: the stack holds one of them, however many are under
//! way.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// A collective that continues.
pub(super) trait Continue {
    /// Runs the steps up to the next wait or the end.
    fn resume(self: Arc<Self>);
}

thread_local! {
    static WAITING: RefCell<VecDeque<Arc<dyn Continue>>> = const { RefCell::new(VecDeque::new()) };
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Resumes a collective on this thread: at once, or after those that already wait for it. The first
/// panic of any of them goes on once all have run.
pub(super) fn resume_on_trampoline(collective: Arc<dyn Continue>) {
    WAITING.with_borrow_mut(|waiting| waiting.push_back(collective));
    if UNDER_WAY.replace(true) {
        return;
    }
    let mut panicked = None;
    while let Some(next) = WAITING.with_borrow_mut(VecDeque::pop_front) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| next.resume())) {
            match panicked {
                None => panicked = Some(payload),
                // Its drop may panic again.
                Some(_) => std::mem::forget(payload),
            }
        }
    }
    UNDER_WAY.set(false);
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// Counts in `ended` the collectives that have run. The outer one resumes `inner` others first.
    struct Panics {
        inner: usize,
        ended: Arc<AtomicUsize>,
    }

    impl Continue for Panics {
        fn resume(self: Arc<Self>) {
            let before = self.ended.load(Relaxed);
            for _ in 0..self.inner {
                resume_on_trampoline(Arc::new(Panics { inner: 0, ended: Arc::clone(&self.ended) }));
            }
            assert_eq!(self.ended.load(Relaxed), before, "not inside this one");
            self.ended.store(before + 1, Relaxed);
            resume_unwind(Box::new("inside"));
        }
    }

    #[test]
    fn collectives_that_wait_run_when_one_panics() {
        let ended = Arc::new(AtomicUsize::new(0));
        let outer = || Arc::new(Panics { inner: 3, ended: Arc::clone(&ended) });
        for round in 1..3 {
            let result = catch_unwind(AssertUnwindSafe(|| resume_on_trampoline(outer())));
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "inside");
            assert_eq!(ended.load(Relaxed), 4 * round);
        }
    }
}
