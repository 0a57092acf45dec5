//! The atomics and the cell of the structures that are model-checked.
//!
//! `ring` and `gate` take them from here, so that `--cfg talpf_loom` swaps in loom's versions.

#[cfg(talpf_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread::yield_now,
};

#[cfg(not(talpf_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread::yield_now,
};

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
