//! The sending end of a queue.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;

use bytemuck::Pod;
use futures::Sink;

use super::batch::Batch;
use super::counts::{Room, SendCounts};
use super::end::{Credits, End, Items};
use crate::error::{Error, QueueError};
use crate::numbers::Rank;
use crate::operation::{Operation, put_notified};
use crate::signal::{Count, End as Last, Listening, Signal, Way};
use crate::slot::MemorySlot;

/// The sending end of a [`RemoteQueue`](crate::RemoteQueue) at one rank, a [`Sink`].
///
/// `send` of `futures::SinkExt` puts one item at once. Items that are given by `feed` or `send_all`
/// are put together: when they are 256 bytes, or at the next `flush`.
///
/// **Ordering**: the receiver takes the items of one sender in the order in which they were sent, each
/// once. Nothing orders items of different senders.
/// **Completion**: `send` and `flush` end when the items are posted. Where the ring of this sender at
/// the receiver has no room they wait until the receiver has taken some. `close` announces the end
/// after the last item. A sender that is dropped closes itself, and a task of the rank sends
/// what was not flushed; one that is dropped by a panic makes the receiver fail.
/// **Errors**: a receiver that was dropped ([`QueueError::ReceiverDropped`]) or lost in a panic; a run that has failed
/// ([`QueueError::Failed`]); an item after `close`. A sender that has failed returns its error again.
/// Items that were posted before may or may not have been taken.
pub struct QueueSender<T: Pod + Send + Sync> {
    end: End,
    /// The way of signals to the receiver. A ring that is in this process is written to directly.
    way: Way<Items<T>>,
    slot: MemorySlot<T>,
    /// Number of the first element of the ring of this sender.
    first: usize,
    credits: Arc<Listening<Credits>>,
    counts: SendCounts,
    /// Number of items that are put together.
    most: usize,
    /// Items that wait to be put.
    batch: Batch<T>,
    /// An empty batch, if there is one and no put is under way.
    spare: Option<Batch<T>>,
    under_way: Option<Operation<Batch<T>>>,
    state: State,
    /// `true` if a task closes this sender, whose program has dropped it.
    is_left_to_task: bool,
}

/// The state of a sender.
enum State {
    Open,
    /// All items are put; the end is being announced.
    Closing(Operation<()>),
    Closed,
    Failed(Error),
}

impl<T: Pod + Send + Sync> QueueSender<T> {
    pub(super) fn new(
        end: End,
        (slot, way): (MemorySlot<T>, Way<Items<T>>),
        (first, capacity): (usize, u32),
        credits: Listening<Credits>,
    ) -> Self {
        let most = Batch::<T>::most(capacity);
        QueueSender {
            end,
            way,
            slot,
            first,
            credits: Arc::new(credits),
            counts: SendCounts::new(capacity),
            most,
            batch: Batch::with_room_for(most),
            spare: None,
            under_way: None,
            state: State::Open,
            is_left_to_task: false,
        }
    }

    /// Returns the rank that receives the items.
    pub fn receiver(&self) -> Rank {
        self.end.receiver
    }

    /// Keeps the error of this sender.
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error.clone());
        error
    }

    /// Checks that items may be sent.
    fn check_open(&self) -> Result<(), Error> {
        match &self.state {
            State::Open => Ok(()),
            State::Failed(error) => Err(error.clone()),
            State::Closing(_) | State::Closed => {
                let (rank, receiver) = (self.end.rank(), self.end.receiver);
                Err(Error::Queue(QueueError::SenderClosed { rank, receiver }))
            }
        }
    }

    /// Puts all items of the batch.
    fn poll_put(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            if let Some(operation) = &mut self.under_way {
                let ended = ready!(Pin::new(operation).poll(cx));
                self.under_way = None;
                match ended {
                    Ok(batch) => self.end_put(batch),
                    Err(error) => return Poll::Ready(Err(self.put_failed(error))),
                }
            }
            if self.batch.len() == 0 {
                return Poll::Ready(Ok(()));
            }
            self.take_credits()?;
            match self.counts.take_room(self.batch.len()) {
                None => ready!(self.poll_credit(cx))?,
                Some(room) => self.put(&room)?,
            }
        }
    }

    /// Puts the next items of the batch, for which there is room.
    fn put(&mut self, room: &Room) -> Result<(), Error> {
        self.batch.begin_put(room.items());
        match &self.way {
            Way::Direct(receiver, place) => {
                if self.end.notifications.round().sender.has_failed() {
                    let error = self.end.check_run().err().unwrap_or(Error::RunEnded);
                    return Err(self.fail(error));
                }
                receiver.end.rings.write(*place, room, self.batch.part());
                self.batch.end_put();
                self.way.signal(&self.end.notifications, self.counts.put());
            }
            Way::Device(rank, id) => {
                let spare = self.spare.take().unwrap_or_else(|| Batch::with_room_for(self.most));
                let batch = std::mem::replace(&mut self.batch, spare);
                let to = self.slot.at(*rank, self.first + room.at());
                let signal = Signal::Count(Count::of(self.counts.put()));
                let notified = (*id, signal.to_value());
                let round = self.end.notifications.round();
                self.under_way = Some(put_notified(round, batch, to, notified));
            }
        }
        Ok(())
    }

    /// Takes back the batch of a put, whose memory may be used again.
    fn end_put(&mut self, mut batch: Batch<T>) {
        batch.end_put();
        if batch.len() > 0 {
            batch.append(&mut self.batch);
            std::mem::swap(&mut batch, &mut self.batch);
        }
        self.spare = Some(batch);
    }

    #[cold]
    fn put_failed(&mut self, error: Error) -> Error {
        let error = match self.end.check_run() {
            Err(of_run) => of_run,
            Ok(()) => self.end.failed(error.to_string()),
        };
        self.fail(error)
    }

    /// Returns the number of items that the receiver has taken, and its end.
    fn credit(&self) -> (u64, Option<Last>) {
        self.credits.at(0).map_or((0, None), |(_, signals)| signals.all())
    }

    /// Takes in the credit that has come.
    #[inline]
    fn take_credits(&mut self) -> Result<(), Error> {
        let (taken, end) = self.credit();
        if taken != self.counts.taken() || end.is_some() {
            self.take_in(taken, end)?;
        }
        Ok(())
    }

    fn take_in(&mut self, taken: u64, end: Option<Last>) -> Result<(), Error> {
        let (rank, receiver) = (self.end.rank(), self.end.receiver);
        let checked = match end {
            None => {
                let credited = self.counts.credit(taken);
                credited.map_err(|range| self.end.out_of_range(receiver, range))
            }
            Some(Last::Closed) => {
                let dropped = Error::Queue(QueueError::ReceiverDropped { rank, receiver });
                self.end.check_ranks().and(Err(dropped))
            }
            Some(Last::Lost) => {
                Err(self.end.failed(format!("a body of {receiver} that receives has panicked")))
            }
        };
        checked.map_err(|error| self.fail(error))
    }

    /// Waits for a credit.
    fn poll_credit(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let has_come = || {
            let (taken, end) = self.credit();
            taken != self.counts.taken() || end.is_some()
        };
        let awaited = (Some(0), "room in a queue");
        let come = ready!(self.credits.poll(cx, awaited, has_come, || self.end.check_run()));
        Poll::Ready(come.map_err(|error| self.fail(error)))
    }

    /// Puts all items and announces the end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match &mut self.state {
                State::Open => {
                    ready!(self.poll_put(cx))?;
                    self.state = match self.announce(Last::Closed) {
                        Some(operation) => State::Closing(operation),
                        None => State::Closed,
                    };
                }
                State::Closing(operation) => {
                    let ended = ready!(Pin::new(operation).poll(cx));
                    self.state = State::Closed;
                    return Poll::Ready(ended.map_err(|error| self.put_failed(error)));
                }
                State::Closed => return Poll::Ready(Ok(())),
                State::Failed(error) => return Poll::Ready(Err(error.clone())),
            }
        }
    }

    /// Signals the end of this sender.
    fn announce(&self, end: Last) -> Option<Operation<()>> {
        self.way.end(&self.end.notifications, (self.counts.put(), end))
    }

    /// Moves what was not sent to a sender of its own, and leaves this one closed.
    fn split_off(&mut self) -> Self {
        let empty = || Batch::with_room_for(0);
        QueueSender {
            end: self.end.clone(),
            way: self.way.clone(),
            slot: self.slot.clone(),
            credits: Arc::clone(&self.credits),
            batch: std::mem::replace(&mut self.batch, empty()),
            spare: self.spare.take(),
            under_way: self.under_way.take(),
            state: std::mem::replace(&mut self.state, State::Closed),
            is_left_to_task: true,
            first: self.first,
            counts: self.counts,
            most: self.most,
        }
    }
}

impl<T: Pod + Send + Sync> Unpin for QueueSender<T> {}

impl<T: Pod + Send + Sync> Sink<T> for QueueSender<T> {
    type Error = Error;

    #[inline]
    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.check_open()?;
        match self.batch.len() < self.most {
            true => Poll::Ready(Ok(())),
            false => self.poll_put(cx),
        }
    }

    #[inline]
    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), Error> {
        self.check_open()?;
        self.batch.push(item);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match &self.state {
            State::Failed(error) => Poll::Ready(Err(error.clone())),
            _ => self.poll_put(cx),
        }
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_end(cx)
    }
}

/// Closes the sender. What it has not sent, a task sends; if that does not run, the receiver fails.
impl<T: Pod + Send + Sync> Drop for QueueSender<T> {
    fn drop(&mut self) {
        if !matches!(self.state, State::Open) {
            return;
        }
        if thread::panicking() || self.is_left_to_task {
            return drop(self.announce(Last::Lost));
        }
        if self.under_way.is_none() && self.batch.len() == 0 {
            return drop(self.announce(Last::Closed));
        }
        let mut rest = self.split_off();
        let group = &self.end.notifications.round().sender.group;
        // The error is that of a receiver that was dropped, or of a run that fails.
        let task = group.task("close queue").unthrottled();
        let _ = task.spawn_async(move || async move {
            let _ = poll_fn(|cx| rest.poll_end(cx)).await;
        });
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for QueueSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let End { receiver, .. } = self.end;
        write!(f, "QueueSender ({} to {receiver})", self.end.rank())
    }
}
