//! State of one process that others read between barriers.
#![allow(unsafe_code, reason = "a cell whose lock is the barrier of a team")]

use std::cell::UnsafeCell;

/// Value that its process changes, and others read while it does not: barriers separate the two.
pub(crate) struct Published<T>(UnsafeCell<T>);

// SAFETY: References are only made by functions whose callers answer for it that no other thread has one that
// conflicts; the value itself may be sent and shared.
unsafe impl<T: Send + Sync> Sync for Published<T> {}

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Self {
        Published(UnsafeCell::new(value))
    }

    /// Returns the value to read it.
    ///
    /// # Safety
    ///
    /// The process of the value does not change it while the reference lives.
    #[inline]
    pub(crate) unsafe fn read(&self) -> &T {
        // SAFETY: As the caller guarantees.
        unsafe { &*self.0.get() }
    }

    /// Returns the value to change it.
    ///
    /// # Safety
    ///
    /// The caller is the process of the value, it has no other reference to it, and no other process reads it
    /// while the reference lives.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller answers for it")]
    pub(crate) unsafe fn write(&self) -> &mut T {
        // SAFETY: As the caller guarantees.
        unsafe { &mut *self.0.get() }
    }
}
