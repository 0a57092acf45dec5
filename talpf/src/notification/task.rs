//! Tasks that run once a notification has come.

use std::fmt;
use std::sync::Arc;

use talpf_runtime::clause::{Actions, Append, Before, One};
use talpf_runtime::{InOut, TaskBuilder};

use super::awaited::Awaited;
use super::of_rank::OfRank;
use super::{Inbox, Notification};
use crate::error::Error;

/// An event of tasks: a notification of one id, without an inbox. Clones are handles of the same
/// event. Made by
/// [`Notifications::event`](crate::Notifications::event).
#[derive(Clone)]
pub struct Notified(Arc<Awaited>);

impl Notified {
    pub(super) fn new(notifications: &OfRank, id: u32) -> Result<Self, Error> {
        notifications.table().check_id(id)?;
        Ok(Notified(Awaited::new(notifications, id, None)))
    }

    /// Returns the last notification that has let a task with this event run. In the body of a task
    /// that is its own, as long as the next task with the event is ordered behind it.
    pub fn notification(&self) -> Option<Notification> {
        self.0.last()
    }
}

/// The clauses of a task that wait for notifications.
///
/// A task waits once nothing else holds it back, and occupies no worker meanwhile. Each such task
/// takes one notification. A task with several of these clauses waits for one after all: their
/// waits begin together.
///
/// ```
/// use talpf::{Config, Context, Error, NotifiedTask, Rank, exec};
/// use talpf_runtime::Array;
///
/// // Rank 0 puts two numbers, one after the other into the same inbox. The second one waits until
/// // rank 1 has read the first.
/// let read = exec(Config { ranks: 2, ..Config::default() }, async |ctx: Context| {
///     let number = Array::new(ctx.group(), vec![0u64], 1)?;
///     let slot = ctx.register_global(&number).await?;
///     let read = Array::new(ctx.group(), vec![0; 2], 1)?;
///     for round in 0..2 {
///         if ctx.rank() == Rank(0) {
///             let set = ctx.group().task("set").output(&number.all());
///             set.spawn(move |mut number| number[0] = 7 + round)?;
///             ctx.put_notify(&number.all(), slot.at(Rank(1), 0), 5, round as u32)?;
///         } else {
///             let inbox = ctx.notifications().inbox(&number.all(), 5)?;
///             let copy = ctx.group().task("copy").inbox(&inbox);
///             let copy = copy.output(&read.region(round as usize..=round as usize));
///             copy.spawn(|number, mut read| read[0] = number[0])?;
///         }
///     }
///     Ok::<_, Error>(ctx.group().task("read").input(&read.all()).run(|read| read.to_vec())?.await?)
/// })?;
/// assert_eq!(read[1], [7, 8]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Errors**: if a task before it fails, a task does not wait, and the run fails if it has an inbox
/// ([`Error::InboxGivenUp`]). If the run fails, as it does when a group is cancelled, so do the tasks
/// that wait.
/// **Cost**: no allocation for the first such clause of a task, one for all further ones. A task of
/// an iteration ([`Context::iterate`](crate::Context::iterate)) cannot have such clauses.
pub trait NotifiedTask<'a, C>: Sized {
    /// Makes the task wait for a notification.
    fn notified(self, event: &Notified) -> TaskBuilder<'a, C, Actions>;

    /// Declares that the task reads and writes the region of `inbox`, and makes it wait for a put to
    /// it: the put lands when earlier tasks have released the region, and then the body gets it.
    fn inbox<'r, T, D>(self, inbox: &Inbox<'r, T, D>) -> TaskBuilder<'a, C::Longer, Actions>
    where
        C: Append<One<'r, InOut<T, D>>>;
}

impl<'a, C, A: Before> NotifiedTask<'a, C> for TaskBuilder<'a, C, A> {
    fn notified(self, event: &Notified) -> TaskBuilder<'a, C, Actions> {
        self.on_ready_of(Arc::<Awaited>::clone(&event.0))
    }

    fn inbox<'r, T, D>(self, inbox: &Inbox<'r, T, D>) -> TaskBuilder<'a, C::Longer, Actions>
    where
        C: Append<One<'r, InOut<T, D>>>,
    {
        let Inbox { region, awaited } = inbox;
        self.inout(region).on_ready_of(Arc::<Awaited>::clone(awaited))
    }
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notified ({} of {})", self.0.id(), self.0.rank())
    }
}
