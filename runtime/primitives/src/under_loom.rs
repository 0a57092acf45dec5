//! loom's atomics and mutex. Threads that park are not modelled.

pub use std::thread;
pub use std::thread_local;

pub use crossbeam_utils::sync::{Parker, Unparker};
pub use loom::sync::MutexGuard;
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use loom::thread::yield_now;

/// loom's mutex with the interface of parking_lot's.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a mutex that holds `value`.
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the lock, if no thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A cell that is filled once, with the interface of the standard one.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    is_filled: AtomicBool,
    filling: Mutex<()>,
}

impl<T> OnceLock<T> {
    /// Makes an empty cell.
    pub fn new() -> Self {
        let value = std::sync::OnceLock::new();
        OnceLock { value, is_filled: AtomicBool::new(false), filling: Mutex::new(()) }
    }

    /// Returns the value, if the cell is filled.
    pub fn get(&self) -> Option<&T> {
        if self.is_filled.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    /// Returns the value, which `init` makes if the cell is empty.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let _filling = self.filling.lock();
        let value = self.value.get_or_init(init);
        self.is_filled.store(true, Ordering::Release);
        value
    }

    /// Returns the value, which no other thread can reach, if the cell is filled.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}
