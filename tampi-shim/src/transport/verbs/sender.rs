//! The sending half of a link: what goes out, by which protocol, and what waits for the peer.
#![allow(unsafe_code, reason = "ends registrations that the peer has finished with")]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use ibverbs_sim::Access;

use super::aftermath::Aftermath;
use super::cell::{Cell, INLINE, Kind, cells_of};
use super::job::{Job, Short, Source, keep, pack};
use super::link::Link;
use super::memory::{Memory, Registered};
use super::offers::{Offers, Subject};
use super::outlet::Outlet;
use super::slots::Slots;
use super::transfers::{Direction, Transfer};
use super::world::RankState;
use crate::error::Error;
use crate::matching::Key;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{Awaited, Ticket};
use crate::transport::SendMode;

/// See the module text.
pub(super) struct Sender {
    pub(super) outlet: Outlet,
    /// The turn of the rank in which a short message was written last.
    turn: u32,
    /// What waits for room in the ring, in order.
    staged: VecDeque<Staged>,
    /// Sends that end when the peer says so, by number.
    pending: Slots<Pending>,
    /// Receives that the peer has offered.
    pub(super) offers: Offers,
    pub(super) statistics: Statistics,
}

enum Staged {
    Message(Job),
    Notice(Cell),
}

struct Pending {
    /// `None`: the send has ended for its caller.
    ticket: Option<Ticket>,
    status: Status,
    registered: Option<Registered>,
    kept: Vec<u8>,
}

/// Where a send is after an attempt.
enum Attempt {
    Ended(Option<Ticket>),
    /// `None`: the caller has the other half already.
    UnderWay(Option<Awaited>),
    NoRoom(Job),
}

impl Sender {
    pub(super) fn new(outlet: Outlet) -> Self {
        Sender {
            outlet,
            turn: u32::MAX,
            staged: VecDeque::new(),
            pending: Slots::default(),
            offers: Offers::default(),
            statistics: Statistics::default(),
        }
    }

    /// Sends a message that fits into one cell, if the peer has room for it. Those that follow one
    /// in the same turn are collected.
    #[inline]
    pub(super) fn send_short(
        &mut self,
        link: &Link,
        rank: &RankState,
        key: &Key,
        bytes: &[u8],
    ) -> Result<Short, Error> {
        let goes = bytes.len() <= rank.protocols.eager.min(INLINE)
            && self.staged.is_empty()
            && self.outlet.room(link, 1)
            && self.outlet.quota(link, rank.quota, 1);
        if !goes {
            return Ok(Short::TooLong);
        }
        self.statistics.eager += 1;
        let turn = rank.turn();
        if self.turn != turn {
            self.turn = turn;
            self.outlet.write_short(link, key, bytes)?;
            self.offers.pass(Subject::of(key), self.outlet.tail());
            return Ok(Short::Sent);
        }
        let is_first = self.outlet.collect(link, key, bytes);
        self.offers.pass(Subject::of(key), self.outlet.tail());
        if is_first && rank.poller.is_asleep() {
            self.outlet.write_collected(link)?;
            return Ok(Short::Alone);
        }
        if self.outlet.is_full() {
            self.outlet.write_collected(link)?;
        }
        Ok(if is_first { Short::Collected } else { Short::Sent })
    }

    /// Sends a message, or stages it until there is room. What is returned is for the caller of a
    /// send.
    #[inline]
    pub(super) fn send(
        &mut self,
        link: &Link,
        rank: &RankState,
        job: Job,
        after: &mut Aftermath,
    ) -> Result<Option<Awaited>, Error> {
        let job = if self.staged.is_empty() {
            match self.attempt(link, rank, job, after)? {
                Attempt::Ended(_) => return Ok(None),
                Attempt::UnderWay(awaited) => return Ok(awaited),
                Attempt::NoRoom(job) => job,
            }
        } else {
            job
        };
        // The peer makes room when it has taken them.
        self.outlet.write_collected(link)?;
        self.stage(rank, job)
    }

    #[cold]
    fn stage(&mut self, rank: &RankState, mut job: Job) -> Result<Option<Awaited>, Error> {
        let awaited = if job.mode == SendMode::Buffered {
            if let Source::Lent(memory) = &job.bytes {
                job.bytes = Source::Kept(keep(rank, memory)?);
            }
            None
        } else {
            let (ticket, awaited) = crate::ticket::ticket();
            job.ticket = Some(ticket);
            Some(awaited)
        };
        self.statistics.queued += 1;
        rank.staged.fetch_add(1, Ordering::Relaxed);
        self.staged.push_back(Staged::Message(job));
        Ok(awaited)
    }

    /// Sends what was staged, as far as there is room.
    pub(super) fn flush(&mut self, link: &Link, rank: &RankState, after: &mut Aftermath) {
        while let Some(first) = self.staged.pop_front() {
            let back = match first {
                Staged::Notice(notice) if self.outlet.room(link, 1) => {
                    after.note(self.outlet.write(link, notice));
                    None
                }
                Staged::Notice(notice) => Some(Staged::Notice(notice)),
                Staged::Message(job) => {
                    let status = job.status();
                    match self.attempt(link, rank, job, after) {
                        Ok(Attempt::Ended(ticket)) => {
                            ticket
                                .into_iter()
                                .for_each(|ticket| after.end(ticket, Ok(status.into())));
                            None
                        }
                        Ok(Attempt::UnderWay(_)) => None,
                        Ok(Attempt::NoRoom(job)) => Some(Staged::Message(job)),
                        Err(error) => {
                            after.fail(error);
                            None
                        }
                    }
                }
            };
            if let Some(back) = back {
                self.staged.push_front(back);
                return;
            }
            rank.staged.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends the peer a cell that is about no message.
    pub(super) fn notify(
        &mut self,
        link: &Link,
        rank: &RankState,
        notice: Cell,
    ) -> Result<(), Error> {
        if self.outlet.room(link, 1) {
            return self.outlet.write(link, notice);
        }
        self.outlet.write_collected(link)?;
        rank.staged.fetch_add(1, Ordering::Relaxed);
        self.staged.push_back(Staged::Notice(notice));
        Ok(())
    }

    /// Whether an offer would leave at once; one that comes late is worth nothing.
    pub(super) fn can_offer(&self, link: &Link) -> bool {
        self.staged.is_empty() && self.outlet.room(link, 1)
    }

    /// The peer has said that it needs a send no more.
    pub(super) fn finish(&mut self, rank: &RankState, send: u64, after: &mut Aftermath) {
        let Some(pending) = self.pending.remove(send) else { return };
        rank.pending.fetch_sub(1, Ordering::Relaxed);
        rank.kept.fetch_sub(pending.kept.len() as u64, Ordering::Relaxed);
        if let Some(registered) = pending.registered {
            // SAFETY: the peer says that the send is done once its reads have completed.
            unsafe { registered.end_unused() };
        }
        if let Some(ticket) = pending.ticket {
            after.end(ticket, Ok(pending.status.into()));
        }
    }

    /// Ends everything with `error`, and the device's use of it.
    pub(super) fn fail(
        &mut self,
        link: &Link,
        rank: &RankState,
        error: &Error,
        after: &mut Aftermath,
    ) {
        self.outlet.forget_collected(link);
        for staged in self.staged.drain(..) {
            rank.staged.fetch_sub(1, Ordering::Relaxed);
            if let Staged::Message(Job { ticket: Some(ticket), .. }) = staged {
                after.end(ticket, Err(Box::new(error.clone())));
            }
        }
        self.offers.clear();
        for pending in self.pending.drain() {
            rank.pending.fetch_sub(1, Ordering::Relaxed);
            rank.kept.fetch_sub(pending.kept.len() as u64, Ordering::Relaxed);
            drop(pending.registered);
            if let Some(ticket) = pending.ticket {
                after.end(ticket, Err(Box::new(error.clone())));
            }
        }
    }

    fn attempt(
        &mut self,
        link: &Link,
        rank: &RankState,
        job: Job,
        after: &mut Aftermath,
    ) -> Result<Attempt, Error> {
        let length = job.bytes.length();
        let synchronous = job.mode == SendMode::Synchronous;
        let mut eager = None;
        if length <= rank.protocols.eager as u64 {
            let cells = cells_of(length as usize, synchronous);
            eager = self.outlet.quota(link, rank.quota, cells).then_some(cells);
            self.statistics.over_quota += u64::from(eager.is_none());
        }
        if !self.outlet.room(link, eager.unwrap_or(1)) {
            return Ok(Attempt::NoRoom(job));
        }
        // One cell at least.
        let offer = self.offers.pass(Subject::of(&job.key), self.outlet.tail() + 1);
        if let Some(cells) = eager {
            return self.send_eager(link, rank, job, cells);
        }
        let Job { key, mode, bytes, ticket } = job;
        match (bytes, offer) {
            (Source::Lent(memory), Some(offer))
                if mode != SendMode::Buffered && !memory.has_short_rows() =>
            {
                let status = key.status(memory.bytes());
                self.outlet.write(link, Cell::claim(&key, offer.receive, status.bytes))?;
                self.statistics.written += 1;
                if status.bytes > offer.place.bytes() {
                    // The receive fails, as it would have in any other way.
                    return Ok(Attempt::Ended(ticket));
                }
                let (ticket, awaited) = under_way(ticket);
                let direction = Direction::Write(offer.receive);
                let transfer = Transfer::new((direction, offer.place), memory, ticket, status);
                after.transfer(link.peer, transfer);
                Ok(Attempt::UnderWay(awaited))
            }
            (bytes, _) => self.announce(link, rank, Job { key, mode, bytes, ticket }),
        }
    }

    #[inline]
    fn send_eager(
        &mut self,
        link: &Link,
        rank: &RankState,
        job: Job,
        cells: usize,
    ) -> Result<Attempt, Error> {
        let (kind, send, attempt) = if job.mode == SendMode::Synchronous {
            let status = job.status();
            let (ticket, awaited) = under_way(job.ticket);
            let registered = None;
            let pending = Pending { ticket: Some(ticket), status, registered, kept: Vec::new() };
            rank.pending.fetch_add(1, Ordering::Relaxed);
            let send = self.pending.insert(pending);
            (Kind::EagerSynchronous, send, Attempt::UnderWay(awaited))
        } else {
            (Kind::Eager, 0, Attempt::Ended(job.ticket))
        };
        let packed;
        let bytes = match &job.bytes {
            Source::Kept(bytes) => bytes.as_slice(),
            Source::Lent(memory) => match memory.contiguous() {
                Some(bytes) => bytes,
                None => {
                    packed = pack(memory);
                    packed.as_slice()
                }
            },
        };
        if cells == 1 && kind == Kind::Eager {
            self.outlet.write_short(link, &job.key, bytes)?;
            self.statistics.eager += 1;
        } else {
            let mut first = Cell::of_message(kind, &job.key, bytes.len() as u32);
            first.0[0] = send;
            self.outlet.write_split(link, first, bytes, cells)?;
            self.statistics.eager_split += 1;
        }
        if let Source::Kept(kept) = &job.bytes {
            rank.kept.fetch_sub(kept.len() as u64, Ordering::Relaxed);
        }
        Ok(attempt)
    }

    /// Announces a message that the peer reads when it is matched, from a copy if its sender shall
    /// not wait for that.
    fn announce(&mut self, link: &Link, rank: &RankState, job: Job) -> Result<Attempt, Error> {
        let status = job.status();
        let Job { key, mode, bytes, ticket } = job;
        let is_lazy = mode == SendMode::Standard && status.bytes <= rank.protocols.lazy as u64;
        let (source, ends) = match bytes {
            Source::Kept(kept) => (Source::Kept(kept), true),
            Source::Lent(memory) => match mode {
                SendMode::Buffered => (Source::Kept(keep(rank, &memory)?), true),
                _ if is_lazy && let Ok(kept) = keep(rank, &memory) => (Source::Kept(kept), true),
                _ if memory.has_short_rows() => {
                    rank.kept.fetch_add(status.bytes, Ordering::Relaxed);
                    (Source::Kept(pack(&memory)), false)
                }
                _ => (Source::Lent(memory), false),
            },
        };
        let (registered, place, kept) = match source {
            Source::Lent(memory) => {
                let registered = memory.register(&rank.domain, Access::REMOTE_READ)?;
                let place = registered.place(memory.layout());
                (registered, place, Vec::new())
            }
            Source::Kept(mut kept) => {
                // SAFETY: `memory` ends with this block, and `kept` stays with the registration.
                let memory = unsafe { Memory::of_kept(&mut kept) };
                let registered = memory.register(&rank.domain, Access::REMOTE_READ)?;
                let place = registered.place(memory.layout());
                (registered, place, kept)
            }
        };
        let (ticket, attempt) = if ends {
            self.statistics.lazy += 1;
            (None, Attempt::Ended(ticket))
        } else {
            self.statistics.rendezvous += 1;
            let (ticket, awaited) = under_way(ticket);
            (Some(ticket), Attempt::UnderWay(awaited))
        };
        let registered = Some(registered);
        let send = self.pending.insert(Pending { ticket, status, registered, kept });
        rank.pending.fetch_add(1, Ordering::Relaxed);
        self.outlet.write(link, Cell::announce(&key, &place, send))?;
        Ok(attempt)
    }
}

/// The halves of a send that is under way from now on.
fn under_way(ticket: Option<Ticket>) -> (Ticket, Option<Awaited>) {
    match ticket {
        Some(ticket) => (ticket, None),
        None => {
            let (ticket, awaited) = crate::ticket::ticket();
            (ticket, Some(awaited))
        }
    }
}
