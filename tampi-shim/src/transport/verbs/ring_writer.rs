//! Writer of the ring and the status line that a peer keeps for a rank.
//!
//! Two threads that post to one queue pair at a time carry out each other's requests, so a request
//! of one of them may not be carried out when its post returns. Here all requests are posted with
//! the writer borrowed exclusively, so they are carried out when the post returns, and later loads
//! come after them.
//!
//! Cells may be batched: the README says when, and which thread writes a batch.

use ibverbs_sim::{Operation, Payload, QueuePair, RemoteAddress, SendFlags, SendWorkRequest};
use smallvec::SmallVec;

use super::cell::{CELL, Cell, WORDS, join_short, write_short};
use super::credits::Credits;
use super::link::{ASLEEP, CREDITS, Link};
use super::ring_buffer::CELLS;
use crate::error::Error;
use crate::matching::Key;

/// Requests that a queue pair for cells holds, more than a full ring needs.
pub(super) const SENDS: u32 = 4096;
/// Number of requests of which one asks for a completion, so that entries of the send queue are
/// freed.
const SIGNAL_EVERY: u32 = 64;
/// Length of the completion queue: the completions asked for, and one more. Of error completions
/// only the first matters.
pub(super) const SEND_COMPLETIONS: u32 = SENDS / SIGNAL_EVERY + 1;
/// Maximum inline payload of a request, in bytes.
pub(super) const CHUNK: usize = 512;
/// Requests posted at once.
const CHAIN: usize = 18;
/// Maximum number of messages in a batch. More save little, and make the peer wait.
const MAX_BATCH: usize = 16;

/// Writer of one peer's ring, under the lock of the sender.
pub(super) struct RingWriter {
    control: QueuePair,
    /// Ring at the peer.
    ring: RemoteAddress,
    /// Status line at the peer.
    remote_status: RemoteAddress,
    /// Number of requests ever posted, wrapping.
    posted: u32,
    /// Number of cells ever written, which is the number of the next one.
    tail: u64,
    /// Number of eager messages ever written: a short one counts one, a longer one as many as its
    /// cells.
    eager: u64,
    /// The last cells, if they are not posted yet.
    batch: Vec<[u64; WORDS]>,
    /// Number of messages in the batch.
    batch_messages: usize,
    /// `true` if the polling task has seen the batch since the last message was added.
    seen_by_poller: bool,
}

impl RingWriter {
    pub(super) fn new(
        control: QueuePair,
        ring: RemoteAddress,
        remote_status: RemoteAddress,
    ) -> Self {
        let batch = Vec::with_capacity(MAX_BATCH + 1);
        RingWriter {
            control,
            ring,
            remote_status,
            posted: 0,
            tail: 0,
            eager: 0,
            batch,
            batch_messages: 0,
            seen_by_poller: false,
        }
    }

    #[inline]
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// Continues as if so many cells had been written.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, tail: u64) {
        self.tail = tail;
    }

    /// Returns `true` if the ring has room for so many cells.
    #[inline]
    pub(super) fn room(&self, link: &Link, cells: usize) -> bool {
        link.credits().has_room(self.tail, cells)
    }

    /// Returns `true` if the peer will keep an unmatched eager message of so many cells.
    #[inline]
    pub(super) fn quota(&self, link: &Link, quota: usize, cells: usize) -> bool {
        link.credits().has_quota(self.eager, quota, cells)
    }

    /// Writes a cell, after the batch if there is one.
    #[inline]
    pub(super) fn write(&mut self, link: &Link, cell: Cell) -> Result<(), Error> {
        if !self.batch.is_empty() {
            self.batch.push(cell.stamped(self.tail));
            self.tail += 1;
            return self.write_batch(link);
        }
        self.write_words(link, &cell.stamped(self.tail))
    }

    /// Writes the cell of a short eager message, after the batch if there is one.
    #[inline]
    pub(super) fn write_short(
        &mut self,
        link: &Link,
        key: &Key,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if !self.batch.is_empty() {
            self.add_short(key, bytes);
            return self.write_batch(link);
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

    /// Adds a short eager message to the batch. Returns `true` if it is the first.
    #[inline]
    pub(super) fn add_to_batch(&mut self, link: &Link, key: &Key, bytes: &[u8]) -> bool {
        let is_first = self.batch.is_empty();
        self.add_short(key, bytes);
        self.seen_by_poller = false;
        if is_first {
            link.set_batching(true);
        }
        is_first
    }

    #[inline]
    fn add_short(&mut self, key: &Key, bytes: &[u8]) {
        self.batch_messages += 1;
        self.eager += 1;
        if self.batch.last_mut().is_some_and(|last| join_short(last, key, bytes)) {
            return;
        }
        self.batch.push([0; WORDS]);
        if let Some(words) = self.batch.last_mut() {
            write_short(words, self.tail, key, bytes);
        }
        self.tail += 1;
    }

    /// Returns `true` if no more messages may be added to the batch.
    #[inline]
    pub(super) fn is_batch_full(&self) -> bool {
        self.batch_messages >= MAX_BATCH
    }

    /// Writes the batch: first all cells but the first, and then the first, for which the peer
    /// polls.
    pub(super) fn write_batch(&mut self, link: &Link) -> Result<(), Error> {
        let cells = std::mem::take(&mut self.batch);
        let written = match cells.split_first() {
            None => Ok(()),
            Some((first, rest)) => {
                link.set_batching(false);
                let number = self.tail - cells.len() as u64;
                let posted = self.post_cells(link, number, first, bytemuck::cast_slice(rest));
                posted.and_then(|()| self.wake(link))
            }
        };
        self.batch = cells;
        self.batch.clear();
        self.batch_messages = 0;
        written
    }

    /// Writes the batch if no message was added since the last call.
    pub(super) fn write_idle_batch(&mut self, link: &Link) -> Result<(), Error> {
        if std::mem::replace(&mut self.seen_by_poller, true) {
            self.write_batch(link)
        } else {
            Ok(())
        }
    }

    /// Drops the batch without writing it.
    pub(super) fn drop_batch(&mut self, link: &Link) {
        if !self.batch.is_empty() {
            self.batch.clear();
            self.batch_messages = 0;
            link.set_batching(false);
        }
    }

    /// Writes an eager message of several cells: first the bytes, then its first cell.
    pub(super) fn write_split(
        &mut self,
        link: &Link,
        first: Cell,
        bytes: &[u8],
        cells: usize,
    ) -> Result<(), Error> {
        self.write_batch(link)?;
        self.post_cells(link, self.tail, &first.stamped(self.tail), bytes)?;
        self.tail += cells as u64;
        self.eager += cells as u64;
        self.wake(link)
    }

    /// Posts writes of `rest` to the cells after cell `number`, and then of `first` to that cell,
    /// for which the peer polls.
    fn post_cells(
        &mut self,
        link: &Link,
        number: u64,
        first: &[u64; WORDS],
        mut rest: &[u8],
    ) -> Result<(), Error> {
        let mut requests = SmallVec::<[SendWorkRequest<'_>; CHAIN]>::new();
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

    /// Reports the cells taken and the messages released to the peer.
    pub(super) fn report_credits(
        &mut self,
        link: &Link,
        taken: u64,
        released: u64,
    ) -> Result<(), Error> {
        self.write_status(link, CREDITS, Credits::word(taken, released))?;
        self.wake(link)
    }

    /// Reports to the peer whether this rank sleeps, so that the peer has to ring when it writes.
    pub(super) fn report_asleep(&mut self, link: &Link, asleep: bool) -> Result<(), Error> {
        self.write_status(link, ASLEEP, u64::from(asleep))
    }

    fn write_status(&mut self, link: &Link, word: usize, value: u64) -> Result<(), Error> {
        let address = self.remote_status.address.wrapping_add(word as u64 * 8);
        let remote = RemoteAddress { address, key: self.remote_status.key };
        let bytes = value.to_ne_bytes();
        self.post(link, &mut [inline(Operation::Write { remote }, &bytes)])
    }

    /// Rings the doorbell if the peer sleeps. To be called after the post that the peer has to see.
    #[inline]
    fn wake(&mut self, link: &Link) -> Result<(), Error> {
        if link.must_ring_doorbell() { self.ring_doorbell(link) } else { Ok(()) }
    }

    #[cold]
    fn ring_doorbell(&mut self, link: &Link) -> Result<(), Error> {
        self.post(link, &mut [inline(Operation::Send, &[])])
    }

    /// Creates a write to cell `cell` of the peer's ring.
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

/// Creates a request with inline payload.
#[inline]
fn inline(operation: Operation, bytes: &[u8]) -> SendWorkRequest<'_> {
    let payload = Payload::Inline(bytes);
    SendWorkRequest { wr_id: 0, operation, payload, flags: SendFlags::NONE }
}
