//! A mutex that notes where each thread has taken the locks it holds. For debug builds.
//!
//! Code of the program may do anything: a lock that is held while it runs is one it may come back
//! for. So every call of such code asks here first.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

#[cfg(not(any(talpf_loom, talpf_shuttle)))]
use parking_lot as plain;

#[cfg(not(talpf_loom))]
use super::thread_local;
#[cfg(talpf_loom)]
use super::under_loom as plain;
#[cfg(talpf_shuttle)]
use super::under_shuttle as plain;

/// Locks of one thread whose places are noted; of more only the number is known.
const NOTED: usize = 8;

type Place = &'static Location<'static>;

/// The locks that a thread holds. Without a destructor, so that it is there until the thread ends.
struct Held {
    count: Cell<usize>,
    places: [Cell<Option<Place>>; NOTED],
}

impl Held {
    const fn new() -> Self {
        Held { count: Cell::new(0), places: [const { Cell::new(None) }; NOTED] }
    }

    fn add(&self, place: Place) {
        self.count.set(self.count.get() + 1);
        let free = self.places.iter().find(|noted| noted.get().is_none());
        free.into_iter().for_each(|free| free.set(Some(place)));
    }

    fn remove(&self, place: Place) {
        self.count.set(self.count.get() - 1);
        let noted = self.places.iter().find(|noted| noted.get() == Some(place));
        noted.into_iter().for_each(|noted| noted.set(None));
    }
}

#[cfg(not(talpf_loom))]
thread_local! {
    static HELD: Held = const { Held::new() };
}
#[cfg(talpf_loom)]
loom::thread_local! {
    static HELD: Held = Held::new();
}

/// **Panics** if this thread holds a lock, which `what` might take or wait for.
#[track_caller]
pub(crate) fn assert_no_lock_held(what: &str) {
    HELD.with(|held| {
        let places = || held.places.iter().filter_map(Cell::get).map(|place| place.to_string());
        let count = held.count.get();
        assert!(count == 0, "{what} is called under {count} locks: {:?}", Vec::from_iter(places()));
    });
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(plain::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    guard: plain::MutexGuard<'a, T>,
    place: Place,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(plain::Mutex::new(value))
    }

    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(self.0.lock())
    }

    #[track_caller]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(MutexGuard::new)
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
        catch_unwind(|| assert_no_lock_held("a test")).is_err()
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
    fn a_lock_is_named_by_where_it_was_taken() {
        let lock = Mutex::new(1);
        let (guard, line) = (lock.lock(), line!());
        let panic = catch_unwind(|| assert_no_lock_held("a test")).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        assert_eq!(*guard, 1);
    }
}
