//! Waits for notifications, for the body that awaits them.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytemuck::Pod;
use talpf_primitives::Mutex;
use talpf_runtime::InOut;

use super::Notification;
use super::follows::Completion;
use super::id::WaiterNumber;
use super::of_rank::{Awaits, OfRank};
use crate::error::Error;
use crate::foreign;
use crate::held_guard::HeldGuard;

/// The state of a wait that both its future and its completion know.
enum Shared {
    Waiting(Option<Waker>),
    Ended(Option<Result<Notification, Error>>),
    Detached,
}

/// A wait, from its declaration to its result.
struct State {
    notifications: OfRank,
    shared: Arc<Mutex<Shared>>,
    /// The notifications that it is for, until it begins.
    awaits: Option<Awaits>,
    /// The number of the wait, if it has begun and not ended at once, and its ids.
    begun: Option<(WaiterNumber, Range<u32>)>,
    /// `true` if a notification has brought data that no other wait can have.
    has_inbox: bool,
}

impl State {
    fn new(notifications: &OfRank, awaits: Option<Awaits>) -> Self {
        let shared = Arc::new(Mutex::new(Shared::Waiting(None)));
        let has_inbox = matches!(awaits, Some(Awaits::One(_, Some(_))));
        State { notifications: notifications.clone(), shared, awaits, begun: None, has_inbox }
    }

    /// Begins the wait, unless it has begun. `before` is called with the result before the future has
    /// it.
    fn begin(&mut self, before: impl FnOnce(&Result<Notification, Error>) + Send + 'static) {
        let Some(awaits) = self.awaits.take() else {
            return;
        };
        let (shared, notifications) = (Arc::clone(&self.shared), self.notifications.clone());
        let completion: Completion = Box::new(move |result| {
            before(&result);
            complete(&shared, &notifications, result);
        });
        let ids = awaits.ids();
        let number = self.notifications.begin(awaits, completion);
        self.begun = number.map(|number| (number, ids));
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Notification, Error>> {
        let State { notifications, shared, .. } = self;
        notifications.sender().batches.post_all();
        let ended = || matches!(*shared.lock(), Shared::Ended(_)).then_some(());
        notifications.round.poll_while_spare(ended);
        // Wakers may be code of the program, which runs under no lock: neither clones nor drops.
        let waker = Some(cx.waker().clone());
        let mut state = shared.lock();
        let unused = match &mut *state {
            Shared::Ended(result) => {
                let polled_again = || Err(Error::Runtime(talpf_runtime::Error::ShutDown));
                return Poll::Ready(result.take().unwrap_or_else(polled_again));
            }
            Shared::Waiting(before) => std::mem::replace(before, waker),
            Shared::Detached => waker,
        };
        drop(state);
        drop(unused);
        talpf_runtime::note_wait("a notification");
        Poll::Pending
    }
}

/// Passes the result of a wait to its future. A notification for a future that was dropped ends
/// another wait.
fn complete(shared: &Mutex<Shared>, notifications: &OfRank, result: Result<Notification, Error>) {
    let mut state = shared.lock();
    if matches!(*state, Shared::Detached) {
        return;
    }
    let before = std::mem::replace(&mut *state, Shared::Ended(Some(result)));
    drop(state);
    if let Shared::Waiting(Some(waker)) = before
        && let Err(panic) = foreign::call("a waker", || waker.wake())
    {
        notifications.sender().fail_foreign("a waker", &panic);
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.shared.lock(), Shared::Detached);
        let notifications = &self.notifications;
        match before {
            Shared::Ended(Some(Ok(notification))) if !self.has_inbox => {
                notifications.give_back(notification);
            }
            Shared::Waiting(_) => {
                let table = notifications.table();
                drop(self.begun.take().and_then(|(number, ids)| table.give_up(number, ids)));
            }
            Shared::Ended(_) | Shared::Detached => {}
        }
    }
}

/// A wait for a notification: [`Notifications::wait`](crate::Notifications::wait), [`Notifications::wait_any`](crate::Notifications::wait_any).
#[must_use = "a wait begins when it is awaited"]
pub struct Wait(State);

impl Wait {
    pub(super) fn new(notifications: &OfRank, awaits: Awaits) -> Self {
        Wait(State::new(notifications, Some(awaits)))
    }
}

impl Future for Wait {
    type Output = Result<Notification, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.begin(|_| ());
        self.0.poll(cx)
    }
}

/// A wait for one notification of each of several ids: [`Notifications::wait_all`](crate::Notifications::wait_all).
#[must_use = "a wait begins when it is awaited"]
pub struct WaitAll {
    waits: Vec<Wait>,
    /// The notifications of the first ones.
    taken: Vec<Notification>,
}

impl WaitAll {
    pub(super) fn new(waits: impl Iterator<Item = Wait>) -> Self {
        WaitAll { waits: waits.collect(), taken: Vec::new() }
    }
}

impl Future for WaitAll {
    type Output = Result<Vec<Notification>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitAll { waits, taken } = &mut *self;
        waits.iter_mut().for_each(|wait| wait.0.begin(|_| ()));
        while let Some(next) = waits.get_mut(taken.len()) {
            match Pin::new(next).poll(cx) {
                Poll::Ready(Ok(notification)) => taken.push(notification),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        waits.clear();
        Poll::Ready(Ok(std::mem::take(taken)))
    }
}

impl Drop for WaitAll {
    fn drop(&mut self) {
        // Those that have come are for later waits, in their order.
        for (wait, notification) in self.waits.iter().zip(std::mem::take(&mut self.taken)) {
            *wait.0.shared.lock() = Shared::Ended(Some(Ok(notification)));
        }
        while self.waits.pop().is_some() {}
    }
}

/// A wait for a put, with the guard of its inbox: [`Notifications::receive`](crate::Notifications::receive).
#[must_use = "a wait begins when it is awaited"]
pub struct Receive<T, D> {
    state: State,
    /// The guard, or the reason for which it is no inbox, until the wait begins.
    unbegun: Option<(InOut<T, D>, Option<Error>)>,
    /// The guard, once it is returned.
    returned: Arc<Mutex<Option<InOut<T, D>>>>,
}

impl<T, D> Receive<T, D> {
    pub(super) fn new(
        notifications: &OfRank,
        guard: InOut<T, D>,
        awaits: Result<Awaits, Error>,
    ) -> Self {
        let (awaits, refused) = match awaits {
            Ok(awaits) => (Some(awaits), None),
            Err(error) => (None, Some(error)),
        };
        let state = State::new(notifications, awaits);
        Receive { state, unbegun: Some((guard, refused)), returned: Arc::default() }
    }
}

impl<T, D> Unpin for Receive<T, D> {}

impl<T: Pod + Send + Sync, D: Send + 'static> Future for Receive<T, D> {
    type Output = Result<(InOut<T, D>, Notification), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Receive { state, unbegun, returned } = &mut *self;
        match unbegun.take() {
            Some((guard, None)) => {
                let returned = Arc::clone(returned);
                state.begin(move |result| match result {
                    Ok(_) => *returned.lock() = Some(guard),
                    Err(error) => Box::new(guard).poison(&error.to_string()),
                });
            }
            Some((_, Some(error))) => return Poll::Ready(Err(error)),
            None => {}
        }
        let notification = match state.poll(cx) {
            Poll::Ready(Ok(notification)) => notification,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        };
        let guard = returned.lock().take();
        let polled_again = Error::Runtime(talpf_runtime::Error::ShutDown);
        Poll::Ready(guard.map(|guard| (guard, notification)).ok_or(polled_again))
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wait")
    }
}

impl fmt::Debug for WaitAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitAll ({} of {})", self.taken.len(), self.waits.len())
    }
}

impl<T, D> fmt::Debug for Receive<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receive")
    }
}
