//! The locks that each thread holds, recorded by a mutex for debug builds, and the gates that it is
//! in.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use crate::plain;

/// Number of locks of one thread whose call sites are recorded; further ones are only counted.
const NOTED: usize = 8;

type CallSite = &'static Location<'static>;

/// The locks and gates of a thread. Without a destructor, so that they exist until the thread ends.
struct HeldLocks {
    gates: Cell<usize>,
    locks: Cell<usize>,
    places: [Cell<Option<CallSite>>; NOTED],
}

impl HeldLocks {
    const fn new() -> Self {
        HeldLocks {
            gates: Cell::new(0),
            locks: Cell::new(0),
            places: [const { Cell::new(None) }; NOTED],
        }
    }

    fn add(&self, place: CallSite) {
        self.locks.set(self.locks.get() + 1);
        let free = self.places.iter().find(|noted| noted.get().is_none());
        free.into_iter().for_each(|free| free.set(Some(place)));
    }

    fn remove(&self, place: CallSite) {
        self.locks.set(self.locks.get() - 1);
        let noted = self.places.iter().find(|noted| noted.get() == Some(place));
        noted.into_iter().for_each(|noted| noted.set(None));
    }
}

#[cfg(not(talpf_loom))]
plain::thread_local! {
    static HELD: HeldLocks = const { HeldLocks::new() };
}
#[cfg(talpf_loom)]
loom::thread_local! {
    static HELD: HeldLocks = HeldLocks::new();
}

/// Asserts that this thread is in no gate and holds no lock, for which `what` might wait.
///
/// # Panics
///
/// Panics otherwise, with the call sites at which the locks were taken.
#[track_caller]
pub fn assert_nothing_held(what: &str) {
    HELD.with(|held| {
        assert!(held.gates.get() == 0, "{what} is called under a gate");
        let places = || held.places.iter().filter_map(Cell::get).map(|place| place.to_string());
        let locks = held.locks.get();
        assert!(locks == 0, "{what} is called under {locks} locks: {:?}", Vec::from_iter(places()));
    });
}

/// Asserts that this thread is in no gate and holds no lock that the calling crate has taken. For
/// call-backs into a crate above, which is responsible for its own locks.
///
/// # Panics
///
/// Panics as [`assert_nothing_held`].
#[track_caller]
pub fn assert_nothing_held_here(what: &str) {
    let here = crate_of(Location::caller());
    HELD.with(|held| {
        assert!(held.gates.get() == 0, "{what} is called under a gate");
        let places = held.places.iter().filter_map(Cell::get);
        let own = places.filter(|place| crate_of(place) == here).map(|place| place.to_string());
        let own = Vec::from_iter(own);
        assert!(own.is_empty(), "{what} is called under locks: {own:?}");
    });
}

/// Returns the folder of the crate that `place` is in.
fn crate_of(place: CallSite) -> &'static str {
    place.file().split("/src/").next().unwrap_or_default()
}

/// Notes that this thread has entered a gate.
pub fn note_entry() {
    HELD.with(|held| held.gates.set(held.gates.get() + 1));
}

/// Notes that this thread has left a gate.
pub fn note_exit() {
    HELD.with(|held| held.gates.set(held.gates.get() - 1));
}

/// A mutex whose holders are recorded.
#[derive(Debug, Default)]
pub struct Mutex<T>(plain::Mutex<T>);

/// A held lock.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    guard: plain::MutexGuard<'a, T>,
    place: CallSite,
}

impl<T> Mutex<T> {
    /// Makes a mutex that holds `value`.
    pub fn new(value: T) -> Self {
        Mutex(plain::Mutex::new(value))
    }

    /// Waits for the lock.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(self.0.lock())
    }

    /// Returns the lock, if no thread holds it.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(MutexGuard::new)
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<'a, T> MutexGuard<'a, T> {
    #[track_caller]
    fn new(guard: plain::MutexGuard<'a, T>) -> Self {
        let place = Location::caller();
        HELD.with(|held| held.add(place));
        MutexGuard { guard, place }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        HELD.with(|held| held.remove(self.place));
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn complains() -> bool {
        catch_unwind(|| assert_nothing_held("a test")).is_err()
    }

    #[test]
    fn locks_of_this_thread_are_known_until_they_are_released() {
        let locks: Vec<Mutex<()>> = (0..2 * NOTED).map(|_| Mutex::default()).collect();
        assert!(!complains());
        let guards: Vec<_> = locks.iter().map(Mutex::lock).collect();
        assert!(locks[0].try_lock().is_none());
        assert!(complains());
        std::thread::scope(|scope| scope.spawn(|| assert!(!complains())).join()).unwrap();
        drop(guards);
        assert!(!complains());
    }

    #[test]
    fn locks_of_the_crate_that_asks_count_for_it() {
        let lock = Mutex::new(());
        let complains = || catch_unwind(|| assert_nothing_held_here("a test")).is_err();
        let guard = lock.lock();
        assert!(complains());
        drop(guard);
        assert!(!complains());
        // The recorded call site is in the standard library.
        let in_std = std::iter::once(&lock).map(Mutex::lock).next().unwrap();
        assert!(!complains() && catch_unwind(|| assert_nothing_held("a test")).is_err());
        drop(in_std);
    }

    #[test]
    fn a_lock_is_named_by_its_call_site() {
        let lock = Mutex::new(1);
        let (guard, line) = (lock.lock(), line!());
        let panic = catch_unwind(|| assert_nothing_held("a test")).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        assert_eq!(*guard, 1);
    }
}
