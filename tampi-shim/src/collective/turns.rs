//! Who goes on next, on a thread that ends messages.
//!
//! A collective that goes on may end messages of others on its thread, which go on in their turn.
//! They do so one after the other, not inside each other: the stack holds one of them, however many
//! are under way.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Turn = Box<dyn FnOnce()>;

thread_local! {
    static WAITING: RefCell<VecDeque<Turn>> = const { RefCell::new(VecDeque::new()) };
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Makes `turn` happen: here, or once those have that wait on this thread. The first panic of any
/// goes on once all have had theirs.
pub(super) fn take_turn(turn: impl FnOnce() + 'static) {
    WAITING.with_borrow_mut(|waiting| waiting.push_back(Box::new(turn)));
    if UNDER_WAY.replace(true) {
        return;
    }
    let mut panicked = None;
    while let Some(turn) = WAITING.with_borrow_mut(VecDeque::pop_front) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(turn)) {
            match panicked {
                None => panicked = Some(payload),
                // It may panic as it drops.
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
    fn those_that_wait_have_their_turns_when_one_panics() {
        let had = std::rc::Rc::new(Cell::new(0));
        let inner = had.clone();
        let result = catch_unwind(AssertUnwindSafe(|| {
            take_turn(move || {
                for _ in 0..3 {
                    let had = inner.clone();
                    take_turn(move || {
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
        take_turn(move || next.set(4));
        assert_eq!(had.get(), 4);
    }
}
