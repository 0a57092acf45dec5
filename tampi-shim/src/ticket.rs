//! Tickets: the state that an operation under way shares with its waiter.
//!
//! The transport holds the [`Ticket`] and completes it once. The waiter holds the other half,
//! [`Awaited`], and polls it, or leaves a function that is called with the result.
//!
//! ```text
//!    ┌───────────── complete ─────────────┐
//! PENDING ─ poll ─► WAITED ── complete ──►DONE ── waker taken ──► NOTIFIED
//!    │    ◄─ poll ──┘                      └───── result taken ──► TAKEN
//!    └─ call, drop ─► DETACHED ─ complete ► DONE
//! ```
//!
//! - `result` belongs to the ticket before `DONE` and to the other half after; to the ticket again
//!   if that half has detached.
//! - `waiter` belongs to the other half in `PENDING`, and to the ticket once it has moved the word
//!   out of `WAITED` or `DETACHED`. The other half takes a waker back by moving the word to
//!   `PENDING`.
//! - The memory is freed by the half that uses it last: out of `PENDING` the ticket does not touch
//!   it after `DONE`, so that is the other half; out of `DETACHED` it is the ticket; out of
//!   `WAITED` each half writes when it is done, and the one that finds the other's word frees.
#![allow(unsafe_code, reason = "hands a result over by a state word")]

use std::cell::RefCell;
use std::ptr::NonNull;
use std::task::Waker;

use talpf_primitives::{AtomicU8, Ordering, UnsafeCell};

use crate::error::Error;
use crate::foreign::call;
use crate::status::{PackedStatus, Status};

/// The operation is under way, and no waiter is registered.
const PENDING: u8 = 0;
/// The operation is under way, and a waker is registered.
const WAITED: u8 = 1;
/// The waiter's half is gone, and may have left a function to call.
const DETACHED: u8 = 2;
/// The result is written.
const DONE: u8 = 3;
/// The ticket has taken the waker and is done with the memory.
const NOTIFIED: u8 = 4;
/// The waiter has taken the result and is done with the memory.
const TAKEN: u8 = 5;

/// PackedStatus result of an operation that has ended.
pub(crate) type PackedResult = Result<PackedStatus, Box<Error>>;

type Outcome = Result<Status, Error>;
type Call = Box<dyn FnOnce(Outcome) + Send>;

/// Action that the waiter asks for when the operation ends.
enum Waiter {
    Wake(Waker),
    Call(Call),
}

/// State of an operation, on a cache line of its own: two threads use it.
#[repr(align(64))]
struct Shared {
    state: AtomicU8,
    result: UnsafeCell<Option<PackedResult>>,
    waiter: UnsafeCell<Option<Waiter>>,
}

// SAFETY: the state word says which half may touch which cell; see the module text.
unsafe impl Sync for Shared {}

/// The transport's half. A ticket that is dropped completes with [`Error::Abandoned`].
pub(crate) struct Ticket {
    shared: NonNull<Shared>,
}

/// The waiter's half. Dropping it detaches the operation, which continues.
pub(crate) struct Awaited {
    /// `None` once the result is taken or the operation is detached.
    shared: Option<NonNull<Shared>>,
    waits: Waits,
}

/// Flag: `Yes` while the word is `WAITED` as far as the waiter knows. A whole word, see [`PackedStatus`].
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

/// Notification of an ended operation's waiter, still to be delivered. Delivering it may run code
/// of tasks.
#[must_use = "a waiter has to be notified"]
pub(crate) enum Notification {
    Wake(Waker),
    Call(Call, PackedResult),
}

/// Number of freed states that each thread keeps for its next operations.
const SPARE: usize = 256;

thread_local! {
    #[allow(clippy::vec_box, reason = "operations point to their memory, so it keeps its place")]
    static SPARES: RefCell<Vec<Box<Shared>>> = const { RefCell::new(Vec::new()) };
}

/// Creates both halves of a new operation.
#[inline]
pub(crate) fn ticket() -> (Ticket, Awaited) {
    let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
    let shared = spare.ok().flatten().unwrap_or_else(Shared::new);
    let shared = NonNull::from(Box::leak(shared));
    (Ticket { shared }, Awaited { shared: Some(shared), waits: Waits::No })
}

#[inline]
pub(crate) fn packed(outcome: Outcome) -> PackedResult {
    outcome.map(PackedStatus::from).map_err(Box::new)
}

#[inline]
pub(crate) fn unpacked(ended: PackedResult) -> Outcome {
    ended.map(Status::from).map_err(|error| *error)
}

#[cold]
pub(crate) fn abandoned() -> PackedResult {
    Err(Box::new(Error::Abandoned))
}

impl Ticket {
    /// Ends the operation and notifies its waiter. The transport does not touch the buffer from now
    /// on.
    pub(crate) fn complete(self, outcome: Outcome) {
        if let Some(notification) = self.end(packed(outcome)) {
            notification.deliver();
        }
    }

    /// Ends the operation as [`Ticket::complete`] does, for callers that hold a lock: they deliver
    /// the returned notification after they have released it.
    #[inline]
    pub(crate) fn end(self, ended: PackedResult) -> Option<Notification> {
        let notification = self.finish(ended);
        std::mem::forget(self);
        notification
    }

    /// Writes the result and moves the word to `DONE`. Called once.
    #[inline]
    fn finish(&self, ended: PackedResult) -> Option<Notification> {
        // SAFETY: nobody frees it before the word is `DONE`.
        let shared = unsafe { self.shared.as_ref() };
        // SAFETY: the word is not `DONE`: there is one ticket, and it completes once.
        shared.result.with_mut(|result| unsafe { *result = Some(ended) });
        match shared.state.swap(DONE, Ordering::AcqRel) {
            PENDING => None,
            before => self.finish_cold(before),
        }
    }

    /// Finishes an operation whose word was `WAITED` or `DETACHED` (`before`).
    #[cold]
    fn finish_cold(&self, before: u8) -> Option<Notification> {
        // SAFETY: out of `WAITED` and `DETACHED` it is not freed before this half has said so.
        let shared = unsafe { self.shared.as_ref() };
        let waiter = shared.take_waiter();
        let notification = match waiter {
            Some(Waiter::Wake(waker)) => Some(Notification::Wake(waker)),
            Some(Waiter::Call(call)) => Some(Notification::Call(call, shared.take_result())),
            None => {
                // The waiter is gone: drop the result.
                let _ = shared.take_result();
                None
            }
        };
        if before == DETACHED || shared.state.swap(NOTIFIED, Ordering::AcqRel) == TAKEN {
            // SAFETY: the other half is gone, and this one ends here.
            unsafe { Shared::free(self.shared) };
        }
        notification
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(notification) = self.finish(abandoned()) {
            notification.deliver();
        }
    }
}

impl Notification {
    /// Delivers the notification. The caller holds no lock. A panic of the waiter's code is caught:
    /// the caller serves other operations, too.
    pub(crate) fn deliver(self) {
        call("the waiter of an operation", || match self {
            Notification::Wake(waker) => waker.wake(),
            Notification::Call(call, ended) => call(unpacked(ended)),
        });
    }
}

impl Shared {
    fn new() -> Box<Self> {
        Box::new(Shared {
            state: AtomicU8::new(PENDING),
            result: UnsafeCell::new(None),
            waiter: UnsafeCell::new(None),
        })
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.state.load(Ordering::Acquire) >= DONE
    }

    /// Takes the waiter's action, for the half that it belongs to.
    fn take_waiter(&self) -> Option<Waiter> {
        // SAFETY: the caller's, by the state word.
        self.waiter.with_mut(|waiter| unsafe { (*waiter).take() })
    }

    /// Takes the result, for the half that it belongs to.
    #[inline]
    fn take_result(&self) -> PackedResult {
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
        // Fails while the thread ends: then the memory is freed.
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
        // SAFETY: this half has not detached, so nobody has freed it.
        self.shared.as_ref().map(|shared| unsafe { shared.as_ref() })
    }

    /// Returns `true` once the operation has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.shared().is_none_or(Shared::has_ended)
    }

    /// Returns the result, once, if the operation has ended; otherwise `waker` is woken when it
    /// ends.
    #[inline]
    pub(crate) fn poll(&mut self, waker: &Waker) -> Option<PackedResult> {
        if !self.has_ended() && self.leave(Some(Waiter::Wake(waker.clone())), WAITED).is_ok() {
            return None;
        }
        Some(self.take())
    }

    /// Calls `call` with the result: here if the operation has ended, otherwise on the thread that
    /// ends it.
    pub(crate) fn call(mut self, call: Call) {
        if let Err(Some(Waiter::Call(call))) = self.leave(Some(Waiter::Call(call)), DETACHED) {
            call(unpacked(self.take()));
        }
    }

    /// Replaces the waiter's action and moves the word to `state`.
    ///
    /// **Errors**: the operation has ended; gives `waiter` back.
    fn leave(&mut self, waiter: Option<Waiter>, state: u8) -> Result<(), Option<Waiter>> {
        let Some(shared) = self.shared() else { return Err(waiter) };
        let swap =
            |from, to| shared.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if self.waits == Waits::Yes {
            if swap(WAITED, PENDING).is_err() {
                return Err(waiter);
            }
            drop(shared.take_waiter());
        }
        // SAFETY: the word is `PENDING`, or the ticket has moved it from there to `DONE` and then
        // leaves the cell alone.
        shared.waiter.with_mut(|cell| unsafe { *cell = waiter });
        let left = swap(PENDING, state).map_err(|_| shared.take_waiter());
        self.waits = if left.is_ok() && state == WAITED { Waits::Yes } else { Waits::No };
        if left.is_ok() && state == DETACHED {
            self.shared = None;
        }
        left.map(|_| ())
    }

    /// Takes the result of an operation that has ended.
    #[inline]
    fn take(&mut self) -> PackedResult {
        let Some(place) = self.shared.take() else { return abandoned() };
        // SAFETY: this half has not detached, so nobody has freed it.
        let shared = unsafe { place.as_ref() };
        let outcome = shared.take_result();
        if self.waits == Waits::No || shared.state.swap(TAKEN, Ordering::AcqRel) == NOTIFIED {
            // SAFETY: the ticket is done with it, and so is this half.
            unsafe { Shared::free(place) };
        }
        outcome
    }
}

impl Drop for Awaited {
    #[inline]
    fn drop(&mut self) {
        if self.shared.is_some() && self.leave(None, DETACHED).is_err() {
            drop(self.take());
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
