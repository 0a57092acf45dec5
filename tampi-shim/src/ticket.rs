//! What an operation under way and whoever waits for it share.
//!
//! The transport holds the [`Ticket`] and completes it once. The other half, [`Awaited`], is
//! polled, or says once what is to be done with the result.
//!
//! ```text
//!            ┌── set ──► THEN ──┐
//! PENDING ◄──┘ unset            ├── complete ──► DONE
//!    └──────────────────────────┘
//! ```
//!
//! `result` belongs to the ticket before `DONE` and to the other half after. `then` belongs to
//! the other half in `PENDING`; whoever moves the word out of `THEN` may take it.
#![allow(unsafe_code, reason = "hands a result over by a state word")]

use std::cell::RefCell;
use std::task::Waker;

use crate::error::Error;
use crate::status::Status;
use crate::sync::{Arc, AtomicU8, Ordering, UnsafeCell};

const PENDING: u8 = 0;
const THEN: u8 = 1;
const DONE: u8 = 2;

type Outcome = Result<Status, Error>;

/// What is to be done when the operation has ended.
enum Then {
    Wake(Waker),
    Call(Box<dyn FnOnce(Outcome) + Send>),
}

struct Shared {
    state: AtomicU8,
    result: UnsafeCell<Option<Outcome>>,
    then: UnsafeCell<Option<Then>>,
}

// SAFETY: the state word says which half may touch which cell; see the module text.
unsafe impl Sync for Shared {}

/// The transport's half. Dropped, it completes with [`Error::Abandoned`].
pub(crate) struct Ticket {
    shared: Option<Arc<Shared>>,
}

/// The other half.
pub(crate) struct Awaited {
    shared: Option<Arc<Shared>>,
}

/// Memory of operations that have ended, kept by each thread for its next ones.
const SPARE: usize = 256;

thread_local! {
    static SPARES: RefCell<Vec<Arc<Shared>>> = const { RefCell::new(Vec::new()) };
}

/// Both halves of a new operation.
pub(crate) fn ticket() -> (Ticket, Awaited) {
    let shared = SPARES.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
        Arc::new(Shared {
            state: AtomicU8::new(PENDING),
            result: UnsafeCell::new(None),
            then: UnsafeCell::new(None),
        })
    });
    (Ticket { shared: Some(Arc::clone(&shared)) }, Awaited { shared: Some(shared) })
}

impl Ticket {
    /// Ends the operation. From now on the transport does not touch its buffer.
    pub(crate) fn complete(mut self, outcome: Outcome) {
        if let Some(shared) = self.shared.take() {
            shared.complete(outcome);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.complete(Err(Error::Abandoned));
        }
    }
}

impl Shared {
    #[inline]
    fn has_ended(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Replaces what is to be done; for the other half, which is not shared. Gives it back if the
    /// operation has ended.
    fn set(&self, then: Then) -> Result<(), Then> {
        let swap =
            |from, to| self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if self.state.load(Ordering::Acquire) == THEN && swap(THEN, PENDING).is_ok() {
            drop(self.take_then());
        }
        if self.has_ended() {
            return Err(then);
        }
        // SAFETY: the word is `PENDING`, or the ticket has just made it `DONE` and then leaves the
        // cell alone; nobody else sets it.
        self.then.with_mut(|cell| unsafe { *cell = Some(then) });
        match swap(PENDING, THEN) {
            Ok(_) => Ok(()),
            Err(_) => self.take_then().map_or(Ok(()), Err),
        }
    }

    fn complete(&self, outcome: Outcome) {
        // SAFETY: the state is not `DONE`: there is one ticket, and it completes once.
        self.result.with_mut(|result| unsafe { *result = Some(outcome) });
        if self.state.swap(DONE, Ordering::AcqRel) != THEN {
            return;
        }
        match self.take_then() {
            Some(Then::Wake(waker)) => waker.wake(),
            Some(Then::Call(call)) => call(self.take_result()),
            None => {}
        }
    }

    /// For whoever moved the word out of `THEN`.
    fn take_then(&self) -> Option<Then> {
        // SAFETY: the caller alone moved the word out of `THEN`, and the other half sets the cell
        // only after it has seen `PENDING`.
        self.then.with_mut(|then| unsafe { (*then).take() })
    }

    /// In `DONE`, for the half that looks after the result.
    fn take_result(&self) -> Outcome {
        // SAFETY: in `DONE` the ticket is gone; after a call was set the other half is, too, and
        // else the other half calls this, which is not shared.
        let result = self.result.with_mut(|result| unsafe { (*result).take() });
        result.unwrap_or(Err(Error::Abandoned))
    }
}

impl Awaited {
    /// Whether the operation has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.has_ended())
    }

    /// The result, once; else `waker` will be woken.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Option<Outcome> {
        let shared = self.shared.take()?;
        if !shared.has_ended() && shared.set(Then::Wake(waker.clone())).is_ok() {
            self.shared = Some(shared);
            return None;
        }
        let result = shared.take_result();
        recycle(shared);
        Some(result)
    }

    /// Calls `call` with the result: here if the operation has ended, else where it ends.
    pub(crate) fn call(mut self, call: Box<dyn FnOnce(Outcome) + Send>) {
        if let Some(shared) = self.shared.take()
            && let Err(Then::Call(call)) = shared.set(Then::Call(call))
        {
            call(shared.take_result());
        }
    }
}

/// Keeps the memory of an operation whose result was taken, unless the ticket still goes.
fn recycle(mut shared: Arc<Shared>) {
    // loom's cells belong to one run of a model.
    if !cfg!(talpf_loom)
        && let Some(alone) = Arc::get_mut(&mut shared)
    {
        alone.state = AtomicU8::new(PENDING);
        SPARES.with_borrow_mut(|spares| {
            if spares.len() < SPARE {
                spares.push(shared);
            }
        });
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use loom::thread;

    use super::*;
    use crate::rank::Rank;
    use crate::tag::Tag;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn status() -> Status {
        Status { source: Rank(3), tag: Tag(4), bytes: 5, cancelled: false }
    }

    #[test]
    fn a_result_is_found_or_its_waker_is_woken() {
        loom::model(|| {
            let (ticket, mut awaited) = ticket();
            let completer = thread::spawn(move || ticket.complete(Ok(status())));
            let count = std::sync::Arc::new(Count::default());
            let waker = Waker::from(std::sync::Arc::clone(&count));
            // Twice, so that a waker is replaced.
            let mut found = awaited.poll(&waker).or_else(|| awaited.poll(&waker));
            completer.join().unwrap();
            if found.is_none() {
                assert!(count.0.load(Ordering::SeqCst) >= 1, "woken");
                found = awaited.poll(&waker);
            }
            assert_eq!(found.expect("it has ended").ok(), Some(status()));
        });
    }

    #[test]
    fn a_call_is_made_once_wherever_the_end_comes() {
        loom::model(|| {
            let (ticket, awaited) = ticket();
            let completer = thread::spawn(move || ticket.complete(Ok(status())));
            let count = std::sync::Arc::new(AtomicUsize::new(0));
            let counted = std::sync::Arc::clone(&count);
            awaited.call(Box::new(move |result| {
                assert_eq!(result.ok(), Some(status()));
                counted.fetch_add(1, Ordering::SeqCst);
            }));
            completer.join().unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 1);
        });
    }

    #[test]
    fn a_ticket_that_is_dropped_says_so() {
        loom::model(|| {
            let (ticket, mut awaited) = ticket();
            let completer = thread::spawn(move || drop(ticket));
            let waker = Waker::from(std::sync::Arc::new(Count::default()));
            let found = awaited.poll(&waker);
            completer.join().unwrap();
            let found = found.or_else(|| awaited.poll(&waker));
            assert!(matches!(found, Some(Err(Error::Abandoned))));
        });
    }
}
