//! Remote queues: items of several ranks for one, outside rounds.
//!
//! The receiver has a ring in its memory for each sender, all in one raw slot. A sender collects
//! items in a [`Batch`](batch::Batch) and puts as many as there is room for, with a notification that
//! says how many; the receiver takes the notifications of all senders in the order in which they come,
//! and the items out of the rings. Once half of a ring was taken its sender gets credit, by a
//! notification too.
//!
//! ```text
//!              counts: put - taken <= capacity               counts: come - credited <= capacity
//! QueueSender ── put of items, Count(how many) ──► ring ──► QueueReceiver ──► program
//!      ▲                     then Closed(how many in all), or Lost   │
//!      └────── Count(how many taken in all), Closed or Lost ◄────────┘
//! ```
//!
//! *Credits are absolute*: the number of all items that were ever taken. So no sender overruns its
//! ring whichever credits are late, and none waits in vain, as a ring without room has items of
//! which half bring a credit. A sender cannot take the room of another one, and notifications are
//! taken in their order, so none starves.
//!
//! **The race that credits prevent**: an element is written while it is read. The receiver reads an
//! element after the notification of its put has come, which is after its bytes; the sender writes there
//! again after a credit that counts the item, which was sent after the element was read. The slot is
//! in no window, and its array is in no task: nobody else reaches it. Notifications of queues have
//! ids that no program can name, so counts are those of the other end; one of another process is
//! checked nevertheless.
//!
//! **States** of a sender: open, closing, closed or failed; only its program moves it on. Of a sender at the
//! receiver: open, closed while items are under way, ended. An end that is dropped says so; the ends
//! at one rank share the [`Registration`] of its slot, which goes with the last of them.
//!
//! **Threads.** An end is used by one thread at a time. All that several threads reach is in the table of
//! notifications.
//!
//! Deliberately absent: several receivers, and an order among senders.

mod arguments;
mod batch;
mod counts;
mod end;
mod receiver;
mod ring;
mod sender;

use std::fmt;

use bytemuck::Pod;
use talpf_runtime::Array;

use self::arguments::Arguments;
use self::end::End;
use self::ring::Rings;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::{Error, QueueError};
use crate::numbers::Rank;
use crate::registration::Registration;
use crate::slot::Use;

pub use self::receiver::QueueReceiver;
pub use self::sender::QueueSender;

/// A queue of items from several ranks to one, at one rank: its sending end, its receiving end, both
/// or none. Made by [`Context::remote_queue`].
///
/// ```
/// use futures::{SinkExt, StreamExt};
/// use talpf::{Config, Context, Error, exec};
///
/// // All other ranks send rank 0 their numbers, ten times.
/// let sums = exec(Config { ranks: 3, ..Config::default() }, async |ctx: Context| {
///     let queue = ctx.remote_queue::<u32>(0, 1..ctx.size(), 4).await?;
///     if let Some(mut sender) = queue.sender {
///         for _ in 0..10 {
///             sender.feed(ctx.rank().0).await?;
///         }
///         sender.close().await?;
///     }
///     let mut sum = 0;
///     if let Some(mut receiver) = queue.receiver {
///         while let Some(number) = receiver.next().await {
///             sum += number?;
///         }
///     }
///     Ok::<_, Error>(sum)
/// })?;
/// assert_eq!(sums, [30, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Source**: `RQueue` of the runtime of the MPPA-256 (Dupont de Dinechin et al., 2013).
pub struct RemoteQueue<T: Pod + Send + Sync> {
    /// The sending end, if this rank is a sender.
    pub sender: Option<QueueSender<T>>,
    /// The receiving end, at the receiver.
    pub receiver: Option<QueueReceiver<T>>,
    rank: Rank,
    receiving: Rank,
}

impl<T: Pod + Send + Sync> RemoteQueue<T> {
    /// Takes the sending end.
    ///
    /// **Errors**: this rank is no sender, or the end was taken.
    pub fn take_sender(&mut self) -> Result<QueueSender<T>, Error> {
        self.sender.take().ok_or_else(|| self.has_no("sender"))
    }

    /// Takes the receiving end.
    ///
    /// **Errors**: this rank is not the receiver, or the end was taken.
    pub fn take_receiver(&mut self) -> Result<QueueReceiver<T>, Error> {
        self.receiver.take().ok_or_else(|| self.has_no("receiver"))
    }

    fn has_no(&self, end: &'static str) -> Error {
        Error::Queue(QueueError::NoEnd { rank: self.rank, end, receiver: self.receiving })
    }
}

impl Context {
    /// Makes a queue by which `senders` send items to `receiver`. A sender may have `capacity` items
    /// in the queue that were not taken. The receiver may be a sender, too.
    ///
    /// Collective: every rank calls it with the same arguments, in the same order among its
    /// collective calls.
    ///
    /// **Completion**: all ranks have their ends.
    /// **Errors**: no such rank; a capacity of 0 or of more than 2^28; more items in all than
    /// an array or the memory has room for; no room for a slot
    /// ([`Context::resize_memory_register`]); arguments that differ, which names the rank and both
    /// values. All ranks have an error then.
    /// **Cost**: two exchanges between all ranks. At the receiver `capacity` items for each
    /// sender. A slot as long as the rank has an end; and until the run ends some 300 bytes, and the items of a
    /// receiver that was dropped before its senders.
    pub async fn remote_queue<T: Pod + Send + Sync>(
        &self,
        receiver: impl Into<Rank>,
        senders: impl IntoIterator<Item = impl Into<Rank>>,
        capacity: usize,
    ) -> Result<RemoteQueue<T>, Error> {
        let (call, rank, receiving) = (Call::RemoteQueue, self.rank(), receiver.into());
        let senders = senders.into_iter().map(Into::into);
        let arguments = Arguments::new(receiving, senders, capacity, self.size());
        let own = arguments.map(|arguments| {
            // Each announces an item at least, or the end of its sender.
            let most = arguments.elements() + 2 * arguments.senders.len();
            let id = self.notifications().add_queue(receiving, most);
            (arguments.of_items::<T>().to_bytes(id), (arguments, id))
        });
        let ((arguments, id), all) = self.world().all_gather(rank, call, own).await?;
        let ids = arguments.of_items::<T>().compare(&all)?;
        let elements = if rank == receiving { arguments.elements() } else { 0 };
        let (items, room) = match zeroed::<T>(elements) {
            Ok(items) => (items, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let tile = items.len().max(1);
        let (array, made) = match Array::new(self.group(), items, tile) {
            Ok(array) => (array, room),
            Err(error) => (Array::new(self.group(), Vec::new(), 1)?, Err(error.into())),
        };
        let array = array.named(call.name());
        let slot = self.register_if(made, &array, Use::Raw, call).await?;
        let notifications = self.notifications().clone();
        let registration = Registration::new(self.sender(), &slot.slot);
        let end = End { receiver: receiving, notifications, registration };
        let sender = arguments.place_of(rank).map(|place| {
            let ring = (place * arguments.capacity as usize, arguments.capacity);
            QueueSender::new(end.clone(), slot, ring, [ids[receiving.index()], id + 1])
        });
        let receiver = (rank == receiving).then(|| {
            let credits = |rank: &Rank| (*rank, ids[rank.index()].wrapping_add(1));
            let senders = arguments.senders.iter().map(credits).collect();
            QueueReceiver::new(end, id, senders, Rings::new(array, arguments.capacity))
        });
        Ok(RemoteQueue { sender, receiver, rank, receiving })
    }
}

/// Makes items.
///
/// **Errors**: no memory for so many.
fn zeroed<T: Pod>(items: usize) -> Result<Vec<T>, Error> {
    let mut zeroed = Vec::new();
    zeroed.try_reserve_exact(items).map_err(|_| {
        let (what, value) = ("number of items of a queue's rings", items as u64);
        Error::Limit { what, value, limit: isize::MAX as u64 / size_of::<T>().max(1) as u64 }
    })?;
    zeroed.resize(items, T::zeroed());
    Ok(zeroed)
}

impl<T: Pod + Send + Sync> fmt::Debug for RemoteQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = [self.sender.is_some(), self.receiver.is_some()];
        write!(f, "RemoteQueue to {} (sender, receiver: {ends:?})", self.receiving)
    }
}
