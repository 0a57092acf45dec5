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
use super::follows::{Awaiter, Completion};
use super::id::WaiterNumber;
use super::of_rank::{Awaits, OfRank};
use crate::error::Error;
use crate::foreign;

/// The part of a wait that both its future and its completion know.
struct Shared {
    notifications: OfRank,
    outcome: Mutex<Outcome>,
    /// `true` if a notification has brought data that no other wait can have.
    has_inbox: bool,
}

/// The outcome of a wait.
enum Outcome {
    Waiting(Option<Waker>),
    Ended(Option<Result<Notification, Error>>),
    Detached,
}

/// A wait, from its declaration to its result.
struct State {
    shared: Arc<Shared>,
    /// The notifications that it is for, until it begins.
    awaits: Option<Awaits>,
    /// The number of the wait, if it has begun and not ended at once, and its ids.
    begun: Option<(WaiterNumber, Range<u32>)>,
}

impl State {
    fn new(notifications: &OfRank, awaits: Option<Awaits>) -> Self {
        let notifications = notifications.clone();
        let outcome = Mutex::new(Outcome::Waiting(None));
        let has_inbox = matches!(awaits, Some(Awaits::One(_, Some(_))));
        let shared = Arc::new(Shared { notifications, outcome, has_inbox });
        State { shared, awaits, begun: None }
    }

    /// Begins the wait with the completion that is made for its shared part, unless it has begun.
    fn begin(&mut self, completion: impl FnOnce(Arc<Shared>) -> Completion) {
        let Some(awaits) = self.awaits.take() else {
            return;
        };
        let completion = completion(Arc::clone(&self.shared));
        let ids = awaits.ids();
        let number = self.shared.notifications.begin(awaits, completion);
        self.begun = number.map(|number| (number, ids));
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Notification, Error>> {
        let Shared { notifications, outcome, .. } = &*self.shared;
        notifications.sender().batches.post_all();
        let ended = || matches!(*outcome.lock(), Outcome::Ended(_)).then_some(());
        notifications.round.poll_while_spare(ended);
        // Wakers may be code of the program, which runs under no lock: neither clones nor drops.
        let waker = Some(cx.waker().clone());
        let mut state = outcome.lock();
        let unused = match &mut *state {
            Outcome::Ended(result) => {
                let polled_again = || Err(Error::Runtime(talpf_runtime::Error::ShutDown));
                return Poll::Ready(result.take().unwrap_or_else(polled_again));
            }
            Outcome::Waiting(before) => std::mem::replace(before, waker),
            Outcome::Detached => waker,
        };
        drop(state);
        drop(unused);
        talpf_runtime::note_wait("a notification");
        Poll::Pending
    }
}

impl Awaiter for Shared {
    /// Passes the result to the future. A notification for one that was dropped meanwhile ends another
    /// wait.
    fn complete(&self, result: Result<Notification, Error>) {
        let mut state = self.outcome.lock();
        if matches!(*state, Outcome::Detached) {
            drop(state);
            let unused = result.ok().filter(|_| !self.has_inbox);
            return unused.into_iter().for_each(|unused| self.notifications.give_back(unused));
        }
        let before = std::mem::replace(&mut *state, Outcome::Ended(Some(result)));
        drop(state);
        if let Outcome::Waiting(Some(waker)) = before
            && let Err(panic) = foreign::call("a waker", || waker.wake())
        {
            self.notifications.sender().fail_foreign("a waker", &panic);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let Shared { notifications, outcome, has_inbox } = &*self.shared;
        let before = std::mem::replace(&mut *outcome.lock(), Outcome::Detached);
        match before {
            Outcome::Ended(Some(Ok(notification))) if !has_inbox => {
                notifications.give_back(notification);
            }
            Outcome::Waiting(_) => {
                let table = notifications.table();
                drop(self.begun.take().and_then(|(number, ids)| table.give_up(number, ids)));
            }
            Outcome::Ended(_) | Outcome::Detached => {}
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

    /// Makes a wait that has ended with an error.
    pub(super) fn refused(notifications: &OfRank, error: Error) -> Self {
        let state = State::new(notifications, None);
        *state.shared.outcome.lock() = Outcome::Ended(Some(Err(error)));
        Wait(state)
    }
}

impl Future for Wait {
    type Output = Result<Notification, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.begin(|shared| Completion::Future(shared));
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
        waits.iter_mut().for_each(|wait| wait.0.begin(|shared| Completion::Future(shared)));
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
            *wait.0.shared.outcome.lock() = Outcome::Ended(Some(Ok(notification)));
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
                state.begin(move |shared| {
                    Completion::Call(Box::new(move |result| {
                        match &result {
                            Ok(_) => *returned.lock() = Some(guard),
                            Err(error) => guard.fail(error.to_string()),
                        }
                        shared.complete(result);
                    }))
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
