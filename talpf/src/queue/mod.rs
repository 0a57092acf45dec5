//! Remote queues: items of several ranks for one, outside rounds.
//!
//! The receiver has a ring in its memory for each sender, all in one raw slot. A sender collects
//! items in a [`Batch`](batch::Batch), moves as many as there is room for into its ring, and signals
//! ([`signal`](crate::signal)) how many it has put in all; the receiver takes what has come of one sender
//! after the other. Once half of a ring was taken its sender gets credit, by a signal too.
//!
//! ```text
//!              counts: put - taken <= capacity               counts: come - credited <= capacity
//! QueueSender ── items, signal(how many in all) ──► ring ──► QueueReceiver ──► program
//!      ▲                          then its end                  │
//!      └────── signal(how many taken in all), then its end ◄────┘
//! ```
//!
//! Within a process a sender copies its items into the ring itself. To another process, in virtual
//! time and with a trace, it puts them, and the signal is the notification of the put.
//!
//! *Credits are absolute*: the number of all items that were ever taken. So no sender overruns its
//! ring whichever credits are late, and none waits in vain, as a ring without room has items of
//! which half bring a credit. A sender cannot take the room of another one, and the receiver goes
//! round the senders, so none starves.
//!
//! **The race that credits prevent**: an element is written while it is read. The receiver reads an
//! element after the signal that counts it has come, which is after its bytes; the sender writes there
//! again after a credit that counts the item, which was given after the element was read. The slot is
//! in no window, and its array is in no task: nobody else reaches it. Signals have
//! ids that no program can name, so counts are those of the other end; one of another process is
//! checked nevertheless.
//!
//! **States** of a sender: open, closing, closed or failed; only its program moves it on. Of a sender at the
//! receiver: open, ended. An end that is dropped says so; the ends
//! at one rank share the [`Registration`] of its slot, which goes with the last of them.
//!
//! **Threads.** An end is used by one thread at a time. All that several threads reach is in the
//! [`Arrivals`] of an end.
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
use self::end::{Credits, End, Items};
use self::ring::Rings;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::{Error, QueueError};
use crate::numbers::Rank;
use crate::registration::Registration;
use crate::signal::{Arrivals, Listening, Way};
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
            // That of items here, and that of credits.
            let id = self.notifications().add_listener();
            self.notifications().add_listener();
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
        // Both ends here take in signals before a peer may send one.
        let (notifications, place) = (self.notifications(), arguments.place_of(rank));
        let items = (rank == receiving).then(|| {
            let rings = Rings::new(array.clone(), arguments.capacity);
            let items = Items { receiver: receiving, rings };
            Listening::new(Arrivals::new(notifications, &arguments.senders, items), id)
        });
        let credits = place.map(|_| {
            let credits = Credits { receiver: receiving };
            Listening::new(Arrivals::new(notifications, &[receiving], credits), id + 1)
        });
        let slot = self.register_if(made, &array, Use::Raw, call).await?;
        let registration = Registration::new(self.sender(), &slot.slot);
        let end = End { receiver: receiving, notifications: notifications.clone(), registration };
        let sender = place.zip(credits).map(|(place, credits)| {
            let ring = (place * arguments.capacity as usize, arguments.capacity);
            let way = Way::new(notifications, receiving, ids[receiving.index()]);
            QueueSender::new(end.clone(), (slot, way), ring, credits)
        });
        let receiver = items.map(|items| {
            let way =
                |sender: Rank| Way::new(notifications, sender, ids[sender.index()].wrapping_add(1));
            let senders = arguments.senders.iter().map(|sender| (*sender, way(*sender))).collect();
            QueueReceiver::new(end, items, senders, arguments.capacity)
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
