//! Rings: a rank keeps one for each peer, which writes cells that the rank takes in order.
#![allow(unsafe_code, reason = "registers the ring and copies out of it")]

use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain, RemoteAddress};
use talpf_primitives::AtomicU64;

use super::cell::{CELL, Cell, Head, INLINE};
use super::ring_buffer::{CELLS, Line, RingBuffer};
use crate::error::Error;

/// Registers cache lines for writes of a peer.
fn register(domain: &ProtectionDomain, lines: &[Line]) -> Result<MemoryRegion, Error> {
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    // SAFETY: callers keep the lines until the region is dropped, and do not move them. They are
    // atomics; what is read of them in another way is what a stamp says is written, until the peer
    // has the report that it may write again.
    Ok(unsafe { domain.register(NonNull::from(lines).cast(), lines.len() * CELL, access)? })
}

/// Cache line in which a peer reports its credits and whether it sleeps. The region is declared
/// first, so it is dropped first.
pub(super) struct StatusLine {
    region: MemoryRegion,
    lines: Box<[Line]>,
}

impl StatusLine {
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let lines: Box<[Line]> = Box::new([Line::new()]);
        Ok(StatusLine { region: register(domain, &lines)?, lines })
    }

    /// Returns the remote address of the line.
    pub(super) fn remote(&self) -> RemoteAddress {
        self.region.at(0)
    }

    #[inline]
    pub(super) fn word(&self, word: usize) -> &AtomicU64 {
        &self.lines[0].0[word]
    }
}

/// The owner's side of a ring.
///
/// The region is declared before the cells, so it is dropped first.
pub(super) struct Ring {
    region: MemoryRegion,
    buffer: Arc<RingBuffer>,
    /// Number of messages taken from the next cell, if several share it.
    taken: usize,
    /// Number of eager messages that are matched, so that their memory here is free: a short one
    /// counts one, a longer one as many as its cells.
    pub(super) released: u64,
    /// Numbers of cells taken and of messages released, as last reported to the peer.
    pub(super) reported: (u64, u64),
    /// `true` if the peer was asked to ring the doorbell when it writes.
    pub(super) asleep: bool,
}

impl Ring {
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let buffer = Arc::new(RingBuffer::new());
        let region = register(domain, buffer.lines())?;
        // The word at the peer says so from the beginning.
        Ok(Ring { region, buffer, taken: 0, released: 0, reported: (0, 0), asleep: true })
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        self.region.at(0)
    }

    pub(super) fn share_buffer(&self) -> Arc<RingBuffer> {
        Arc::clone(&self.buffer)
    }

    /// Returns the number of cells ever taken.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.buffer.head()
    }

    /// Reads the head of the next cell, if it has arrived.
    #[inline]
    pub(super) fn peek(&self) -> Option<Head> {
        self.buffer.next()
    }

    /// Reads the next cell, which has arrived.
    pub(super) fn cell(&self) -> Cell {
        self.buffer.cell()
    }

    /// Continues as if so many cells had been taken.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, head: u64) {
        self.buffer.skip_to(head);
    }

    /// Returns the bytes of the next short message, in the next cell, which has arrived.
    #[inline]
    pub(super) fn short(&self, length: usize) -> &[u8] {
        let length = length.min(INLINE);
        let start = (self.taken * length).min(INLINE - length);
        let first =
            std::ptr::from_ref(self.buffer.line(self.head())).cast::<u8>().wrapping_add(start);
        // SAFETY: the bytes lie in the line. Its stamp was seen, so the device has written them,
        // and it writes them again only after the report to the peer that they were taken, which
        // needs this ring mutably.
        unsafe { std::slice::from_raw_parts(first, length) }
    }

    /// Takes the next short message.
    #[inline]
    pub(super) fn take_short(&mut self, head: &Head) {
        self.taken += 1;
        if self.taken >= head.count() {
            self.taken = 0;
            self.take(1);
        }
    }

    /// Returns the bytes in the cells after the next one, in two parts if they wrap around the end
    /// of the ring.
    pub(super) fn body(&self, length: usize) -> [&[u8]; 2] {
        let start = (self.head() as usize + 1) % CELLS * CELL;
        let length = length.min((CELLS - 1) * CELL);
        let before_end = length.min(CELLS * CELL - start);
        let base = self.buffer.lines().as_ptr().cast::<u8>();
        // SAFETY: `start` lies in the ring and `before_end` does not lead beyond its end. The stamp
        // of the first cell was seen, so the device has written these bytes, and it writes them
        // again only after the report to the peer that they were taken, which needs this ring
        // mutably.
        let first = unsafe { std::slice::from_raw_parts(base.wrapping_add(start), before_end) };
        // SAFETY: as above; what goes round the end is shorter than the ring.
        let second = unsafe { std::slice::from_raw_parts(base, length - before_end) };
        [first, second]
    }

    /// Takes the next message or control message, of `cells` cells.
    #[inline]
    pub(super) fn take(&mut self, cells: usize) {
        self.buffer.take(cells);
    }
}
