//! The outcome of a sync, which tasks wait for.

use std::task::Waker;

use smallvec::SmallVec;
use talpf_primitives::{AtomicU8, Mutex, Ordering};

use crate::error::Error;
use crate::foreign;

/// The result of a sync, once it has ended.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Kind of the result, for repeated polls. A success, while no waker is registered, is set here
    /// alone.
    known: AtomicU8,
    state: Mutex<State>,
}

/// Values of `known`: no result; success; failure; no result, but registered wakers.
const NOTHING: u8 = 0;
const WELL: u8 = 1;
const FAILED: u8 = 2;
const AWAITED: u8 = 3;

#[derive(Default)]
struct State {
    failure: Option<Error>,
    /// Wakers, usually of the one task that awaits the sync.
    wakers: SmallVec<[Waker; 1]>,
}

impl Outcome {
    /// Sets the result and wakes the tasks that wait for it.
    ///
    /// **Errors**: the panic message of the first waker that panics; all are called nevertheless.
    pub(crate) fn set(&self, result: Result<(), Error>) -> Result<(), String> {
        if result.is_ok() && self.change(NOTHING, WELL).is_ok() {
            return Ok(());
        }
        self.set_slow(result.err())
    }

    #[inline(never)]
    fn set_slow(&self, failure: Option<Error>) -> Result<(), String> {
        let known = if failure.is_none() { WELL } else { FAILED };
        let mut state = self.state.lock();
        state.failure = failure;
        self.known.store(known, Ordering::Release);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        let mut result = Ok(());
        for waker in wakers {
            result = result.and(foreign::call("a waker", || waker.wake()));
        }
        result
    }

    /// Returns the result, once the sync has ended.
    #[inline]
    pub(crate) fn result(&self) -> Option<Result<(), Error>> {
        match self.known.load(Ordering::Acquire) {
            NOTHING | AWAITED => None,
            WELL => Some(Ok(())),
            _ => self.state.lock().failure.clone().map(Err),
        }
    }

    /// Returns the result, or registers the waker to be called at the end of the sync.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Result<(), Error>> {
        // Not under the lock: a waker may be code of the program.
        let waker = waker.clone();
        let mut state = self.state.lock();
        match self.change(NOTHING, AWAITED) {
            Ok(_) | Err(AWAITED) => {}
            Err(WELL) => return Some(Ok(())),
            Err(_) => return state.failure.clone().map(Err),
        }
        if !state.wakers.iter().any(|known| known.will_wake(&waker)) {
            state.wakers.push(waker);
        }
        None
    }

    fn change(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.known.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}
