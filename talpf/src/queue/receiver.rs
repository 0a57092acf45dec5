//! The receiving end of a queue.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use bytemuck::Pod;
use futures::Stream;

use super::end::End;
use super::ring::Rings;
use crate::error::Error;
use crate::notification::{Notification, Wait};
use crate::numbers::Rank;
use crate::signal::{Count, Signal};

/// The receiving end of a [`RemoteQueue`](crate::RemoteQueue), a [`Stream`] of the items of all
/// senders.
///
/// **Ordering**: the items of one sender come in the order in which they were sent, each once; puts
/// of different senders in the order in which they come here.
/// **Completion**: the stream ends when every sender is closed or dropped, and all items were taken.
/// Senders of a receiver that is dropped before fail.
/// **Errors**: a sender lost in a panic, after which the items of the others still come; a run that
/// has failed ([`QueueError::Failed`](crate::QueueError::Failed)), after which the stream ends.
/// **Cost**: a sender gets its credit back when half of its ring was taken.
pub struct QueueReceiver<T: Pod + Send + Sync> {
    end: End,
    /// The id of items here.
    id: u32,
    /// The senders in order, with the ids of their credits.
    senders: Vec<(Rank, u32)>,
    /// Number of senders that have not ended.
    open: usize,
    /// `true` for each sender that has ended.
    ended: Vec<bool>,
    rings: Rings<T>,
    /// The place of the sender whose items are taken.
    current: usize,
    last_source: Option<Rank>,
    /// Number of its items that are left of the last put.
    left: u32,
    arrived: VecDeque<Notification>,
    waits: Option<Wait>,
    /// Set once nothing comes any more.
    is_over: bool,
    /// Set once a sender was lost in a panic, whose last put may still be under way.
    has_lost: bool,
}

impl<T: Pod + Send + Sync> QueueReceiver<T> {
    pub(super) fn new(end: End, id: u32, senders: Vec<(Rank, u32)>, rings: Rings<T>) -> Self {
        let (open, ended) = (senders.len(), vec![false; senders.len()]);
        QueueReceiver {
            end,
            id,
            senders,
            open,
            ended,
            rings,
            current: 0,
            last_source: None,
            left: 0,
            arrived: VecDeque::new(),
            waits: None,
            is_over: false,
            has_lost: false,
        }
    }

    /// Returns the rank that receives the items.
    pub fn receiver(&self) -> Rank {
        self.end.receiver
    }

    /// Returns the rank that has sent the item that was taken last.
    pub fn source(&self) -> Option<Rank> {
        self.last_source
    }

    /// Takes the next item of the current put.
    #[inline]
    fn take(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let item = self.rings.take(self.current);
        if let Some(taken) = self.rings.of(self.current).due_credit() {
            self.credit(taken);
        }
        if self.left == 0 {
            self.end_sender_if_over(self.current);
        }
        item
    }

    /// Gives the current sender credit.
    #[cold]
    fn credit(&self, taken: Count) {
        let (rank, id) = self.senders[self.current];
        // Posted or queued; a later credit stands for this one.
        drop(self.end.signal(rank, id, Signal::Count(taken)));
    }

    fn end_sender_if_over(&mut self, sender: usize) {
        if self.rings.of(sender).has_ended() {
            self.end_sender(sender);
        }
    }

    fn end_sender(&mut self, sender: usize) {
        if !std::mem::replace(&mut self.ended[sender], true) {
            self.open -= 1;
        }
    }

    /// Takes in a notification of a sender.
    fn take_in(&mut self, notification: Notification) -> Result<(), Error> {
        let Notification { source, value, .. } = notification;
        let (Ok(sender), Some(signal)) = (
            self.senders.binary_search_by_key(&source, |(rank, _)| *rank),
            Signal::from_value(value),
        ) else {
            return Err(self.end.bad_value(notification));
        };
        match signal {
            Signal::Count(items) => {
                let added = self.rings.of(sender).add(items);
                added.map_err(|range| self.end.out_of_range(source, range))?;
                (self.current, self.left) = (sender, items.items());
                self.last_source = Some(source);
            }
            Signal::Closed(in_all) => {
                self.rings.of(sender).close(in_all);
                self.end_sender_if_over(sender);
            }
            Signal::Lost => {
                self.end_sender(sender);
                self.has_lost = true;
                return Err(self.end.failed(format!("a body of {source} that sends has panicked")));
            }
        }
        Ok(())
    }

    /// Waits for notifications.
    fn poll_arrivals(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.waits.is_none() {
            self.end.notifications.poll_arrived(self.id, &mut self.arrived);
            if !self.arrived.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.end.check_run()?;
        }
        let (notifications, id) = (&self.end.notifications, self.id);
        let wait = self.waits.get_or_insert_with(|| notifications.wait_for_queue(id));
        let ended = ready!(Pin::new(wait).poll(cx));
        self.waits = None;
        let arrived = ended.map(|notification| self.arrived.push_back(notification));
        Poll::Ready(arrived.map_err(|error| self.end.not_notified(error)))
    }
}

impl<T: Pod + Send + Sync> Unpin for QueueReceiver<T> {}

impl<T: Pod + Send + Sync> Stream for QueueReceiver<T> {
    type Item = Result<T, Error>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.take() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(notification) = this.arrived.pop_front() {
                if let Err(error) = this.take_in(notification) {
                    return Poll::Ready(Some(Err(error)));
                }
            } else if this.open == 0 || this.is_over {
                return Poll::Ready(None);
            } else if let Err(error) = ready!(this.poll_arrivals(cx)) {
                this.is_over = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

/// Makes the senders fail that have not ended.
impl<T: Pod + Send + Sync> Drop for QueueReceiver<T> {
    fn drop(&mut self) {
        if self.open > 0 || self.has_lost {
            self.end.registration.keep();
        }
        let signal = if thread::panicking() { Signal::Lost } else { Signal::Closed(Count::of(0)) };
        for ((rank, id), _) in self.senders.iter().zip(&self.ended).filter(|(_, ended)| !**ended) {
            drop(self.end.signal(*rank, *id, signal));
        }
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for QueueReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, open, all) = (self.end.rank(), self.open, self.senders.len());
        write!(f, "QueueReceiver of {rank} ({open} of {all} senders are open)")
    }
}
