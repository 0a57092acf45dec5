//! A doorbell: a state that one thread at a time advances, for all that have changed something.
//!
//! A thread that changes something that the state has to take in *rings* and then tries to enter.
//! If another thread is inside, that one sees the doorbell as it leaves, and enters again. The race
//! is between a thread that finds the state locked and the one that has unlocked it and checks the
//! doorbell: both change the word of the doorbell by read-modify-writes, so one of them comes
//! second and sees what the first has done, the ring or the unlocked state. Loads and stores would
//! not do: both threads might read what was before.

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, Mutex, MutexGuard, Ordering};

/// A locked state, with a flag for changes that it has not taken in.
pub(super) struct Doorbell<T> {
    rung: CachePadded<AtomicBool>,
    state: CachePadded<Mutex<T>>,
}

impl<T> Doorbell<T> {
    pub(super) fn new(state: T) -> Self {
        let rung = CachePadded::new(AtomicBool::new(false));
        Doorbell { rung, state: CachePadded::new(Mutex::new(state)) }
    }

    /// Notes that something has changed. The caller then enters.
    #[inline]
    pub(super) fn ring(&self) {
        self.rung.swap(true, Ordering::AcqRel);
    }

    /// Returns `true` if the doorbell was rung and not answered. A hint.
    #[inline]
    pub(super) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    /// Locks the state, rung or not.
    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock()
    }

    /// Answers the doorbell and locks the state, which then takes in what has changed. `None` if it
    /// was not rung, or if another thread is inside, which then sees it.
    #[inline]
    pub(super) fn enter(&self) -> Option<MutexGuard<'_, T>> {
        if !self.is_rung() {
            return None;
        }
        let state = self.state.try_lock()?;
        self.answer();
        Some(state)
    }

    /// Rings and enters in one step, for a thread that has changed something itself.
    #[inline]
    pub(super) fn ring_and_enter(&self) -> Option<MutexGuard<'_, T>> {
        if let Some(state) = self.state.try_lock() {
            self.answer();
            return Some(state);
        }
        self.ring();
        self.enter()
    }

    /// Answers the doorbell, for a thread that has locked the state and takes in what has changed.
    #[inline]
    pub(super) fn answer(&self) {
        if self.is_rung() {
            self.rung.swap(false, Ordering::AcqRel);
        }
    }

    /// As [`Doorbell::enter`], for a thread that was inside and has unlocked the state.
    #[inline]
    pub(super) fn enter_again(&self) -> Option<MutexGuard<'_, T>> {
        let (none, some) = (Ordering::AcqRel, Ordering::Acquire);
        if self.rung.compare_exchange(false, false, none, some).is_ok() {
            return None;
        }
        self.enter()
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    use super::*;

    /// Changes something and enters, as posters and the polling task do. The state keeps the number
    /// of changes that it has seen. `at_once`: rings and enters in one step.
    fn change(shared: &(Doorbell<u32>, AtomicU32), at_once: bool) {
        shared.1.fetch_add(1, Ordering::Relaxed);
        let mut inside = if at_once {
            shared.0.ring_and_enter()
        } else {
            shared.0.ring();
            shared.0.enter()
        };
        while let Some(mut seen) = inside {
            *seen = shared.1.load(Ordering::Relaxed);
            drop(seen);
            inside = shared.0.enter_again();
        }
    }

    /// Two threads change something and come together.
    fn both_change(at_once: [bool; 2]) {
        loom::model(move || {
            let shared = Arc::new((Doorbell::new(0), AtomicU32::new(0)));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || change(&shared, at_once[0]))
            };
            change(&shared, at_once[1]);
            other.join().unwrap();
            assert_eq!(*shared.0.lock(), 2, "a change that was not taken in");
            assert!(!shared.0.is_rung());
        });
    }

    #[test]
    fn a_change_is_taken_in_by_one_of_the_threads() {
        both_change([false, false]);
    }

    #[test]
    fn a_change_of_a_thread_that_rings_and_enters_at_once_is_taken_in() {
        both_change([true, false]);
        both_change([true, true]);
    }
}
