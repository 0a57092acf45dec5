//! What state words are built of: the standard library's types, or loom's under `talpf_loom`.

#[cfg(not(talpf_loom))]
pub(crate) use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(talpf_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU8, Ordering},
};

/// The standard cell with loom's interface.
#[cfg(not(talpf_loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(talpf_loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, visit: impl FnOnce(*mut T) -> R) -> R {
        visit(self.0.get())
    }
}
