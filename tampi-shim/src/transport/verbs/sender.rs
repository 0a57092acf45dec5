//! Sender: the sending half of a link, which chooses the protocol of a message and keeps the sends
//! that wait for the peer.
#![allow(unsafe_code, reason = "ends registrations that the peer has finished with")]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use ibverbs_sim::Access;

use super::cell::{Cell, CellKind, INLINE, cells_of};
use super::deferred::DeferredActions;
use super::link::Link;
use super::memory::{Memory, Registered};
use super::ring_writer::RingWriter;
use super::rtr_table::{ContextTag, RtrTable};
use super::send_request::{SendBuffer, SendRequest, ShortSend, copy_within_limit, pack};
use super::slots::Slots;
use super::transfers::{Direction, Transfer};
use super::world::RankState;
use crate::error::Error;
use crate::matching::Key;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{Awaited, Ticket};
use crate::transport::SendMode;

/// Sending half of a link.
pub(super) struct Sender {
    pub(super) writer: RingWriter,
    /// Burst of the rank in which a short message was last written.
    burst: u32,
    /// Messages and control messages that wait for room in the ring, in order.
    retry_queue: VecDeque<Queued>,
    /// Sends that end with a FIN of the peer, by number.
    pending: Slots<Pending>,
    /// Receives of the peer that are ready.
    pub(super) rtrs: RtrTable,
    pub(super) statistics: Statistics,
}

/// Entry of the retry queue.
enum Queued {
    Message(SendRequest),
    Control(Cell),
}

/// A send that ends with a FIN of the peer.
struct Pending {
    /// `None` if the send has ended for its caller.
    ticket: Option<Ticket>,
    status: Status,
    registered: Option<Registered>,
    kept: Vec<u8>,
}

/// Outcome of the attempt to send a message.
enum Attempt {
    Ended(Option<Ticket>),
    /// `None` if the caller has the other half already.
    UnderWay(Option<Awaited>),
    NoRoom(SendRequest),
}

impl Sender {
    pub(super) fn new(writer: RingWriter) -> Self {
        Sender {
            writer,
            burst: u32::MAX,
            retry_queue: VecDeque::new(),
            pending: Slots::default(),
            rtrs: RtrTable::default(),
            statistics: Statistics::default(),
        }
    }

    /// Sends a message that fits into one cell, if the peer has room for it. Messages that follow
    /// another one in the same burst are batched.
    #[inline]
    pub(super) fn send_short(
        &mut self,
        link: &Link,
        rank: &RankState,
        key: &Key,
        bytes: &[u8],
    ) -> Result<ShortSend, Error> {
        let goes = bytes.len() <= rank.protocols.eager.min(INLINE)
            && self.retry_queue.is_empty()
            && self.writer.room(link, 1)
            && self.writer.quota(link, rank.quota, 1);
        if !goes {
            return Ok(ShortSend::NotSent);
        }
        self.statistics.eager += 1;
        let burst = rank.burst();
        if self.burst != burst {
            self.burst = burst;
            self.writer.write_short(link, key, bytes)?;
            self.rtrs.take(ContextTag::of(key), self.writer.tail());
            return Ok(ShortSend::Sent);
        }
        let is_first = self.writer.add_to_batch(link, key, bytes);
        self.rtrs.take(ContextTag::of(key), self.writer.tail());
        if is_first && rank.poller.is_asleep() {
            self.writer.write_batch(link)?;
            return Ok(ShortSend::Alone);
        }
        if self.writer.is_batch_full() {
            self.writer.write_batch(link)?;
        }
        Ok(if is_first { ShortSend::BatchOpened } else { ShortSend::Sent })
    }

    /// Sends a message, or puts it into the retry queue until there is room. Returns the waiter's
    /// half of a send that is under way.
    #[inline]
    pub(super) fn send(
        &mut self,
        link: &Link,
        rank: &RankState,
        request: SendRequest,
        deferred: &mut DeferredActions,
    ) -> Result<Option<Awaited>, Error> {
        let request = if self.retry_queue.is_empty() {
            match self.attempt(link, rank, request, deferred)? {
                Attempt::Ended(_) => return Ok(None),
                Attempt::UnderWay(awaited) => return Ok(awaited),
                Attempt::NoRoom(request) => request,
            }
        } else {
            request
        };
        // The peer makes room only once it has taken the batch.
        self.writer.write_batch(link)?;
        self.enqueue(rank, request)
    }

    #[cold]
    fn enqueue(
        &mut self,
        rank: &RankState,
        mut request: SendRequest,
    ) -> Result<Option<Awaited>, Error> {
        let awaited = if request.mode == SendMode::Buffered {
            if let SendBuffer::Borrowed(memory) = &request.bytes {
                request.bytes = SendBuffer::Copied(copy_within_limit(rank, memory)?);
            }
            None
        } else {
            let (ticket, awaited) = crate::ticket::ticket();
            request.ticket = Some(ticket);
            Some(awaited)
        };
        self.statistics.queued += 1;
        rank.queued.fetch_add(1, Ordering::Relaxed);
        self.retry_queue.push_back(Queued::Message(request));
        Ok(awaited)
    }

    /// Sends from the retry queue, as far as there is room.
    pub(super) fn flush(&mut self, link: &Link, rank: &RankState, deferred: &mut DeferredActions) {
        while let Some(first) = self.retry_queue.pop_front() {
            let back = match first {
                Queued::Control(cell) if self.writer.room(link, 1) => {
                    deferred.note(self.writer.write(link, cell));
                    None
                }
                Queued::Control(cell) => Some(Queued::Control(cell)),
                Queued::Message(request) => {
                    let status = request.status();
                    match self.attempt(link, rank, request, deferred) {
                        Ok(Attempt::Ended(ticket)) => {
                            ticket
                                .into_iter()
                                .for_each(|ticket| deferred.end(ticket, Ok(status.into())));
                            None
                        }
                        Ok(Attempt::UnderWay(_)) => None,
                        Ok(Attempt::NoRoom(request)) => Some(Queued::Message(request)),
                        Err(error) => {
                            deferred.fail(error);
                            None
                        }
                    }
                }
            };
            if let Some(back) = back {
                self.retry_queue.push_front(back);
                return;
            }
            rank.queued.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends the peer a control message, or puts it into the retry queue until there is room.
    pub(super) fn notify(
        &mut self,
        link: &Link,
        rank: &RankState,
        cell: Cell,
    ) -> Result<(), Error> {
        if self.writer.room(link, 1) {
            return self.writer.write(link, cell);
        }
        self.writer.write_batch(link)?;
        rank.queued.fetch_add(1, Ordering::Relaxed);
        self.retry_queue.push_back(Queued::Control(cell));
        Ok(())
    }

    /// Returns `true` if an RTR would be sent at once; a late one is useless.
    pub(super) fn can_send_rtr(&self, link: &Link) -> bool {
        self.retry_queue.is_empty() && self.writer.room(link, 1)
    }

    /// Ends a send whose FIN has come.
    pub(super) fn finish(&mut self, rank: &RankState, send: u64, deferred: &mut DeferredActions) {
        let Some(pending) = self.pending.remove(send) else { return };
        rank.pending.fetch_sub(1, Ordering::Relaxed);
        rank.kept.fetch_sub(pending.kept.len() as u64, Ordering::Relaxed);
        if let Some(registered) = pending.registered {
            // SAFETY: the peer says that the send is done once its reads have completed.
            unsafe { registered.end_unused() };
        }
        if let Some(ticket) = pending.ticket {
            deferred.end(ticket, Ok(pending.status.into()));
        }
    }

    /// Ends all sends with `error`, after their registrations.
    pub(super) fn fail(
        &mut self,
        link: &Link,
        rank: &RankState,
        error: &Error,
        deferred: &mut DeferredActions,
    ) {
        self.writer.drop_batch(link);
        for queued in self.retry_queue.drain(..) {
            rank.queued.fetch_sub(1, Ordering::Relaxed);
            if let Queued::Message(SendRequest { ticket: Some(ticket), .. }) = queued {
                deferred.end(ticket, Err(Box::new(error.clone())));
            }
        }
        self.rtrs.clear();
        for pending in self.pending.drain() {
            rank.pending.fetch_sub(1, Ordering::Relaxed);
            rank.kept.fetch_sub(pending.kept.len() as u64, Ordering::Relaxed);
            drop(pending.registered);
            if let Some(ticket) = pending.ticket {
                deferred.end(ticket, Err(Box::new(error.clone())));
            }
        }
    }

    fn attempt(
        &mut self,
        link: &Link,
        rank: &RankState,
        request: SendRequest,
        deferred: &mut DeferredActions,
    ) -> Result<Attempt, Error> {
        let length = request.bytes.length();
        let synchronous = request.mode == SendMode::Synchronous;
        let mut eager = None;
        if length <= rank.protocols.eager as u64 {
            let cells = cells_of(length as usize, synchronous);
            eager = self.writer.quota(link, rank.quota, cells).then_some(cells);
            self.statistics.over_quota += u64::from(eager.is_none());
        }
        if !self.writer.room(link, eager.unwrap_or(1)) {
            return Ok(Attempt::NoRoom(request));
        }
        // The message takes one cell at least.
        let rtr = self.rtrs.take(ContextTag::of(&request.key), self.writer.tail() + 1);
        if let Some(cells) = eager {
            return self.send_eager(link, rank, request, cells);
        }
        let SendRequest { key, mode, bytes, ticket } = request;
        match (bytes, rtr) {
            (SendBuffer::Borrowed(memory), Some(rtr))
                if mode != SendMode::Buffered && !memory.has_short_rows() =>
            {
                let status = key.status(memory.bytes());
                self.writer.write(link, Cell::rtr_matched(&key, rtr.receive, status.bytes))?;
                self.statistics.written += 1;
                if status.bytes > rtr.remote.bytes() {
                    // The receive fails, as it would by any other protocol.
                    return Ok(Attempt::Ended(ticket));
                }
                let (ticket, awaited) = under_way(ticket);
                let direction = Direction::Write(rtr.receive);
                let transfer = Transfer::new((direction, rtr.remote), memory, ticket, status);
                deferred.transfer(link.peer, transfer);
                Ok(Attempt::UnderWay(awaited))
            }
            (bytes, _) => self.send_rts(link, rank, SendRequest { key, mode, bytes, ticket }),
        }
    }

    #[inline]
    fn send_eager(
        &mut self,
        link: &Link,
        rank: &RankState,
        request: SendRequest,
        cells: usize,
    ) -> Result<Attempt, Error> {
        let (kind, send, attempt) = if request.mode == SendMode::Synchronous {
            let status = request.status();
            let (ticket, awaited) = under_way(request.ticket);
            let registered = None;
            let pending = Pending { ticket: Some(ticket), status, registered, kept: Vec::new() };
            rank.pending.fetch_add(1, Ordering::Relaxed);
            let send = self.pending.insert(pending);
            (CellKind::EagerSynchronous, send, Attempt::UnderWay(awaited))
        } else {
            (CellKind::Eager, 0, Attempt::Ended(request.ticket))
        };
        let packed;
        let bytes = match &request.bytes {
            SendBuffer::Copied(bytes) => bytes.as_slice(),
            SendBuffer::Borrowed(memory) => match memory.contiguous() {
                Some(bytes) => bytes,
                None => {
                    packed = pack(memory);
                    packed.as_slice()
                }
            },
        };
        if cells == 1 && kind == CellKind::Eager {
            self.writer.write_short(link, &request.key, bytes)?;
            self.statistics.eager += 1;
        } else {
            let mut first = Cell::of_message(kind, &request.key, bytes.len() as u32);
            first.0[0] = send;
            self.writer.write_split(link, first, bytes, cells)?;
            self.statistics.eager_split += 1;
        }
        if let SendBuffer::Copied(kept) = &request.bytes {
            rank.kept.fetch_sub(kept.len() as u64, Ordering::Relaxed);
        }
        Ok(attempt)
    }

    /// Sends the RTS of a message, which the peer reads when it is matched: from a copy, if the
    /// send must not wait for that.
    fn send_rts(
        &mut self,
        link: &Link,
        rank: &RankState,
        request: SendRequest,
    ) -> Result<Attempt, Error> {
        let status = request.status();
        let SendRequest { key, mode, bytes, ticket } = request;
        let is_lazy = mode == SendMode::Standard && status.bytes <= rank.protocols.lazy as u64;
        let (source, ends) = match bytes {
            SendBuffer::Copied(kept) => (SendBuffer::Copied(kept), true),
            SendBuffer::Borrowed(memory) => match mode {
                SendMode::Buffered => (SendBuffer::Copied(copy_within_limit(rank, &memory)?), true),
                _ if is_lazy && let Ok(kept) = copy_within_limit(rank, &memory) => {
                    (SendBuffer::Copied(kept), true)
                }
                _ if memory.has_short_rows() => {
                    rank.kept.fetch_add(status.bytes, Ordering::Relaxed);
                    (SendBuffer::Copied(pack(&memory)), false)
                }
                _ => (SendBuffer::Borrowed(memory), false),
            },
        };
        let (registered, remote, kept) = match source {
            SendBuffer::Borrowed(memory) => {
                let registered = memory.register(&rank.domain, Access::REMOTE_READ)?;
                let remote = registered.remote_layout(memory.layout());
                (registered, remote, Vec::new())
            }
            SendBuffer::Copied(mut kept) => {
                // SAFETY: `memory` ends with this block, and `kept` stays with the registration.
                let memory = unsafe { Memory::of_kept(&mut kept) };
                let registered = memory.register(&rank.domain, Access::REMOTE_READ)?;
                let remote = registered.remote_layout(memory.layout());
                (registered, remote, kept)
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
        self.writer.write(link, Cell::of_rts(&key, &remote, send))?;
        Ok(attempt)
    }
}

/// Returns the ticket of a send that is under way from now on, and the waiter's half if the caller
/// does not have it yet.
fn under_way(ticket: Option<Ticket>) -> (Ticket, Option<Awaited>) {
    match ticket {
        Some(ticket) => (ticket, None),
        None => {
            let (ticket, awaited) = crate::ticket::ticket();
            (ticket, Some(awaited))
        }
    }
}
