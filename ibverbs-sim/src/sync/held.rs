//! The locks and gates that each thread holds. For debug builds.
//!
//! Foreign code may come back for a lock that is held while it runs, or wait for a gate, so every
//! call of such code asks here first.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    panic::Location,
};

/// Locks of one thread whose places are noted; of more only the number is known.
const NOTED: usize = 4;

type Place = &'static Location<'static>;

/// The holdings of a thread. Without a destructor, so that they are there until the thread ends.
struct Held {
    gates: Cell<usize>,
    locks: Cell<usize>,
    places: [Cell<Option<Place>>; NOTED],
}

thread_local! {
    static HELD: Held = const {
        Held { gates: Cell::new(0), locks: Cell::new(0), places: [const { Cell::new(None) }; NOTED] }
    };
}

/// **Panics** if this thread holds a gate or a lock, for which `what` might wait.
#[track_caller]
pub(crate) fn assert_nothing_held(what: &str) {
    HELD.with(|held| {
        let (gates, locks) = (held.gates.get(), held.locks.get());
        assert!(gates == 0, "{what} is called under a gate");
        let places = || held.places.iter().filter_map(Cell::get).map(|place| place.to_string());
        assert!(locks == 0, "{what} is called under {locks} locks: {:?}", Vec::from_iter(places()));
    });
}

/// Notes that this thread has entered a gate.
pub(crate) fn note_entry() {
    HELD.with(|held| held.gates.set(held.gates.get() + 1));
}

/// Notes that this thread has left a gate.
pub(crate) fn note_exit() {
    HELD.with(|held| held.gates.set(held.gates.get() - 1));
}

/// A mutex that notes where it was taken.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    guard: parking_lot::MutexGuard<'a, T>,
    place: Place,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let (guard, place) = (self.0.lock(), Location::caller());
        HELD.with(|held| {
            held.locks.set(held.locks.get() + 1);
            let free = held.places.iter().find(|noted| noted.get().is_none());
            free.into_iter().for_each(|free| free.set(Some(place)));
        });
        MutexGuard { guard, place }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        HELD.with(|held| {
            held.locks.set(held.locks.get() - 1);
            let noted = held.places.iter().find(|noted| noted.get() == Some(self.place));
            noted.into_iter().for_each(|noted| noted.set(None));
        });
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
