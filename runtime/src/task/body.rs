//! Task bodies, stored in the task's record.
//!
//! A body of up to [`INLINE`] bytes lives in the record itself, a larger one in a box. An async
//! body uses its place twice: first for the closure, then for the future that it returns.
#![allow(unsafe_code, reason = "stores bodies of any type in place")]

use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::{MaybeUninit, align_of, size_of};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::ready::{Actions, Prepared};
use super::waker;
use crate::record::RecordId;

/// Largest size of a body that needs no allocation.
pub(super) const INLINE: usize = 128;

/// Code that a worker can run to its end, or to the next await.
pub trait Body: Send + 'static {
    /// `true` if the body has actions before it.
    const ACTS: bool = false;
    /// Runs the body, or goes on with it.
    fn run(self: Pin<&mut Self>, task: RecordId) -> Poll<()>;
}

/// A body that is called once.
pub(super) struct Call<F>(pub(super) Option<F>);

impl<F: FnOnce(RecordId) + Send + 'static> Body for Call<F> {
    #[inline]
    fn run(self: Pin<&mut Self>, task: RecordId) -> Poll<()> {
        // SAFETY: `F` is moved out of the pin before it is used; nothing pins `F` itself.
        let this = unsafe { self.get_unchecked_mut() };
        if let Some(body) = this.0.take() {
            body(task);
        }
        Poll::Ready(())
    }
}

/// A body that returns a future.
pub(super) enum AsyncBody<F, Fut> {
    Start(Option<F>),
    Await(Fut),
}

impl<F, Fut> Body for AsyncBody<F, Fut>
where
    F: FnOnce(RecordId) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn run(self: Pin<&mut Self>, task: RecordId) -> Poll<()> {
        // SAFETY: the closure is moved out before it is called, the future is never moved.
        let this = unsafe { self.get_unchecked_mut() };
        if let AsyncBody::Start(start) = this
            && let Some(start) = start.take()
        {
            *this = AsyncBody::Await(start(task));
        }
        let AsyncBody::Await(future) = this else {
            return Poll::Ready(());
        };
        // SAFETY: `this` was pinned by the caller.
        let future = unsafe { Pin::new_unchecked(future) };
        let waker = waker::of_task(task);
        waker::take_note();
        future.poll(&mut Context::from_waker(&waker))
    }
}

#[repr(C, align(16))]
struct Storage([MaybeUninit<u8>; INLINE]);

/// The functions of a type of bodies.
struct BodyVtable {
    run: unsafe fn(&BodyCell, RecordId) -> Poll<()>,
    drop: unsafe fn(*mut u8),
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
    pub(super) unsafe fn put<B: Body>(&self, body: B) {
        if size_of::<B>() <= INLINE && align_of::<B>() <= align_of::<Storage>() {
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
        }
    }

    /// Runs the body, or goes on with it. A body that has ended is dropped; one that panics is left
    /// in the cell.
    ///
    /// # Safety
    /// The caller is the one that runs the task.
    #[inline]
    pub(super) unsafe fn run(&self, task: RecordId) -> Poll<()> {
        // SAFETY: the caller owns the cell.
        let vtable = unsafe { *self.vtable.get() };
        match vtable {
            // SAFETY: the vtable was set together with the value in the storage.
            Some(vtable) => unsafe { (vtable.run)(self, task) },
            None => Poll::Ready(()),
        }
    }

    /// Removes the actions before the body.
    ///
    /// # Safety
    /// The cell has a [`Prepared`], and the caller owns the task.
    pub(super) unsafe fn take_actions(&self) -> Option<Actions> {
        const {
            assert!(size_of::<Prepared<()>>() <= INLINE, "it lies in the storage");
            assert!(align_of::<Prepared<()>>() <= align_of::<Storage>(), "it lies in the storage");
        };
        let actions = self.storage.get().cast::<Option<Actions>>();
        // SAFETY: a `Prepared` begins with its actions, and nobody else has the cell.
        unsafe { &mut *actions }.take()
    }

    /// Drops the body if there is one.
    ///
    /// # Safety
    /// The caller is the one that runs the task.
    #[inline]
    pub(super) unsafe fn clear(&self) {
        // SAFETY: the caller owns the cell.
        let vtable = unsafe { (*self.vtable.get()).take() };
        if let Some(vtable) = vtable {
            // SAFETY: the vtable was set together with the value, and is gone now.
            unsafe { (vtable.drop)(self.storage.get().cast()) };
        }
    }
}
