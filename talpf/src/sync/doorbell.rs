//! A state that one thread at a time carries on, for all who have changed something.
//!
//! Whoever changes something that the state is to take in *kicks* and then tries to enter. If
//! another thread is inside, that one finds the kick as it leaves, and enters again. The race is
//! between a thread that finds the state locked and the one that has unlocked it and looks for
//! kicks: both change the word of the kick by read-modify-writes, so one of them comes second and
//! sees what the first has done, the kick or the unlocked state. Loads and stores would not do:
//! both threads might read what was before.

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, Mutex, MutexGuard, Ordering};

/// A locked state, and whether something has changed that it has not taken in.
pub(super) struct Doorbell<T> {
    rung: CachePadded<AtomicBool>,
    state: CachePadded<Mutex<T>>,
}

impl<T> Doorbell<T> {
    pub(super) fn new(state: T) -> Self {
        let rung = CachePadded::new(AtomicBool::new(false));
        Doorbell { rung, state: CachePadded::new(Mutex::new(state)) }
    }

    /// Notes that something has changed. The caller enters.
    #[inline]
    pub(super) fn ring(&self) {
        self.rung.swap(true, Ordering::AcqRel);
    }

    /// Returns whether there is a kick that nobody has seen. A hint.
    #[inline]
    pub(super) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    /// Locks the state whatever there is to take in.
    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock()
    }

    /// Takes the kick and locks the state, which then takes in what has changed. `None`: there is
    /// no kick, or another thread is inside and finds it.
    #[inline]
    pub(super) fn enter(&self) -> Option<MutexGuard<'_, T>> {
        if !self.is_rung() {
            return None;
        }
        let state = self.state.try_lock()?;
        self.clear();
        Some(state)
    }

    /// Kicks and enters in one, for a thread that has changed something itself.
    #[inline]
    pub(super) fn ring_and_enter(&self) -> Option<MutexGuard<'_, T>> {
        if let Some(state) = self.state.try_lock() {
            self.clear();
            return Some(state);
        }
        self.ring();
        self.enter()
    }

    /// Takes the kick, for a thread that has locked the state and takes in what has changed.
    #[inline]
    pub(super) fn clear(&self) {
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

    /// Changes something and enters, as those who post and the polling task do. The state keeps
    /// what it has seen of the changes. `at_once`: kicks and enters in one.
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
            assert_eq!(*shared.0.lock(), 2, "a change that nobody has taken in");
            assert!(!shared.0.is_rung());
        });
    }

    #[test]
    fn what_has_changed_is_taken_in_by_somebody() {
        both_change([false, false]);
    }

    #[test]
    fn what_those_change_who_enter_at_once_is_taken_in_by_somebody() {
        both_change([true, false]);
        both_change([true, true]);
    }
}
