//! Deferred actions of a table of notifications, once its lock is released.

use std::sync::Arc;

use smallvec::SmallVec;
use talpf_runtime::HeldBack;

use super::Notification;
use super::last::Last;
use super::listener::Listener;
use crate::error::Error;
use crate::numbers::{ArrivalNumber, Rank};
use crate::window::Parked;

/// The end of a wait, which comes once and under no lock. Its drop before that gives the wait up.
pub(crate) enum Completion {
    /// Lets a task go on, and leaves the notification for its body.
    Task(HeldBack, Arc<Last>),
    /// Ends a future.
    Future(Arc<dyn Awaiter>),
    /// Calls a function.
    Call(Box<dyn FnOnce(Result<Notification, Error>) + Send>),
}

/// The side of a wait that awaits its result.
pub(crate) trait Awaiter: Send + Sync {
    /// Takes the result.
    fn complete(&self, result: Result<Notification, Error>);
}

/// Deferred actions of a table. Usually none, or the end of one wait.
#[derive(Default)]
#[must_use = "waits have to end, and operations that may land have to be posted"]
pub(crate) struct Follows {
    /// Waits that end.
    ended: SmallVec<[Ended; 1]>,
    /// Listeners that have taken in notifications.
    pub(super) listeners: SmallVec<[Arc<dyn Listener>; 1]>,
    rest: Option<Box<Lists>>,
}

#[derive(Default)]
pub(crate) struct Lists {
    /// Operations that may land, to be posted.
    pub(crate) admitted: SmallVec<[Admitted; 1]>,
    /// Operations that no inbox takes.
    pub(crate) refused: Vec<Box<dyn Parked>>,
    /// Sources that have credit again.
    pub(crate) sources: SmallVec<[Rank; 2]>,
}

/// A wait that ends.
pub(crate) struct Ended {
    completion: Completion,
    result: Result<Notification, Box<Error>>,
}

/// An operation that may land, on its way out of the table.
pub(crate) struct Admitted {
    pub(super) number: ArrivalNumber,
    pub(super) source: Rank,
    pub(crate) operation: Box<dyn Parked>,
}

impl Ended {
    /// Ends the wait.
    pub(crate) fn complete(self) {
        let Ended { completion, result } = self;
        let result = result.map_err(|error| *error);
        match (completion, result) {
            (Completion::Task(held, last), Ok(notification)) => {
                last.set(notification);
                drop(held);
            }
            (Completion::Task(held, _), Err(error)) => held.fail(error.to_string()),
            (Completion::Future(awaiter), result) => awaiter.complete(result),
            (Completion::Call(call), result) => call(result),
        }
    }
}

impl Follows {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.ended.is_empty() && self.listeners.is_empty() && self.rest.is_none()
    }

    /// Returns `true` if there is nothing but ends of waits, and listeners.
    #[inline]
    pub(crate) fn only_ends(&self) -> bool {
        self.rest.is_none()
    }

    /// Ends the waits, and calls the listeners.
    #[inline]
    pub(crate) fn end_waits(&mut self) {
        match self.ended.len() {
            1 => self.ended.pop().into_iter().for_each(Ended::complete),
            _ => std::mem::take(&mut self.ended).into_iter().for_each(Ended::complete),
        }
        if !self.listeners.is_empty() {
            let listeners = std::mem::take(&mut self.listeners);
            listeners.iter().for_each(|listener| listener.follow_up());
        }
    }

    pub(super) fn lists(&mut self) -> &mut Lists {
        self.rest.get_or_insert_default()
    }

    /// Takes the actions beside the ends of waits.
    pub(crate) fn take_lists(&mut self) -> Lists {
        self.rest.take().map(|lists| *lists).unwrap_or_default()
    }

    pub(super) fn end(&mut self, completion: Completion, result: Result<Notification, Error>) {
        self.ended.push(Ended { completion, result: result.map_err(Box::new) });
    }
}
