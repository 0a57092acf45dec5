//! Who goes on next, on a thread that ends messages.
//!
//! A collective that goes on may end messages of others on its thread, which go on in their turn.
//! They do so one after the other, not inside each other: the stack holds one of them, however many
//! are under way.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

type Turn = Box<dyn FnOnce()>;

thread_local! {
    static WAITING: RefCell<VecDeque<Turn>> = const { RefCell::new(VecDeque::new()) };
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Makes `turn` happen: here, or once those have that wait on this thread.
pub(super) fn take_turn(turn: impl FnOnce() + 'static) {
    WAITING.with_borrow_mut(|waiting| waiting.push_back(Box::new(turn)));
    if UNDER_WAY.replace(true) {
        return;
    }
    let _over = Over;
    while let Some(turn) = WAITING.with_borrow_mut(VecDeque::pop_front) {
        turn();
    }
}

/// Nobody has the turn any more, also if somebody has panicked: what still waits has it next time.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        UNDER_WAY.set(false);
    }
}
