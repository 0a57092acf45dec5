//! Trampoline: runs the steps of collectives on a thread one after another.
//!
//! A collective that continues may end messages of others on its thread, so that those continue,
//! too. They run one after another, not nested: the stack holds one of them, however many are under
//! way.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Closure = Box<dyn FnOnce()>;

thread_local! {
    static WAITING: RefCell<VecDeque<Closure>> = const { RefCell::new(VecDeque::new()) };
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `closure` on this thread: at once, or after those that already wait for it. The first panic
/// of any of them is resumed once all have run.
pub(super) fn run_on_trampoline(closure: impl FnOnce() + 'static) {
    WAITING.with_borrow_mut(|waiting| waiting.push_back(Box::new(closure)));
    if UNDER_WAY.replace(true) {
        return;
    }
    let mut panicked = None;
    while let Some(closure) = WAITING.with_borrow_mut(VecDeque::pop_front) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(closure)) {
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
    use super::*;

    #[test]
    fn closures_that_wait_run_when_one_panics() {
        let had = std::rc::Rc::new(Cell::new(0));
        let inner = had.clone();
        let result = catch_unwind(AssertUnwindSafe(|| {
            run_on_trampoline(move || {
                for _ in 0..3 {
                    let had = inner.clone();
                    run_on_trampoline(move || {
                        had.set(had.get() + 1);
                        resume_unwind(Box::new("inside"));
                    });
                }
                assert_eq!(inner.get(), 0, "not inside this one");
            });
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "inside");
        assert_eq!(had.get(), 3);
        let next = had.clone();
        run_on_trampoline(move || next.set(4));
        assert_eq!(had.get(), 4);
    }
}
