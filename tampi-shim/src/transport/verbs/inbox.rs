//! The receiving half of a rank: its rings, and what was matched or waits to be.

use std::task::Waker;

use ibverbs_sim::Access;

use super::aftermath::Aftermath;
use super::cell::{CELL, Cell, Head, INLINE, Kind, Place, cells_of};
use super::front::CELLS;
use super::link::Link;
use super::memory::Memory;
use super::offers::{Offer, Subject};
use super::ring::Ring;
use super::slots::Slots;
use super::transfers::{Direction, Transfer};
use super::waiting::{Content, Message, Offered, Receive, deliver, fits};
use super::world::RankState;
use crate::error::Error;
use crate::matching::{EntryId, Key, Matcher, Selection};
use crate::rank::WorldRank;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{Ended, Ticket, ticket};
use crate::transport::{OperationId, Start};

/// Messages taken from one ring before the next ring has its turn.
const TURN: usize = 32;

/// See the module text.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) matcher: Matcher<Receive, Message>,
    /// With the number of the peer among the rings.
    pub(super) rings: Vec<Incoming>,
    /// Offered receives that a message is being written to, by number.
    pub(super) filling: Vec<(u64, Receive, Status)>,
    /// Messages that a matched probe has taken.
    pub(super) taken: Slots<(Key, Message)>,
    /// Who waits for a message to probe.
    pub(super) probers: Vec<Waker>,
    pub(super) statistics: Statistics,
}

/// A ring and its peer.
pub(super) struct Incoming {
    pub(super) peer: WorldRank,
    pub(super) ring: Ring,
}

impl Inbox {
    /// Takes what has arrived. Returns how many messages and notices there were.
    #[inline]
    pub(super) fn drain(&mut self, rank: &RankState, after: &mut Aftermath) -> usize {
        let mut count = 0;
        for index in 0..self.rings.len() {
            for _ in 0..TURN {
                let Some(head) = self.rings[index].ring.front() else { break };
                self.take(index, head, rank, after);
                count += 1;
            }
            self.report(index, rank, after);
        }
        count
    }

    /// A receive from the peer of `link` starts: takes what has arrived from there up to its
    /// message. If that is a short one that nothing else waits for, the receive has ended.
    #[inline]
    pub(super) fn receive_now(
        &mut self,
        link: &Link,
        selection: &Selection,
        memory: &mut Memory,
        rank: &RankState,
        after: &mut Aftermath,
    ) -> Option<Ended> {
        let index = link.incoming;
        for _ in 0..TURN {
            let ring = &mut self.rings[index].ring;
            let head = ring.front()?;
            let key = head.key();
            if head.is_short() && key.exact() == *selection && self.matcher.is_alone(&key) {
                let ended = deliver(&key, &[ring.short(head.length())], memory);
                ring.take_short(&head);
                ring.released += 1;
                self.report(index, rank, after);
                return Some(ended);
            }
            self.take(index, head, rank, after);
        }
        None
    }

    #[inline]
    fn take(&mut self, index: usize, head: Head, rank: &RankState, after: &mut Aftermath) {
        let ring = &mut self.rings[index].ring;
        if !head.is_short() {
            return self.take_long(index, head, rank, after);
        }
        let (key, bytes) = (head.key(), ring.short(head.length()));
        if let Some(mut receive) = self.matcher.take_receive(&key) {
            receive.end_offer();
            let ended = deliver(&key, &[bytes], &mut receive.memory);
            ring.take_short(&head);
            ring.released += 1;
            after.end(receive.ticket, ended);
        } else {
            let mut kept = [0; INLINE];
            kept[..bytes.len()].copy_from_slice(bytes);
            let content = Content::Short { bytes: kept, length: bytes.len() };
            ring.take_short(&head);
            self.keep(key, Message { incoming: index, content }, after);
        }
    }

    /// Takes a cell that is not of a message whose bytes are in it.
    fn take_long(&mut self, index: usize, head: Head, rank: &RankState, after: &mut Aftermath) {
        let ring = &mut self.rings[index].ring;
        let (key, cell) = (head.key(), ring.cell());
        match head.kind() {
            Some(kind @ (Kind::Eager | Kind::EagerSynchronous)) => {
                let length = head.length().min((CELLS - 1) * CELL);
                let is_synchronous = kind == Kind::EagerSynchronous;
                let cells = cells_of(length, is_synchronous);
                let parts = ring.body(length);
                if let Some(mut receive) = self.matcher.take_receive(&key) {
                    receive.end_offer();
                    let ended = deliver(&key, &parts, &mut receive.memory);
                    after.end(receive.ticket, ended);
                    ring.take(cells);
                    ring.released += cells as u64;
                    if is_synchronous {
                        self.done(index, cell.0[0], rank, after);
                    }
                } else {
                    let bytes = parts.concat();
                    ring.take(cells);
                    let content = Content::Long(bytes, is_synchronous.then_some(cell.0[0]));
                    self.keep(key, Message { incoming: index, content }, after);
                }
            }
            Some(Kind::Announce) => {
                let (place, send) = cell.announced();
                ring.take(1);
                if let Some(mut receive) = self.matcher.take_receive(&key) {
                    receive.end_offer();
                    let receive = (receive.memory, receive.ticket);
                    self.read(&key, (index, place, send), receive, rank, after);
                } else {
                    let content = Content::Announced(place, send);
                    self.keep(key, Message { incoming: index, content }, after);
                }
            }
            Some(kind) => {
                ring.take(1);
                self.notice(index, kind, &cell, rank, after);
            }
            None => {
                ring.take(1);
                let status = "a cell of no known kind".to_owned();
                let peer = self.rings[index].peer.into();
                after.fail(Error::WorkRequest { peer, status });
            }
        }
    }

    /// Takes a cell that brings no message.
    fn notice(
        &mut self,
        index: usize,
        kind: Kind,
        cell: &Cell,
        rank: &RankState,
        after: &mut Aftermath,
    ) {
        let Some(link) = rank.link(self.rings[index].peer) else { return };
        let number = cell.0[0];
        match kind {
            Kind::Eager | Kind::EagerSynchronous | Kind::Announce => {}
            Kind::Done => link.sender.lock().finish(rank, number, after),
            Kind::Offer => link.sender.lock().offers.hold(cell.offered()),
            Kind::Claim => self.claim(link.peer, number, cell.key().status(cell.0[1]), after),
            Kind::Filled => {
                let found = self.filling.iter().position(|(claimed, receive, _)| {
                    *claimed == number && receive.is_offered_to(link.peer)
                });
                if let Some(index) = found {
                    let (_, mut receive, status) = self.filling.swap_remove(index);
                    receive.end_offer();
                    after.end(receive.ticket, Ok(status.into()));
                }
            }
            Kind::Withdraw => {
                let mut sender = link.sender.lock();
                sender.offers.withdraw(number);
                after.note(sender.notify(link, rank, Cell::withdrawn(number)));
            }
            Kind::Withdrawn => {
                if let Some(mut receive) = self.take_offered(link.peer, number) {
                    receive.end_offer();
                    after.end(receive.ticket, Ok(Status::CANCELLED.into()));
                }
            }
        }
    }

    /// A message of a peer goes to the receive of this number that it was offered.
    fn claim(&mut self, peer: WorldRank, number: u64, status: Status, after: &mut Aftermath) {
        let Some(mut receive) = self.take_offered(peer, number) else { return };
        let Status { source, tag, bytes, .. } = status;
        let room = receive.memory.bytes();
        if bytes > room {
            receive.end_offer();
            let error = Error::Truncated { source_rank: source, tag, sent: bytes, room };
            after.end(receive.ticket, Err(Box::new(error)));
        } else {
            self.filling.push((number, receive, status));
        }
    }

    /// Offers a receive that waits to its source, if the source can tell which message is for it:
    /// no receive with a wildcard waits, and those before it were offered too.
    pub(super) fn offer(
        &mut self,
        (id, before): (EntryId, Option<u32>),
        subject: Subject,
        (link, rank): (&Link, &RankState),
        after: &mut Aftermath,
    ) {
        let taken = self.rings[link.incoming].ring.head() as u32;
        let Some(receive) = self.matcher.receive_mut(id) else { return };
        let mut sender = link.sender.lock();
        if !sender.can_offer(link) {
            return;
        }
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let Some(registered) = after.note(receive.memory.register(&rank.domain, access)) else {
            return;
        };
        let place = registered.place(receive.memory.layout());
        let offer = Offer { subject, place, receive: id.to_u64(), before, taken };
        receive.offered = Some(Box::new(Offered { registered, peer: link.peer }));
        after.note(sender.notify(link, rank, Cell::offer(&offer)));
    }

    /// What the receive before one of this selection says about offering it: `None` if it must not
    /// be, else the slot of the one before, if there is one.
    pub(super) fn offered_before(&self, selection: &Selection) -> Option<Option<u32>> {
        if self.matcher.has_wild_receives() {
            return None;
        }
        match self.matcher.last_receive(selection) {
            None => Some(None),
            Some((id, receive)) => receive.offered.as_ref().map(|_| Some(id.slot())),
        }
    }

    fn keep(&mut self, key: Key, message: Message, after: &mut Aftermath) {
        self.statistics.unexpected += 1;
        self.matcher.keep_message(key, message);
        after.wake(&mut self.probers);
    }

    /// Gives a message that has arrived to a receive that starts.
    #[inline]
    pub(super) fn start_with(
        &mut self,
        key: &Key,
        message: Message,
        mut memory: Memory,
        rank: &RankState,
        after: &mut Aftermath,
    ) -> Start {
        let Message { incoming: index, content } = message;
        let (ended, cells, send) = match content {
            Content::Short { bytes, length } => {
                (deliver(key, &[&bytes[..length]], &mut memory), 1, None)
            }
            Content::Long(bytes, send) => {
                let cells = cells_of(bytes.len(), send.is_some());
                (deliver(key, &[&bytes], &mut memory), cells, send)
            }
            Content::Announced(place, send) => {
                let (ticket, awaited) = ticket();
                self.read(key, (index, place, send), (memory, ticket), rank, after);
                return Start::UnderWay { awaited, operation: OperationId::NONE };
            }
        };
        self.rings[index].ring.released += cells as u64;
        self.report(index, rank, after);
        if let Some(send) = send {
            self.done(index, send, rank, after);
        }
        Start::Ended(ended)
    }

    /// Has an announced message read to where a receive wants it, if it fits.
    fn read(
        &mut self,
        key: &Key,
        (index, place, send): (usize, Place, u64),
        (memory, ticket): (Memory, Ticket),
        rank: &RankState,
        after: &mut Aftermath,
    ) {
        match fits(key, place.bytes(), &memory) {
            Ok(()) if place.bytes() > 0 => {
                let status = key.status(place.bytes());
                let direction = Direction::Read(send);
                let transfer = Transfer::new((direction, place), memory, ticket, status);
                after.transfer(self.rings[index].peer, transfer);
            }
            result => {
                after.end(ticket, result.map(|()| key.status(0).into()));
                self.done(index, send, rank, after);
            }
        }
    }

    /// Lets go of a message that nobody will receive.
    pub(super) fn discard(&mut self, message: Message, rank: &RankState, after: &mut Aftermath) {
        let Message { incoming: index, content } = message;
        let (cells, send) = match content {
            Content::Short { .. } => (1, None),
            Content::Long(bytes, send) => (cells_of(bytes.len(), send.is_some()), send),
            Content::Announced(_, send) => (0, Some(send)),
        };
        self.rings[index].ring.released += cells as u64;
        self.report(index, rank, after);
        if let Some(send) = send {
            self.done(index, send, rank, after);
        }
    }

    /// Tells the peer that its send has ended.
    fn done(&self, index: usize, send: u64, rank: &RankState, after: &mut Aftermath) {
        if let Some(link) = rank.link(self.rings[index].peer) {
            after.note(link.sender.lock().notify(link, rank, Cell::done(send)));
        }
    }

    /// Tells the peer what was taken from its ring, if that is much.
    #[inline]
    fn report(&mut self, index: usize, rank: &RankState, after: &mut Aftermath) {
        let ring = &self.rings[index].ring;
        let (taken, released) = ring.reported;
        let is_much = ring.head() - taken >= CELLS as u64 / 4;
        if is_much || ring.released - released >= rank.quota_step {
            self.tell_taken(index, rank, after);
        }
    }

    #[cold]
    fn tell_taken(&mut self, index: usize, rank: &RankState, after: &mut Aftermath) {
        let Incoming { peer, ring } = &mut self.rings[index];
        ring.reported = (ring.head(), ring.released);
        if let Some(link) = rank.link(*peer) {
            let (taken, released) = ring.reported;
            after.note(link.sender.lock().outlet.tell_credits(link, taken, released));
        }
    }

    /// Takes back a receive that was offered to this peer. A number that a peer has sent names no
    /// other: its registration would end while somebody else may write.
    fn take_offered(&mut self, peer: WorldRank, number: u64) -> Option<Receive> {
        let id = EntryId::from_u64(number);
        let is_its = self.matcher.receive_mut(id)?.is_offered_to(peer);
        if is_its { self.take_back(id) } else { None }
    }

    /// Takes a receive that waits back.
    fn take_back(&mut self, id: EntryId) -> Option<Receive> {
        self.matcher.cancel(id)
    }

    /// Cancels a receive that no message was matched to. One that was offered is withdrawn first.
    pub(super) fn cancel(&mut self, id: EntryId, rank: &RankState, after: &mut Aftermath) {
        let Some(receive) = self.matcher.receive_mut(id) else { return };
        let peer = receive.offered.as_ref().map(|offered| offered.peer);
        if let Some(link) = peer.and_then(|peer| rank.link(peer)) {
            let withdraw = Cell::withdraw(id.to_u64());
            after.note(link.sender.lock().notify(link, rank, withdraw));
        } else if let Some(receive) = self.take_back(id) {
            after.end(receive.ticket, Ok(Status::CANCELLED.into()));
        }
    }

    /// Ends everything with `error`, and the device's use of it.
    pub(super) fn fail(&mut self, error: &Error, after: &mut Aftermath) {
        let (receives, _) = self.matcher.drain();
        let filling = self.filling.drain(..).map(|(_, receive, _)| receive);
        for receive in receives.into_iter().chain(filling) {
            drop(receive.offered);
            after.end(receive.ticket, Err(Box::new(error.clone())));
        }
        self.taken.drain();
        after.wake(&mut self.probers);
    }
}
