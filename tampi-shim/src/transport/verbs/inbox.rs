//! Inbox: the receiving half of a rank, with its rings and the receives and messages that are not
//! matched yet.

use std::task::Waker;

use ibverbs_sim::Access;

use super::cell::{CELL, Cell, CellKind, Head, INLINE, RemoteLayout, cells_of};
use super::deferred::DeferredActions;
use super::link::Link;
use super::memory::Memory;
use super::ring::Ring;
use super::ring_buffer::CELLS;
use super::rtr_table::{ContextTag, Rtr};
use super::slots::Slots;
use super::transfers::{Direction, Transfer};
use super::waiting::{Content, Receive, SentRtr, UnexpectedMessage, deliver, fits};
use super::world::RankState;
use crate::error::Error;
use crate::matching::{EntryId, Key, Matcher, Selection};
use crate::rank::WorldRank;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{PackedResult, Ticket, ticket};
use crate::transport::{OperationId, Start};

/// Messages taken from one ring before the next ring is polled.
const MESSAGES_PER_RING: usize = 32;

/// Receiving half of a rank.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) matcher: Matcher<Receive, UnexpectedMessage>,
    /// Rings by number; each link knows the number of its ring.
    pub(super) rings: Vec<Incoming>,
    /// Receives that were ready before their message, which is now being written, with the number
    /// of the receive.
    pub(super) filling: Vec<(u64, Receive, Status)>,
    /// Messages that a matched probe has taken.
    pub(super) taken: Slots<(Key, UnexpectedMessage)>,
    /// Wakers of tasks that wait for a message to probe.
    pub(super) probers: Vec<Waker>,
    pub(super) statistics: Statistics,
    /// Number of times that senders have made progress for this rank since its polling task last did.
    pub(super) progressed_by_senders: usize,
}

/// A ring and its peer.
pub(super) struct Incoming {
    pub(super) peer: WorldRank,
    pub(super) ring: Ring,
}

impl Inbox {
    /// Takes all cells that have arrived. Returns the number of messages and control messages.
    #[inline]
    pub(super) fn drain(&mut self, rank: &RankState, deferred: &mut DeferredActions) -> usize {
        let mut count = 0;
        for index in 0..self.rings.len() {
            for _ in 0..MESSAGES_PER_RING {
                let Some(head) = self.rings[index].ring.peek() else { break };
                self.take(index, head, rank, deferred);
                count += 1;
            }
            self.report_credits(index, rank, deferred);
        }
        count
    }

    /// Takes the cells that have arrived from the peer of `link`, for a receive from that peer that
    /// starts. If a short message is found that is for this receive and for no other, delivers it
    /// and returns the result of the receive.
    #[inline]
    pub(super) fn receive_now(
        &mut self,
        link: &Link,
        selection: &Selection,
        memory: &mut Memory,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) -> Option<PackedResult> {
        let index = link.incoming;
        for _ in 0..MESSAGES_PER_RING {
            let ring = &mut self.rings[index].ring;
            let head = ring.peek()?;
            let key = head.key();
            if head.is_short() && key.exact() == *selection && self.matcher.is_alone(&key) {
                let ended = deliver(&key, &[ring.short(head.length())], memory);
                ring.take_short(&head);
                ring.released += 1;
                self.report_credits(index, rank, deferred);
                return Some(ended);
            }
            self.take(index, head, rank, deferred);
        }
        None
    }

    #[inline]
    fn take(&mut self, index: usize, head: Head, rank: &RankState, deferred: &mut DeferredActions) {
        let ring = &mut self.rings[index].ring;
        if !head.is_short() {
            return self.take_long(index, head, rank, deferred);
        }
        let (key, bytes) = (head.key(), ring.short(head.length()));
        if let Some(mut receive) = self.matcher.take_receive(&key) {
            receive.end_rtr();
            let ended = deliver(&key, &[bytes], &mut receive.memory);
            ring.take_short(&head);
            ring.released += 1;
            deferred.end(receive.ticket, ended);
        } else {
            let mut kept = [0; INLINE];
            kept[..bytes.len()].copy_from_slice(bytes);
            let content = Content::Short { bytes: kept, length: bytes.len() };
            ring.take_short(&head);
            self.keep_unexpected(key, UnexpectedMessage { incoming: index, content }, deferred);
        }
    }

    /// Takes a cell that does not hold short messages with their bytes.
    fn take_long(
        &mut self,
        index: usize,
        head: Head,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) {
        let ring = &mut self.rings[index].ring;
        let (key, cell) = (head.key(), ring.cell());
        match head.kind() {
            Some(kind @ (CellKind::Eager | CellKind::EagerSynchronous)) => {
                let length = head.length().min((CELLS - 1) * CELL);
                let is_synchronous = kind == CellKind::EagerSynchronous;
                let cells = cells_of(length, is_synchronous);
                let parts = ring.body(length);
                if let Some(mut receive) = self.matcher.take_receive(&key) {
                    receive.end_rtr();
                    let ended = deliver(&key, &parts, &mut receive.memory);
                    deferred.end(receive.ticket, ended);
                    ring.take(cells);
                    ring.released += cells as u64;
                    if is_synchronous {
                        self.send_fin(index, cell.0[0], rank, deferred);
                    }
                } else {
                    let bytes = parts.concat();
                    ring.take(cells);
                    let content = Content::Long(bytes, is_synchronous.then_some(cell.0[0]));
                    self.keep_unexpected(
                        key,
                        UnexpectedMessage { incoming: index, content },
                        deferred,
                    );
                }
            }
            Some(CellKind::Rts) => {
                let (remote, send) = cell.rts();
                ring.take(1);
                if let Some(mut receive) = self.matcher.take_receive(&key) {
                    receive.end_rtr();
                    let receive = (receive.memory, receive.ticket);
                    self.read(&key, (index, remote, send), receive, rank, deferred);
                } else {
                    let content = Content::Rts(remote, send);
                    self.keep_unexpected(
                        key,
                        UnexpectedMessage { incoming: index, content },
                        deferred,
                    );
                }
            }
            Some(kind) => {
                ring.take(1);
                self.take_control_message(index, kind, &cell, rank, deferred);
            }
            None => {
                ring.take(1);
                let status = "a cell of no known kind".to_owned();
                let peer = self.rings[index].peer.into();
                deferred.fail(Error::WorkRequest { peer, status });
            }
        }
    }

    /// Handles a control message that stands for no message in the matching order, or the answer to
    /// an RTR.
    fn take_control_message(
        &mut self,
        index: usize,
        kind: CellKind,
        cell: &Cell,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) {
        let Some(link) = rank.link(self.rings[index].peer) else { return };
        let number = cell.0[0];
        match kind {
            CellKind::Eager | CellKind::EagerSynchronous | CellKind::Rts => {}
            CellKind::FinSend => link.sender.lock().finish(rank, number, deferred),
            CellKind::Rtr => link.sender.lock().rtrs.insert(cell.rtr()),
            CellKind::RtrMatched => {
                self.match_rtr(link.peer, number, cell.key().status(cell.0[1]), deferred)
            }
            CellKind::FinReceive => {
                let found = self.filling.iter().position(|(matched, receive, _)| {
                    *matched == number && receive.has_rtr_at(link.peer)
                });
                if let Some(index) = found {
                    let (_, mut receive, status) = self.filling.swap_remove(index);
                    receive.end_rtr();
                    deferred.end(receive.ticket, Ok(status.into()));
                }
            }
            CellKind::Cancel => {
                let mut sender = link.sender.lock();
                sender.rtrs.cancel(number);
                deferred.note(sender.notify(link, rank, Cell::cancel_ack(number)));
            }
            CellKind::CancelAck => {
                if let Some(mut receive) = self.take_with_rtr(link.peer, number) {
                    receive.end_rtr();
                    deferred.end(receive.ticket, Ok(Status::CANCELLED.into()));
                }
            }
        }
    }

    /// Matches a message of `peer` to the receive with this number, in answer to its RTR.
    fn match_rtr(
        &mut self,
        peer: WorldRank,
        number: u64,
        status: Status,
        deferred: &mut DeferredActions,
    ) {
        let Some(mut receive) = self.take_with_rtr(peer, number) else { return };
        let Status { source, tag, bytes, .. } = status;
        let room = receive.memory.bytes();
        if bytes > room {
            receive.end_rtr();
            let error = Error::Truncated { source_rank: source, tag, sent: bytes, room };
            deferred.end(receive.ticket, Err(Box::new(error)));
        } else {
            self.filling.push((number, receive, status));
        }
    }

    /// Sends the RTR of a receive to its source. To be called only if the source can know which
    /// message is for the receive: no receive with a wildcard waits, and RTRs were sent for the
    /// receives before it.
    pub(super) fn send_rtr(
        &mut self,
        (id, previous): (EntryId, Option<u32>),
        context_tag: ContextTag,
        (link, rank): (&Link, &RankState),
        deferred: &mut DeferredActions,
    ) {
        let taken = self.rings[link.incoming].ring.head() as u32;
        let Some(receive) = self.matcher.receive_mut(id) else { return };
        let mut sender = link.sender.lock();
        if !sender.can_send_rtr(link) {
            return;
        }
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let Some(registered) = deferred.note(receive.memory.register(&rank.domain, access)) else {
            return;
        };
        let remote = registered.remote_layout(receive.memory.layout());
        let rtr = Rtr { context_tag, remote, receive: id.to_u64(), previous, taken };
        receive.rtr = Some(Box::new(SentRtr { registered, peer: link.peer }));
        deferred.note(sender.notify(link, rank, Cell::of_rtr(&rtr)));
    }

    /// Returns `None` if no RTR may be sent for a new receive of this selection, otherwise the slot
    /// of the receive before it, if there is one.
    pub(super) fn previous_rtr(&self, selection: &Selection) -> Option<Option<u32>> {
        if self.matcher.has_wild_receives() {
            return None;
        }
        match self.matcher.last_receive(selection) {
            None => Some(None),
            Some((id, receive)) => receive.rtr.as_ref().map(|_| Some(id.slot())),
        }
    }

    fn keep_unexpected(
        &mut self,
        key: Key,
        message: UnexpectedMessage,
        deferred: &mut DeferredActions,
    ) {
        self.statistics.unexpected += 1;
        self.matcher.keep_message(key, message);
        deferred.wake(&mut self.probers);
    }

    /// Starts a receive with a message that has arrived.
    #[inline]
    pub(super) fn start_with(
        &mut self,
        key: &Key,
        message: UnexpectedMessage,
        mut memory: Memory,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) -> Start {
        let UnexpectedMessage { incoming: index, content } = message;
        let (ended, cells, send) = match content {
            Content::Short { bytes, length } => {
                (deliver(key, &[&bytes[..length]], &mut memory), 1, None)
            }
            Content::Long(bytes, send) => {
                let cells = cells_of(bytes.len(), send.is_some());
                (deliver(key, &[&bytes], &mut memory), cells, send)
            }
            Content::Rts(remote, send) => {
                let (ticket, awaited) = ticket();
                self.read(key, (index, remote, send), (memory, ticket), rank, deferred);
                return Start::UnderWay { awaited, operation: OperationId::NONE };
            }
        };
        self.rings[index].ring.released += cells as u64;
        self.report_credits(index, rank, deferred);
        if let Some(send) = send {
            self.send_fin(index, send, rank, deferred);
        }
        Start::Ended(ended)
    }

    /// Reads the message of an RTS into the memory of a receive, if it fits.
    fn read(
        &mut self,
        key: &Key,
        (index, remote, send): (usize, RemoteLayout, u64),
        (memory, ticket): (Memory, Ticket),
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) {
        match fits(key, remote.bytes(), &memory) {
            Ok(()) if remote.bytes() > 0 => {
                let status = key.status(remote.bytes());
                let direction = Direction::Read(send);
                let transfer = Transfer::new((direction, remote), memory, ticket, status);
                deferred.transfer(self.rings[index].peer, transfer);
            }
            result => {
                deferred.end(ticket, result.map(|()| key.status(0).into()));
                self.send_fin(index, send, rank, deferred);
            }
        }
    }

    /// Drops a message that will not be received.
    pub(super) fn discard(
        &mut self,
        message: UnexpectedMessage,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) {
        let UnexpectedMessage { incoming: index, content } = message;
        let (cells, send) = match content {
            Content::Short { .. } => (1, None),
            Content::Long(bytes, send) => (cells_of(bytes.len(), send.is_some()), send),
            Content::Rts(_, send) => (0, Some(send)),
        };
        self.rings[index].ring.released += cells as u64;
        self.report_credits(index, rank, deferred);
        if let Some(send) = send {
            self.send_fin(index, send, rank, deferred);
        }
    }

    /// Notifies the peer that its send has ended.
    fn send_fin(&self, index: usize, send: u64, rank: &RankState, deferred: &mut DeferredActions) {
        if let Some(link) = rank.link(self.rings[index].peer) {
            deferred.note(link.sender.lock().notify(link, rank, Cell::fin_send(send)));
        }
    }

    /// Reports the cells taken from a ring to its peer, once they are many enough.
    #[inline]
    fn report_credits(&mut self, index: usize, rank: &RankState, deferred: &mut DeferredActions) {
        let ring = &self.rings[index].ring;
        let (taken, released) = ring.reported;
        let is_much = ring.head() - taken >= CELLS as u64 / 4;
        if is_much || ring.released - released >= rank.quota_step {
            self.report_credits_cold(index, rank, deferred);
        }
    }

    #[cold]
    fn report_credits_cold(
        &mut self,
        index: usize,
        rank: &RankState,
        deferred: &mut DeferredActions,
    ) {
        let Incoming { peer, ring } = &mut self.rings[index];
        ring.reported = (ring.head(), ring.released);
        if let Some(link) = rank.link(*peer) {
            let (taken, released) = ring.reported;
            deferred.note(link.sender.lock().writer.report_credits(link, taken, released));
        }
    }

    /// Removes the receive with this number from matching, if its RTR was sent to this peer. A
    /// number that a peer sends must name no other receive: the registration of that one would end
    /// while another peer may write.
    fn take_with_rtr(&mut self, peer: WorldRank, number: u64) -> Option<Receive> {
        let id = EntryId::from_u64(number);
        let is_its = self.matcher.receive_mut(id)?.has_rtr_at(peer);
        if is_its { self.remove(id) } else { None }
    }

    /// Removes a receive from matching.
    fn remove(&mut self, id: EntryId) -> Option<Receive> {
        self.matcher.cancel(id)
    }

    /// Cancels a receive that no message is matched to. If its RTR was sent, the source is asked
    /// first.
    pub(super) fn cancel(&mut self, id: EntryId, rank: &RankState, deferred: &mut DeferredActions) {
        let Some(receive) = self.matcher.receive_mut(id) else { return };
        let peer = receive.rtr.as_ref().map(|rtr| rtr.peer);
        if let Some(link) = peer.and_then(|peer| rank.link(peer)) {
            let cancel = Cell::cancel(id.to_u64());
            deferred.note(link.sender.lock().notify(link, rank, cancel));
        } else if let Some(receive) = self.remove(id) {
            deferred.end(receive.ticket, Ok(Status::CANCELLED.into()));
        }
    }

    /// Ends all receives with `error`, after their registrations.
    pub(super) fn fail(&mut self, error: &Error, deferred: &mut DeferredActions) {
        let (receives, _) = self.matcher.drain();
        let filling = self.filling.drain(..).map(|(_, receive, _)| receive);
        for receive in receives.into_iter().chain(filling) {
            drop(receive.rtr);
            deferred.end(receive.ticket, Err(Box::new(error.clone())));
        }
        self.taken.drain();
        deferred.wake(&mut self.probers);
    }
}
