//! Tasks that run once a notification has come.

use std::fmt;
use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::clause::{Actions, Append, Before, One};
use talpf_runtime::{InOut, Ready, TaskBuilder};

use super::follows::Completion;
use super::of_rank::{Awaits, OfRank};
use super::{Inbox, Notification};
use crate::error::Error;
use crate::window::Area;

/// An event of tasks: a notification of one id, without an inbox. Clones are handles of the same
/// event. Made by
/// [`Notifications::event`](crate::Notifications::event).
#[derive(Clone)]
pub struct Notified {
    notifications: OfRank,
    id: u32,
    last: Arc<Mutex<Option<Notification>>>,
}

impl Notified {
    pub(super) fn new(notifications: &OfRank, id: u32) -> Result<Self, Error> {
        notifications.table().check_id(id)?;
        Ok(Notified { notifications: notifications.clone(), id, last: Arc::default() })
    }

    /// Returns the last notification that has let a task with this event run. In the body of a task
    /// that is its own, as long as the next task with the event is ordered behind it.
    pub fn notification(&self) -> Option<Notification> {
        *self.last.lock()
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
/// **Cost**: three allocations. A task of an iteration ([`Context::iterate`](crate::Context::iterate))
/// cannot have such clauses.
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
        let Notified { notifications, id, last } = event.clone();
        self.on_ready(Expecting::new(notifications, id, None, last).begin())
    }

    fn inbox<'r, T, D>(self, inbox: &Inbox<'r, T, D>) -> TaskBuilder<'a, C::Longer, Actions>
    where
        C: Append<One<'r, InOut<T, D>>>,
    {
        let Inbox { notifications, region, area, id, last } = inbox;
        let expecting = Expecting::new(notifications.clone(), *id, Some(*area), Arc::clone(last));
        self.inout(region).on_ready(expecting.begin())
    }
}

/// The wait of a task that has not begun. If the task does not run because one before it failed, the
/// drop fails the run: a put to its inbox would stay parked.
struct Expecting {
    notifications: OfRank,
    id: u32,
    inbox: Option<Area>,
    last: Arc<Mutex<Option<Notification>>>,
    has_begun: bool,
}

impl Expecting {
    fn new(
        notifications: OfRank,
        id: u32,
        inbox: Option<Area>,
        last: Arc<Mutex<Option<Notification>>>,
    ) -> Self {
        Expecting { notifications, id, inbox, last, has_begun: false }
    }

    /// Returns the action that begins the wait.
    fn begin(mut self) -> impl FnOnce(&Ready) + Send + 'static {
        move |ready| {
            self.has_begun = true;
            let (held, last) = (ready.hold_back(), Arc::clone(&self.last));
            let completion: Completion = Box::new(move |result| match result {
                Ok(notification) => {
                    *last.lock() = Some(notification);
                    drop(held);
                }
                Err(error) => held.fail(error.to_string()),
            });
            self.notifications.begin(Awaits::One(self.id, self.inbox), completion);
        }
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        if !self.has_begun && self.inbox.is_some() {
            let rank = self.notifications.rank();
            self.notifications.sender().fail(&Error::InboxGivenUp { rank, id: self.id });
        }
    }
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notified ({} of {})", self.id, self.notifications.rank())
    }
}
