//! The receiving end of a queue.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use bytemuck::Pod;
use futures::Stream;

use super::counts::ReceiveCounts;
use super::end::{Credits, End, Items};
use crate::error::Error;
use crate::numbers::Rank;
use crate::signal::{End as Last, Listening, Way};

/// The receiving end of a [`RemoteQueue`](crate::RemoteQueue), a [`Stream`] of the items of all
/// senders.
///
/// **Ordering**: the items of one sender come in the order in which they were sent, each once. Nothing
/// orders items of different senders: what has come of one is taken, then that of the
/// next, so that none waits for ever.
/// **Completion**: the stream ends when every sender is closed or dropped, and all items were taken.
/// Senders of a receiver that is dropped before fail.
/// **Errors**: a sender lost in a panic, after which the items of the others still come; a run that
/// has failed ([`QueueError::Failed`](crate::QueueError::Failed)), after which the stream ends.
/// **Cost**: a sender gets its credit back when half of its ring was taken. Of senders that have sent
/// nothing since, a load each before the receiver waits.
pub struct QueueReceiver<T: Pod + Send + Sync> {
    end: End,
    items: Listening<Items<T>>,
    /// The senders in order, with the ways of their credits.
    senders: Vec<(Rank, Way<Credits>)>,
    /// The counts of each.
    counts: Vec<ReceiveCounts>,
    /// Number of senders that have not ended.
    open: usize,
    /// The place of the sender whose items are taken.
    current: usize,
    last_source: Option<Rank>,
    /// Number of its items that are left of those that have come.
    left: u64,
    /// The end of that sender, if it follows these items.
    last: Option<Last>,
    /// Set once nothing comes any more.
    is_over: bool,
    /// Set once a sender was lost in a panic, whose last put may still be under way.
    has_lost: bool,
}

impl<T: Pod + Send + Sync> QueueReceiver<T> {
    pub(super) fn new(
        end: End,
        items: Listening<Items<T>>,
        senders: Vec<(Rank, Way<Credits>)>,
        capacity: u32,
    ) -> Self {
        let (open, counts) = (senders.len(), vec![ReceiveCounts::new(capacity); senders.len()]);
        QueueReceiver {
            end,
            items,
            senders,
            counts,
            open,
            current: 0,
            last_source: None,
            left: 0,
            last: None,
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

    /// Takes the next item of the current sender.
    #[inline]
    fn take(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let counts = &mut self.counts[self.current];
        let item = self.items.end.rings.take(self.current, counts);
        if let Some(taken) = counts.due_credit() {
            self.credit(taken);
        }
        item
    }

    /// Gives the current sender credit, unless it needs none any more.
    fn credit(&self, taken: u64) {
        if self.last.is_none() {
            // Posted or queued; a later credit stands for this one.
            drop(self.senders[self.current].1.signal(&self.end.notifications, taken));
        }
    }

    /// Ends the current sender, once its items were taken.
    fn end_sender(&mut self, last: Last) -> Result<(), Error> {
        if self.counts[self.current].end() {
            self.open -= 1;
        }
        match last {
            Last::Closed => Ok(()),
            Last::Lost => {
                self.has_lost = true;
                let sender = self.senders[self.current].0;
                Err(self.end.failed(format!("a body of {sender} that sends has panicked")))
            }
        }
    }

    /// Returns what has come of the sender at a place: the number of all its items, and its end.
    /// `None` if that was taken in before.
    #[inline]
    fn news(&self, place: usize) -> Option<(u64, Option<Last>)> {
        let counts = &self.counts[place];
        let (come, last) = self.items.at(place)?.1.all();
        (!counts.has_ended() && (come != counts.come() || last.is_some())).then_some((come, last))
    }

    /// Makes the next sender the current one of which something has come. Returns `false` if there is
    /// none.
    fn next_sender(&mut self) -> Result<bool, Error> {
        let places = (self.current + 1..self.senders.len()).chain(0..=self.current);
        let Some((place, (come, last))) =
            places.into_iter().find_map(|place| Some((place, self.news(place)?)))
        else {
            return Ok(false);
        };
        let (sender, taken_in) = (self.senders[place].0, self.counts[place].take_in(come));
        self.left = taken_in.map_err(|range| self.end.out_of_range(sender, range))?;
        (self.current, self.last) = (place, last);
        if self.left > 0 {
            self.last_source = Some(sender);
        }
        Ok(true)
    }

    /// Waits for items.
    fn poll_arrivals(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let has_come = || (0..self.senders.len()).any(|place| self.news(place).is_some());
        self.items.poll(cx, (None, "an item of a queue"), has_come, || self.end.check_run())
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
            let went_on = match this.last.take() {
                Some(last) => this.end_sender(last).map(|()| true),
                None if this.open == 0 || this.is_over => return Poll::Ready(None),
                None => this.next_sender().inspect_err(|_| this.is_over = true),
            };
            match went_on {
                Ok(true) => {}
                Ok(false) => {
                    if let Err(error) = ready!(this.poll_arrivals(cx)) {
                        this.is_over = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
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
        let last = if thread::panicking() { Last::Lost } else { Last::Closed };
        let open = self.senders.iter().zip(&self.counts).filter(|(_, counts)| !counts.has_ended());
        open.for_each(|((_, way), _)| drop(way.end(&self.end.notifications, (0, last))));
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for QueueReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, open, all) = (self.end.rank(), self.open, self.senders.len());
        write!(f, "QueueReceiver of {rank} ({open} of {all} senders are open)")
    }
}
