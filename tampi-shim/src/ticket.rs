//! What an operation under way and whoever waits for it share.
//!
//! The transport holds the [`Ticket`] and completes it once. The other half, [`Awaited`], is
//! polled, or says once what is to be done with the result.
//!
//! ```text
//!    ┌───────────── complete ─────────────┐
//! PENDING ─ poll ─► WAITED ── complete ──►DONE ── waker taken ──► TOLD
//!    │    ◄─ poll ──┘                      └───── result taken ──► LEFT
//!    └─ call, drop ─► LET_GO ─ complete ─► DONE
//! ```
//!
//! - `result` belongs to the ticket before `DONE` and to the other half after; to the ticket again
//!   if that half has let go.
//! - `then` belongs to the other half in `PENDING`, and to the ticket once it has moved the word out
//!   of `WAITED` or `LET_GO`. The other half takes a waker back by moving the word to `PENDING`.
//! - The memory is freed by whoever uses it last: out of `PENDING` the ticket does not touch it after
//!   `DONE`, so that is the other half; out of `LET_GO` it is the ticket; out of `WAITED` each half
//!   writes when it is done, and the one that finds the other's word frees.
#![allow(unsafe_code, reason = "hands a result over by a state word")]

use std::cell::RefCell;
use std::ptr::NonNull;
use std::task::Waker;

use talpf_primitives::{AtomicU8, Ordering, UnsafeCell};

use crate::error::Error;
use crate::foreign::call;
use crate::status::{Packed, Status};

/// Nobody waits.
const PENDING: u8 = 0;
/// There is a waker.
const WAITED: u8 = 1;
/// The other half is gone, and may have left a call.
const LET_GO: u8 = 2;
const DONE: u8 = 3;
/// The ticket has taken the waker.
const TOLD: u8 = 4;
/// The other half has taken the result.
const LEFT: u8 = 5;

/// How an operation has ended, in few words.
pub(crate) type Ended = Result<Packed, Box<Error>>;

type Outcome = Result<Status, Error>;
type Call = Box<dyn FnOnce(Outcome) + Send>;

/// What is to be done when the operation has ended.
enum Then {
    Wake(Waker),
    Call(Call),
}

/// On a line of its own: its halves are in different hands.
#[repr(align(64))]
struct Shared {
    state: AtomicU8,
    result: UnsafeCell<Option<Ended>>,
    then: UnsafeCell<Option<Then>>,
}

// SAFETY: the state word says which half may touch which cell; see the module text.
unsafe impl Sync for Shared {}

/// The transport's half. Dropped, it completes with [`Error::Abandoned`].
pub(crate) struct Ticket {
    shared: NonNull<Shared>,
}

/// The other half. Dropped, it lets the operation go.
pub(crate) struct Awaited {
    /// `None` once the result was taken or the operation was let go.
    shared: Option<NonNull<Shared>>,
    waits: Waits,
}

/// Whether it has moved the word to `WAITED`, and not back. A whole word, see [`Packed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Waits {
    No,
    Yes,
}

// SAFETY: a half is a pointer to what both share, which is `Sync` and holds what may be sent.
unsafe impl Send for Ticket {}
// SAFETY: as above.
unsafe impl Send for Awaited {}
// SAFETY: a shared half only reads the state word.
unsafe impl Sync for Awaited {}

/// What an operation that has ended leaves to do, which may run the code of tasks.
#[must_use = "somebody waits for it"]
pub(crate) enum Next {
    Wake(Waker),
    Call(Call, Ended),
}

/// Memory of operations that have ended, kept by each thread for its next ones.
const SPARE: usize = 256;

thread_local! {
    #[allow(clippy::vec_box, reason = "operations point to their memory, so it keeps its place")]
    static SPARES: RefCell<Vec<Box<Shared>>> = const { RefCell::new(Vec::new()) };
}

/// Both halves of a new operation.
#[inline]
pub(crate) fn ticket() -> (Ticket, Awaited) {
    let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
    let shared = spare.ok().flatten().unwrap_or_else(Shared::new);
    let shared = NonNull::from(Box::leak(shared));
    (Ticket { shared }, Awaited { shared: Some(shared), waits: Waits::No })
}

#[inline]
pub(crate) fn packed(outcome: Outcome) -> Ended {
    outcome.map(Packed::from).map_err(Box::new)
}

#[inline]
pub(crate) fn opened(ended: Ended) -> Outcome {
    ended.map(Status::from).map_err(|error| *error)
}

#[cold]
pub(crate) fn abandoned() -> Ended {
    Err(Box::new(Error::Abandoned))
}

impl Ticket {
    /// Ends the operation and does what is left. From now on the transport does not touch its
    /// buffer.
    pub(crate) fn complete(self, outcome: Outcome) {
        if let Some(next) = self.end(packed(outcome)) {
            next.run();
        }
    }

    /// As [`Ticket::complete`], under a lock: what is left is to be done after it is released.
    #[inline]
    pub(crate) fn end(self, ended: Ended) -> Option<Next> {
        let next = self.finish(ended);
        std::mem::forget(self);
        next
    }

    /// Once.
    #[inline]
    fn finish(&self, ended: Ended) -> Option<Next> {
        // SAFETY: nobody frees it before the word is `DONE`.
        let shared = unsafe { self.shared.as_ref() };
        // SAFETY: the word is not `DONE`: there is one ticket, and it completes once.
        shared.result.with_mut(|result| unsafe { *result = Some(ended) });
        match shared.state.swap(DONE, Ordering::AcqRel) {
            PENDING => None,
            before => self.finish_told(before),
        }
    }

    /// The word was `before`: the other half has said what is to be done, or is gone.
    #[cold]
    fn finish_told(&self, before: u8) -> Option<Next> {
        // SAFETY: out of `WAITED` and `LET_GO` it is not freed before this half has said so.
        let shared = unsafe { self.shared.as_ref() };
        let then = shared.take_then();
        let next = match then {
            Some(Then::Wake(waker)) => Some(Next::Wake(waker)),
            Some(Then::Call(call)) => Some(Next::Call(call, shared.take_result())),
            None => {
                // Nobody wants it.
                let _ = shared.take_result();
                None
            }
        };
        if before == LET_GO || shared.state.swap(TOLD, Ordering::AcqRel) == LEFT {
            // SAFETY: the other half is gone, and this one ends here.
            unsafe { Shared::free(self.shared) };
        }
        next
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(next) = self.finish(abandoned()) {
            next.run();
        }
    }
}

impl Next {
    /// The caller holds no lock. It may end operations of others, so a panic ends here.
    pub(crate) fn run(self) {
        call("what waits for an operation", || match self {
            Next::Wake(waker) => waker.wake(),
            Next::Call(call, ended) => call(opened(ended)),
        });
    }
}

impl Shared {
    fn new() -> Box<Self> {
        Box::new(Shared {
            state: AtomicU8::new(PENDING),
            result: UnsafeCell::new(None),
            then: UnsafeCell::new(None),
        })
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.state.load(Ordering::Acquire) >= DONE
    }

    /// For the half that `then` belongs to.
    fn take_then(&self) -> Option<Then> {
        // SAFETY: the caller's, by the state word.
        self.then.with_mut(|then| unsafe { (*then).take() })
    }

    /// For the half that the result belongs to.
    #[inline]
    fn take_result(&self) -> Ended {
        // SAFETY: the caller's, by the state word.
        let result = self.result.with_mut(|result| unsafe { (*result).take() });
        result.unwrap_or_else(abandoned)
    }

    /// Keeps the memory for the next operation, or gives it back.
    ///
    /// # Safety
    ///
    /// Nobody else uses it.
    #[inline]
    unsafe fn free(shared: NonNull<Self>) {
        // SAFETY: it comes from a box, and the caller says that nobody else uses it.
        let mut shared = unsafe { Box::from_raw(shared.as_ptr()) };
        // loom's cells belong to one run of a model.
        if cfg!(talpf_loom) {
            return;
        }
        shared.state = AtomicU8::new(PENDING);
        // While the thread ends there is no place for it.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARE {
                spares.push(shared);
            }
        });
    }
}

impl Awaited {
    #[inline]
    fn shared(&self) -> Option<&Shared> {
        // SAFETY: this half has not let go, so nobody has freed it.
        self.shared.as_ref().map(|shared| unsafe { shared.as_ref() })
    }

    /// Whether the operation has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.shared().is_none_or(Shared::has_ended)
    }

    /// The result, once; else `waker` will be woken.
    #[inline]
    pub(crate) fn poll(&mut self, waker: &Waker) -> Option<Ended> {
        if !self.has_ended() && self.leave(Some(Then::Wake(waker.clone())), WAITED).is_ok() {
            return None;
        }
        Some(self.take())
    }

    /// Calls `call` with the result: here if the operation has ended, else where it ends.
    pub(crate) fn call(mut self, call: Call) {
        if let Err(Some(Then::Call(call))) = self.leave(Some(Then::Call(call)), LET_GO) {
            call(opened(self.take()));
        }
    }

    /// Says what is to be done, instead of what was said before, and moves the word to `state`.
    ///
    /// **Errors**: `then`, if the operation has ended.
    fn leave(&mut self, then: Option<Then>, state: u8) -> Result<(), Option<Then>> {
        let Some(shared) = self.shared() else { return Err(then) };
        let swap =
            |from, to| shared.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if self.waits == Waits::Yes {
            if swap(WAITED, PENDING).is_err() {
                return Err(then);
            }
            drop(shared.take_then());
        }
        // SAFETY: the word is `PENDING`, or the ticket has moved it from there to `DONE` and then
        // leaves the cell alone.
        shared.then.with_mut(|cell| unsafe { *cell = then });
        let left = swap(PENDING, state).map_err(|_| shared.take_then());
        self.waits = if left.is_ok() && state == WAITED { Waits::Yes } else { Waits::No };
        if left.is_ok() && state == LET_GO {
            self.shared = None;
        }
        left.map(|_| ())
    }

    /// The result of an operation that has ended.
    #[inline]
    fn take(&mut self) -> Ended {
        let Some(place) = self.shared.take() else { return abandoned() };
        // SAFETY: this half has not let go, so nobody has freed it.
        let shared = unsafe { place.as_ref() };
        let outcome = shared.take_result();
        if self.waits == Waits::No || shared.state.swap(LEFT, Ordering::AcqRel) == TOLD {
            // SAFETY: the ticket is done with it, and so is this half.
            unsafe { Shared::free(place) };
        }
        outcome
    }
}

impl Drop for Awaited {
    #[inline]
    fn drop(&mut self) {
        if self.shared.is_some() && self.leave(None, LET_GO).is_err() {
            drop(self.take());
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
