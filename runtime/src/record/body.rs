//! The body of a task, stored in the task's record.
//!
//! A body of up to [`INLINE`] bytes lives in the record itself, a larger one in a box.
#![allow(unsafe_code, reason = "stores bodies of any type in place")]

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, align_of, size_of};
use std::pin::Pin;
use std::task::Poll;

use super::RecordId;

/// Largest size of a body that needs no allocation.
const INLINE: usize = 128;

/// Code that a worker can run to its end, or to the next await.
pub trait Body: Send + 'static {
    /// `true` if the body has actions before it.
    const ACTS: bool = false;
    /// Runs the body, or goes on with it.
    fn run(self: Pin<&mut Self>, task: RecordId) -> Poll<()>;
}

/// Returns `true` for types of bodies that lie in the record.
const fn lies_in_record<B>() -> bool {
    size_of::<B>() <= INLINE && align_of::<B>() <= align_of::<Storage>()
}

#[repr(C, align(16))]
struct Storage([MaybeUninit<u8>; INLINE]);

/// The functions of a type of bodies.
struct BodyVtable {
    run: unsafe fn(&BodyCell, RecordId) -> Poll<()>,
    drop: unsafe fn(*mut u8),
    /// Returns the address of the body whose storage this is.
    locate: unsafe fn(*mut u8) -> *mut u8,
}

/// The storage of a body. The spawner fills it, then the thread that runs the task owns it.
pub(crate) struct BodyCell {
    vtable: UnsafeCell<Option<&'static BodyVtable>>,
    storage: UnsafeCell<Storage>,
}

// SAFETY: bodies are `Send`, and only the thread that owns the task in its present phase touches
// the cell (the methods ask for that).
unsafe impl Sync for BodyCell {}
// SAFETY: as above.
unsafe impl Send for BodyCell {}

impl BodyCell {
    pub(crate) fn new() -> Self {
        let storage = Storage([MaybeUninit::uninit(); INLINE]);
        BodyCell { vtable: UnsafeCell::new(None), storage: UnsafeCell::new(storage) }
    }

    /// Puts a body in place.
    ///
    /// # Safety
    /// The caller owns the task's record and the cell is empty.
    #[inline]
    pub(crate) unsafe fn put<B: Body>(&self, body: B) {
        if const { lies_in_record::<B>() } {
            // SAFETY: by the contract of this function; `B` fits.
            unsafe { self.write(body, Self::in_place::<B>()) };
        } else {
            // SAFETY: by the contract of this function; a box fits.
            unsafe { self.write(Box::pin(body), Self::boxed::<B>()) };
        }
    }

    /// # Safety
    /// As [`BodyCell::put`], and `V` fits into the storage.
    #[inline]
    unsafe fn write<V>(&self, value: V, vtable: &'static BodyVtable) {
        // SAFETY: the place is large and aligned enough and the caller owns it.
        unsafe { self.storage.get().cast::<V>().write(value) };
        // SAFETY: the caller owns the cell.
        unsafe { *self.vtable.get() = Some(vtable) };
    }

    fn in_place<B: Body>() -> &'static BodyVtable {
        &BodyVtable {
            run: |cell, task| {
                let at = cell.storage.get().cast::<B>();
                // SAFETY: `run` is called with the cell of a `B`, by the one that owns it.
                let body = unsafe { &mut *at };
                // SAFETY: it is not moved until it is dropped.
                let poll = unsafe { Pin::new_unchecked(body) }.run(task);
                if poll.is_ready() {
                    // SAFETY: the caller owns the cell.
                    unsafe { *cell.vtable.get() = None };
                    // SAFETY: the body is in place, and nobody drops it again without a vtable.
                    unsafe { at.drop_in_place() };
                }
                poll
            },
            // SAFETY: `drop` is called once with the storage of a `B`.
            drop: |at| unsafe { at.cast::<B>().drop_in_place() },
            locate: |at| at,
        }
    }

    fn boxed<B: Body>() -> &'static BodyVtable {
        &BodyVtable {
            run: |cell, task| {
                let at = cell.storage.get().cast::<Pin<Box<B>>>();
                // SAFETY: `run` is called with the cell of a pinned box, by the one that owns it.
                let poll = unsafe { &mut *at }.as_mut().run(task);
                if poll.is_ready() {
                    // SAFETY: the caller owns the cell.
                    unsafe { *cell.vtable.get() = None };
                    // SAFETY: the box is in place, and nobody drops it again without a vtable.
                    unsafe { at.drop_in_place() };
                }
                poll
            },
            // SAFETY: `drop` is called once with the storage of a pinned box.
            drop: |at| unsafe { at.cast::<Pin<Box<B>>>().drop_in_place() },
            // SAFETY: `locate` is called with the storage of a pinned box, which is a pointer to its
            // value.
            locate: |at| unsafe { at.cast::<*mut u8>().read() },
        }
    }

    /// Runs the body, or goes on with it. A body that has ended is dropped; one that panics is left
    /// in the cell.
    ///
    /// # Safety
    /// The caller is the one that runs the task.
    #[inline]
    pub(crate) unsafe fn run(&self, task: RecordId) -> Poll<()> {
        // SAFETY: the caller owns the cell.
        let vtable = unsafe { *self.vtable.get() };
        match vtable {
            // SAFETY: the vtable was set together with the value in the storage.
            Some(vtable) => unsafe { (vtable.run)(self, task) },
            None => Poll::Ready(()),
        }
    }

    /// Returns the address of the body, for its first field; `None` without a body.
    ///
    /// # Safety
    /// The caller owns the cell.
    pub(crate) unsafe fn place<T>(&self) -> Option<*mut T> {
        // SAFETY: by the contract of this function.
        let vtable = unsafe { *self.vtable.get() }?;
        // SAFETY: the vtable was set together with the value in the storage.
        let at = unsafe { (vtable.locate)(self.storage.get().cast()) };
        Some(at.cast())
    }

    /// Drops the body if there is one.
    ///
    /// # Safety
    /// The caller is the one that runs the task.
    #[inline]
    pub(crate) unsafe fn clear(&self) {
        // SAFETY: the caller owns the cell.
        let vtable = unsafe { (*self.vtable.get()).take() };
        if let Some(vtable) = vtable {
            // SAFETY: the vtable was set together with the value, and is gone now.
            unsafe { (vtable.drop)(self.storage.get().cast()) };
        }
    }
}
