//! Where a rank writes to a peer: into the ring that the peer keeps for it, and what it tells.
//!
//! Two threads that post to one queue pair at a time carry out each other's requests, so what one of
//! them has posted may not have been written yet when it goes on. Here everything is posted with the
//! outlet in one hand, so it is written, and what is looked at next comes after it.
//!
//! Cells may be collected, to be written together: the README says when, and who writes them.

use ibverbs_sim::{Operation, Payload, QueuePair, RemoteAddress, SendFlags, SendWorkRequest};
use smallvec::SmallVec;

use super::cell::{CELL, Cell, WORDS, join_short, write_short};
use super::credits::Credits;
use super::front::CELLS;
use super::link::{ASLEEP, CREDITS, Link};
use crate::error::Error;
use crate::matching::Key;

/// Requests that a queue pair for cells holds. A full ring and its bytes are fewer.
pub(super) const SENDS: u32 = 4096;
/// Every so many requests without completion one asks for it, so that send slots come back.
const SIGNAL_EVERY: u32 = 64;
/// Completions of them that are kept: those asked for, and one more. Of those that come in an error
/// only the first matters.
pub(super) const SEND_COMPLETIONS: u32 = SENDS / SIGNAL_EVERY + 1;
/// Most bytes of a request that carries them itself.
pub(super) const CHUNK: usize = 512;
/// Requests posted at once.
const BATCH: usize = 18;
/// Messages that are collected at most. More save little, and the peer would have to wait for them.
const COLLECTED: usize = 16;

/// See the module text.
pub(super) struct Outlet {
    control: QueuePair,
    /// The peer's ring for us.
    ring: RemoteAddress,
    /// Where we tell the peer.
    tell: RemoteAddress,
    /// Requests ever posted, wrapping.
    posted: u32,
    /// Cells ever written: the number of the next one.
    tail: u64,
    /// Eager messages: a short one counts one, and another its cells.
    eager: u64,
    /// The last cells, if they are still to be written.
    collected: Vec<[u64; WORDS]>,
    /// Messages in them.
    messages: usize,
    /// The polling task has seen them.
    seen: bool,
}

impl Outlet {
    pub(super) fn new(control: QueuePair, ring: RemoteAddress, tell: RemoteAddress) -> Self {
        let collected = Vec::with_capacity(COLLECTED + 1);
        Outlet {
            control,
            ring,
            tell,
            posted: 0,
            tail: 0,
            eager: 0,
            collected,
            messages: 0,
            seen: false,
        }
    }

    #[inline]
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// Goes on as if so many cells had been written.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, tail: u64) {
        self.tail = tail;
    }

    /// Whether the ring has room for so many cells.
    #[inline]
    pub(super) fn room(&self, link: &Link, cells: usize) -> bool {
        link.credits().has_room(self.tail, cells)
    }

    /// Whether the peer will keep an eager message of so many cells if it has to.
    #[inline]
    pub(super) fn quota(&self, link: &Link, quota: usize, cells: usize) -> bool {
        link.credits().has_quota(self.eager, quota, cells)
    }

    /// Writes a cell, and what was collected before it.
    #[inline]
    pub(super) fn write(&mut self, link: &Link, cell: Cell) -> Result<(), Error> {
        if !self.collected.is_empty() {
            self.collected.push(cell.stamped(self.tail));
            self.tail += 1;
            return self.write_collected(link);
        }
        self.write_words(link, &cell.stamped(self.tail))
    }

    /// The same for an eager message that fits into its cell.
    #[inline]
    pub(super) fn write_short(
        &mut self,
        link: &Link,
        key: &Key,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if !self.collected.is_empty() {
            self.add_short(key, bytes);
            return self.write_collected(link);
        }
        let mut words = [0; WORDS];
        write_short(&mut words, self.tail, key, bytes);
        self.eager += 1;
        self.write_words(link, &words)
    }

    #[inline]
    fn write_words(&mut self, link: &Link, words: &[u64; WORDS]) -> Result<(), Error> {
        let operation = self.ring_at(self.tail as usize % CELLS);
        self.post(link, &mut [inline(operation, bytemuck::bytes_of(words))])?;
        self.tail += 1;
        self.wake(link)
    }

    /// Keeps the cell of an eager message that fits into it, to be written with others. True if it
    /// is the first of them.
    #[inline]
    pub(super) fn collect(&mut self, link: &Link, key: &Key, bytes: &[u8]) -> bool {
        let is_first = self.collected.is_empty();
        self.add_short(key, bytes);
        self.seen = false;
        if is_first {
            link.collects(true);
        }
        is_first
    }

    #[inline]
    fn add_short(&mut self, key: &Key, bytes: &[u8]) {
        self.messages += 1;
        self.eager += 1;
        if self.collected.last_mut().is_some_and(|last| join_short(last, key, bytes)) {
            return;
        }
        self.collected.push([0; WORDS]);
        if let Some(place) = self.collected.last_mut() {
            write_short(place, self.tail, key, bytes);
        }
        self.tail += 1;
    }

    /// Whether nothing more is to be collected.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.messages >= COLLECTED
    }

    /// Writes what was collected: all but the first cell, and then that one, for which the peer
    /// looks.
    pub(super) fn write_collected(&mut self, link: &Link) -> Result<(), Error> {
        let cells = std::mem::take(&mut self.collected);
        let written = match cells.split_first() {
            None => Ok(()),
            Some((first, rest)) => {
                link.collects(false);
                let number = self.tail - cells.len() as u64;
                let posted = self.post_cells(link, number, first, bytemuck::cast_slice(rest));
                posted.and_then(|()| self.wake(link))
            }
        };
        self.collected = cells;
        self.collected.clear();
        self.messages = 0;
        written
    }

    /// Writes what was collected and has not changed since the last call.
    pub(super) fn write_unchanged(&mut self, link: &Link) -> Result<(), Error> {
        if std::mem::replace(&mut self.seen, true) { self.write_collected(link) } else { Ok(()) }
    }

    /// Forgets what was collected.
    pub(super) fn forget_collected(&mut self, link: &Link) {
        if !self.collected.is_empty() {
            self.collected.clear();
            self.messages = 0;
            link.collects(false);
        }
    }

    /// Writes an eager message of several cells: the bytes, then its first cell.
    pub(super) fn write_split(
        &mut self,
        link: &Link,
        first: Cell,
        bytes: &[u8],
        cells: usize,
    ) -> Result<(), Error> {
        self.write_collected(link)?;
        self.post_cells(link, self.tail, &first.stamped(self.tail), bytes)?;
        self.tail += cells as u64;
        self.eager += cells as u64;
        self.wake(link)
    }

    /// Writes to the cells after one of the peer's, and then to that one, for which it looks.
    fn post_cells(
        &mut self,
        link: &Link,
        number: u64,
        first: &[u64; WORDS],
        mut rest: &[u8],
    ) -> Result<(), Error> {
        let mut requests = SmallVec::<[SendWorkRequest<'_>; BATCH]>::new();
        let mut at = (number as usize + 1) % CELLS;
        while !rest.is_empty() {
            let before_end = (CELLS - at) * CELL;
            let (now, later) = rest.split_at(rest.len().min(CHUNK).min(before_end));
            requests.push(inline(self.ring_at(at), now));
            at = (at + now.len().div_ceil(CELL)) % CELLS;
            rest = later;
        }
        let operation = self.ring_at(number as usize % CELLS);
        requests.push(inline(operation, bytemuck::bytes_of(first)));
        self.post(link, &mut requests)
    }

    /// Tells the peer what was taken here.
    pub(super) fn tell_credits(
        &mut self,
        link: &Link,
        taken: u64,
        released: u64,
    ) -> Result<(), Error> {
        self.tell(link, CREDITS, Credits::word(taken, released))?;
        self.wake(link)
    }

    /// Tells the peer whether to ring when it writes.
    pub(super) fn tell_asleep(&mut self, link: &Link, asleep: bool) -> Result<(), Error> {
        self.tell(link, ASLEEP, u64::from(asleep))
    }

    fn tell(&mut self, link: &Link, word: usize, value: u64) -> Result<(), Error> {
        let address = self.tell.address.wrapping_add(word as u64 * 8);
        let remote = RemoteAddress { address, key: self.tell.key };
        let bytes = value.to_ne_bytes();
        self.post(link, &mut [inline(Operation::Write { remote }, &bytes)])
    }

    /// Rings if the peer sleeps. To be called after what it is to see was posted.
    #[inline]
    fn wake(&mut self, link: &Link) -> Result<(), Error> {
        if link.is_to_ring() { self.ring(link) } else { Ok(()) }
    }

    #[cold]
    fn ring(&mut self, link: &Link) -> Result<(), Error> {
        self.post(link, &mut [inline(Operation::Send, &[])])
    }

    /// A write to cell `cell` of the peer's ring.
    #[inline]
    fn ring_at(&self, cell: usize) -> Operation {
        let address = self.ring.address.wrapping_add((cell * CELL) as u64);
        Operation::Write { remote: RemoteAddress { address, key: self.ring.key } }
    }

    #[inline]
    fn post(&mut self, link: &Link, requests: &mut [SendWorkRequest<'_>]) -> Result<(), Error> {
        let before = self.posted;
        self.posted = before.wrapping_add(requests.len() as u32);
        if before / SIGNAL_EVERY != self.posted / SIGNAL_EVERY {
            if let Some(last) = requests.last_mut() {
                last.flags = SendFlags::SIGNALLED;
            }
            link.take_completions()?;
        }
        self.control.post_send(requests).map_err(|error| Error::Device(error.reason))
    }
}

/// A request that carries its bytes.
#[inline]
fn inline(operation: Operation, bytes: &[u8]) -> SendWorkRequest<'_> {
    let payload = Payload::Inline(bytes);
    SendWorkRequest { wr_id: 0, operation, payload, flags: SendFlags::NONE }
}
