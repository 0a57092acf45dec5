//! The atomics, the lock and the cell of the structures that are model-checked.
//!
//! Structures with a model take them from here, so that `--cfg talpf_loom` swaps in loom's versions. In
//! debug builds the locks and gates that a thread holds are noted (`held.rs`).

#[cfg(all(debug_assertions, not(talpf_loom)))]
mod held;

#[cfg(talpf_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};

#[cfg(all(debug_assertions, not(talpf_loom)))]
pub(crate) use self::held::{Mutex, assert_nothing_held, note_entry, note_exit};
#[cfg(not(any(debug_assertions, talpf_loom)))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(talpf_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};

/// In debug builds: **panics** if this thread holds a gate or a lock.
#[cfg(any(not(debug_assertions), talpf_loom))]
#[inline(always)]
pub(crate) fn assert_nothing_held(_: &str) {}

/// In debug builds: notes that this thread has entered a gate.
#[cfg(any(not(debug_assertions), talpf_loom))]
#[inline(always)]
pub(crate) fn note_entry() {}

/// In debug builds: notes that this thread has left a gate.
#[cfg(any(not(debug_assertions), talpf_loom))]
#[inline(always)]
pub(crate) fn note_exit() {}

/// `std`'s cell with the closure interface of loom's.
#[cfg(not(talpf_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(talpf_loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// loom's mutex with the interface of the one it stands for.
#[cfg(talpf_loom)]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(talpf_loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
