//! A doorbell: a state that one thread at a time advances, for all that have changed something.
//!
//! A thread that changes something that the state has to take in *rings* and then tries to enter.
//! If another thread is inside, that one sees the doorbell as it leaves, and enters again. The race
//! is between a thread that finds the state locked and the one that has unlocked it and checks the
//! doorbell: both change the word of the doorbell by read-modify-writes, so one of them comes
//! second and sees what the first has done, the ring or the unlocked state. Loads and stores would
//! not do: both threads might read what was before. That holds as well for a thread that has locked
//! the state without taking anything in, as for a report.

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, Mutex, MutexGuard, Ordering};

/// A flag for changes that a locked state, always the same, has not taken in.
pub(crate) struct Doorbell(CachePadded<AtomicBool>);

impl Doorbell {
    pub(crate) fn new() -> Self {
        Doorbell(CachePadded::new(AtomicBool::new(false)))
    }

    /// Notes that something has changed. The caller then enters.
    #[inline]
    pub(crate) fn ring(&self) {
        self.0.swap(true, Ordering::AcqRel);
    }

    /// Returns `true` if the doorbell was rung and not answered. A hint.
    #[inline]
    pub(crate) fn is_rung(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Answers the doorbell and locks the state, which then takes in what has changed. `None` if it
    /// was not rung, or if another thread is inside, which then sees it.
    #[inline]
    pub(super) fn enter<'s, T>(&self, state: &'s Mutex<T>) -> Option<MutexGuard<'s, T>> {
        if !self.is_rung() {
            return None;
        }
        let inside = state.try_lock()?;
        self.answer();
        Some(inside)
    }

    /// Rings and enters in one step, for a thread that has changed something itself.
    #[inline]
    pub(super) fn ring_and_enter<'s, T>(&self, state: &'s Mutex<T>) -> Option<MutexGuard<'s, T>> {
        if let Some(inside) = state.try_lock() {
            self.answer();
            return Some(inside);
        }
        self.ring();
        self.enter(state)
    }

    /// Answers the doorbell, for a thread that has locked the state and takes in what has changed.
    #[inline]
    pub(super) fn answer(&self) {
        if self.is_rung() {
            self.0.swap(false, Ordering::AcqRel);
        }
    }

    /// As [`Doorbell::enter`], for a thread that was inside and has unlocked the state.
    #[inline]
    pub(super) fn enter_again<'s, T>(&self, state: &'s Mutex<T>) -> Option<MutexGuard<'s, T>> {
        if self.is_rung_after_unlock() { self.enter(state) } else { None }
    }

    /// Returns `true` if the doorbell was rung and not answered, for a thread that has unlocked the
    /// state: a thread that has found the state locked before may have left a change to this one.
    #[inline]
    pub(super) fn is_rung_after_unlock(&self) -> bool {
        let (none, some) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.compare_exchange(false, false, none, some).is_err()
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    use super::*;

    /// A doorbell, its state, and the number of changes.
    type Shared = (Doorbell, Mutex<u32>, AtomicU32);

    /// Changes something and enters, as posters and the polling task do. The state keeps the number
    /// of changes that it has seen. `at_once`: rings and enters in one step.
    fn change((doorbell, state, changes): &Shared, at_once: bool) {
        changes.fetch_add(1, Ordering::Relaxed);
        let mut inside = if at_once {
            doorbell.ring_and_enter(state)
        } else {
            doorbell.ring();
            doorbell.enter(state)
        };
        while let Some(mut seen) = inside {
            *seen = changes.load(Ordering::Relaxed);
            drop(seen);
            inside = doorbell.enter_again(state);
        }
    }

    /// Two threads change something and come together.
    fn both_change(at_once: [bool; 2]) {
        loom::model(move || {
            let shared = Arc::new((Doorbell::new(), Mutex::new(0), AtomicU32::new(0)));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || change(&shared, at_once[0]))
            };
            change(&shared, at_once[1]);
            other.join().unwrap();
            assert_eq!(*shared.1.lock(), 2, "a change that was not taken in");
            assert!(!shared.0.is_rung());
        });
    }

    /// A thread changes something while another one locks the state without taking anything in. The
    /// other one then enters, or else wakes a thread that would.
    fn change_and_inspect(enters: bool) {
        loom::model(move || {
            let shared = Arc::new((Doorbell::new(), Mutex::new(0), AtomicU32::new(0)));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || change(&shared, false))
            };
            let (doorbell, state, changes) = &*shared;
            let inside = state.lock();
            // Loom switches threads at accesses only.
            changes.load(Ordering::Relaxed);
            drop(inside);
            let wakes = !enters && doorbell.is_rung_after_unlock();
            if enters && let Some(mut seen) = doorbell.enter_again(state) {
                *seen = changes.load(Ordering::Relaxed);
            }
            other.join().unwrap();
            assert!(wakes || *state.lock() == 1, "a change that was not taken in");
        });
    }

    #[test]
    fn a_change_while_the_state_is_inspected_is_taken_in_or_wakes() {
        change_and_inspect(true);
        change_and_inspect(false);
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
