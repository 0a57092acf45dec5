//! The handle by which the tasks of a rank notify and wait.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use talpf_runtime::{ArrayLabel, InOut, Region};

use super::ids::{FIRST_PRIVATE, QUIET};
use super::inbox::Inbox;
use super::multicast::Multicast;
use super::of_rank::{Awaits, OfRank};
use super::task::Notified;
use super::wait::{Receive, Wait, WaitAll};
use crate::error::Error;
use crate::numbers::Rank;
use crate::operation::{Operation, Source, notify, put_copy_notified, put_notified, refused};
use crate::slot::{RemoteRegion, Use};
use crate::sync::Receiver;

/// The end of an error about a quiet put.
const NOT_RAW: &str =
    " by `register_raw`, as a quiet put needs: no wait without an id has an inbox for it";

/// The notifications of a rank: by its clones any task of the rank notifies others and waits for what
/// comes to this one.
///
/// An id is a number of the receiver: each rank has those below its limit
/// ([`Context::resize_notifications`](crate::Context::resize_notifications)). The k-th wait for an id
/// gets the k-th notification that comes with it, of any rank; none is lost, overwritten or counted
/// twice. Ids and values mean what the program says.
///
/// ```
/// use talpf::{Config, Context, Error, Rank, exec};
///
/// // Every rank sends rank 0 its number.
/// let sums = exec(Config { ranks: 3, ..Config::default() }, async |ctx: Context| {
///     let notifications = ctx.notifications();
///     notifications.notify(Rank(0), ctx.rank().0, 10 * ctx.rank().0).await?;
///     if ctx.rank() != Rank(0) {
///         return Ok(0);
///     }
///     let all = notifications.wait_all(0..3).await?;
///     Ok::<_, Error>(all.iter().map(|notification| notification.value).sum())
/// })?;
/// assert_eq!(sums, [30, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Source**: GASPI; TAGASPI for tasks.
#[derive(Clone)]
pub struct Notifications(pub(super) OfRank);

impl Notifications {
    /// Makes the handle of the rank of `receiver`.
    pub(crate) fn new(receiver: &Arc<Receiver>) -> Self {
        Notifications(OfRank::new(receiver))
    }

    pub(super) fn fail(&self, error: &Error) {
        self.0.sender().fail(error);
    }

    /// Checks that an id of `rank` is no private one.
    #[inline]
    fn check_id(&self, rank: Rank, id: u32) -> Result<(), Error> {
        if id < FIRST_PRIVATE { Ok(()) } else { Err(self.no_such_id(rank, id)) }
    }

    #[cold]
    fn no_such_id(&self, rank: Rank, id: u32) -> Error {
        let peers = &self.0.sender().peers;
        let local = if rank.0 < peers.len() { peers.local(rank) } else { None };
        let ids = local.map_or(FIRST_PRIVATE, |peer| peer.notifications.ids());
        Error::NoSuchNotification { rank, id, ids }
    }

    /// Returns the rank that is notified and waits by this handle.
    pub fn rank(&self) -> Rank {
        self.0.rank()
    }

    /// Notifies `rank` of `id`, with a value.
    ///
    /// **Completion**: the returned operation ends when the notification is posted or parked; a loop
    /// of notifications awaits it, so as not to run ahead. Dropped, it goes on.
    /// **Ordering**: notifications of one id, of which each was posted or parked before the next was
    /// issued, are received in this order. Nothing orders a notification and the operations of
    /// rounds, or the puts of others.
    /// **Errors**: no such rank; at both ranks, an id that `rank` does not have.
    /// **Cost**: a message without bytes. More than 1,024 of one id that nobody waits for are kept by
    /// their sources, within credits.
    pub fn notify(&self, rank: impl Into<Rank>, id: u32, value: u32) -> Operation<()> {
        let rank = rank.into();
        match self.check_id(rank, id) {
            Ok(()) => notify(&self.0.round, rank, (id, value)),
            Err(error) => refused(&self.0.round, error),
        }
    }

    /// Writes the elements of `from` to `to`, and then notifies the rank of `to` of `id`.
    ///
    /// **Completion**: the returned operation ends when the region may be reused (*local*). When the
    /// notification is received the data is *delivered*.
    /// **Ordering**: the put lands in the inbox of the wait that receives the notification: the
    /// next for `id`. Before that wait has begun it is parked. As for [`Notifications::notify`],
    /// puts with one id land in the order of their issue if each was posted or parked before the
    /// next was issued. Tasks that no region orders are issued in any order: such puts have an id
    /// each.
    /// **Errors**: elements beyond the slot of the target; at both ranks, a wait whose inbox does not
    /// cover the elements, or that has none (R7), and an id that the target does not have.
    /// **Cost**: as [`OpenRound::put`](crate::OpenRound::put). A put into a slot of
    /// [`Context::register_raw`](crate::Context::register_raw) needs no inbox.
    #[inline]
    pub fn put<G: Source>(
        &self,
        from: G,
        to: RemoteRegion<'_, G::Element>,
        id: u32,
        value: u32,
    ) -> Operation<G> {
        match self.check_id(to.rank, id) {
            Ok(()) => put_notified(&self.0.round, from, to, (id, value)),
            Err(error) => refused(&self.0.round, error),
        }
    }

    /// Writes a copy of `values` to `to`, and then notifies the rank of `to` of `id`: for values
    /// outside arrays, at most 256 bytes.
    ///
    /// **Completion**: `values` may be reused at once. The returned operation ends when the put is
    /// posted or parked; a loop of puts awaits it, so as not to run ahead.
    /// **Ordering**: as [`Notifications::put`]. **Errors**: more than 256 bytes; as
    /// [`Notifications::put`].
    #[inline]
    pub fn put_copy<T: Pod>(
        &self,
        values: &[T],
        to: RemoteRegion<'_, T>,
        id: u32,
        value: u32,
    ) -> Operation<()> {
        match self.check_id(to.rank, id) {
            Ok(()) => put_copy_notified(&self.0.round, values, to, (id, value)),
            Err(error) => refused(&self.0.round, error),
        }
    }

    /// Writes the elements of `from` to each of `to`, and then notifies the rank of each of `id`: a
    /// multicast.
    ///
    /// **Completion**: the returned future ends when the region may be reused by all puts (*local*).
    /// **Ordering**, **Errors**: as [`Notifications::put`], for each of the puts by itself. Nothing orders
    /// them.
    /// **Cost**: that of the puts, with one guard.
    pub fn multicast<'r, G: Source + Sync>(
        &self,
        from: G,
        to: impl IntoIterator<Item = RemoteRegion<'r, G::Element>>,
        id: u32,
        value: u32,
    ) -> Multicast<G> {
        Multicast::new(self, from, to, (id, value))
    }

    /// Writes the elements of `from` to `to`, in a slot of
    /// [`Context::register_raw`](crate::Context::register_raw), and notifies nobody.
    ///
    /// **Completion**: the returned operation ends when the region may be reused (*local*).
    /// **Ordering**: a notification that this rank sends to the same rank after that comes after the bytes.
    /// So one notification announces any number of quiet puts.
    /// **Errors**: a slot of [`Context::register_global`](crate::Context::register_global), whose puts
    /// need an inbox and so an id; as [`Notifications::put`].
    pub fn put_quiet<G: Source>(&self, from: G, to: RemoteRegion<'_, G::Element>) -> Operation<G> {
        let slot = to.slot;
        if slot.usage == Use::Windowed {
            let (array, why) = (ArrayLabel::of_id(slot.array), NOT_RAW);
            return refused(&self.0.round, Error::NotRegistered { array, why });
        }
        put_notified(&self.0.round, from, to, (QUIET, 0))
    }

    /// Waits for a notification of `id`, without an inbox. The wait begins when the future is first
    /// polled.
    ///
    /// **Completion**: the notification has come. A future that is dropped before takes none.
    /// **Errors**: an id that this rank does not have; a run that has failed
    /// ([`Error::NotNotified`]).
    pub fn wait(&self, id: u32) -> Wait {
        match self.check_id(self.rank(), id) {
            Ok(()) => Wait::new(&self.0, Awaits::One(id, None)),
            Err(error) => Wait::refused(&self.0, error),
        }
    }

    /// Waits for a notification of any of the `ids`, without an inbox: of those that have come it
    /// takes one of the lowest id.
    ///
    /// **Completion**: as [`Notifications::wait`]. **Errors**: no ids; as [`Notifications::wait`].
    /// **Cost**: grows with the number of ids if none has come.
    pub fn wait_any(&self, ids: Range<u32>) -> Wait {
        Wait::new(&self.0, Awaits::Any(ids))
    }

    /// Waits for one notification of each of the `ids`, without an inbox, and returns them in the
    /// order of `ids`.
    ///
    /// **Completion**: all have come. A future that is dropped before takes none.
    /// **Errors**: as [`Notifications::wait`].
    pub fn wait_all(&self, ids: impl IntoIterator<Item = u32>) -> WaitAll {
        WaitAll::new(ids.into_iter().map(|id| self.wait(id)))
    }

    /// Waits for a notification of `id`, with the region of `guard` as the inbox of its put, and
    /// returns both. The wait begins when the future is first polled.
    ///
    /// **Completion**: the put is *delivered*. If the future is dropped while the put is landing, the
    /// region is held until it has.
    /// **Errors**: a region of an array that was not registered with
    /// [`Context::register_global`](crate::Context::register_global); as [`Notifications::wait`]. The
    /// region is poisoned if the run has failed.
    pub fn receive<T: Pod + Send + Sync, D: Send + 'static>(
        &self,
        guard: InOut<T, D>,
        id: u32,
    ) -> Receive<T, D> {
        let area = self.0.area_of_part(guard.array_id(), guard.rect());
        let area = self.check_id(self.rank(), id).and(area);
        Receive::new(&self.0, guard, area.map(|area| Awaits::One(id, Some(area))))
    }

    /// Makes `region` the inbox of tasks that receive notifications of `id`:
    /// [`NotifiedTask::inbox`](crate::NotifiedTask::inbox).
    ///
    /// **Errors**: a region outside its array, or of an array that was not registered with
    /// [`Context::register_global`](crate::Context::register_global); an id that this rank does not
    /// have.
    pub fn inbox<'r, T: Pod + Send + Sync, D: Send + 'static>(
        &self,
        region: &Region<'r, T, D>,
        id: u32,
    ) -> Result<Inbox<'r, T, D>, Error> {
        Inbox::new(&self.0, region, id)
    }

    /// Returns the event of a task that runs once a notification of `id` has come:
    /// [`NotifiedTask::notified`](crate::NotifiedTask::notified).
    ///
    /// **Errors**: an id that this rank does not have.
    pub fn event(&self, id: u32) -> Result<Notified, Error> {
        Notified::new(&self.0, id)
    }
}

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifications of {}", self.rank())
    }
}
