//! Bodies that are called once: closures and async closures, with actions that come before them.
//!
//! An async body uses its place twice: first for the closure, then for the future that it returns.
#![allow(unsafe_code, reason = "projects the pins of bodies")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::waker;
use crate::record::{Body, RecordId, take_note};

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
        take_note();
        future.poll(&mut Context::from_waker(&waker))
    }
}

/// A body with actions that come before it.
#[repr(C)]
pub(super) struct Prepared<A, B> {
    /// First field, so that it is found whatever the type of the body is.
    actions: Option<A>,
    body: B,
}

impl<A, B> Prepared<A, B> {
    pub(super) fn new(actions: A, body: B) -> Self {
        Prepared { actions: Some(actions), body }
    }
}

impl<A: Send + 'static, B: Body> Body for Prepared<A, B> {
    const ACTS: bool = true;

    #[inline]
    fn run(self: Pin<&mut Self>, task: RecordId) -> Poll<()> {
        // SAFETY: the body is pinned with the whole, and never moved out of it.
        unsafe { self.map_unchecked_mut(|prepared| &mut prepared.body) }.run(task)
    }
}
