//! The ring that a rank keeps for one peer: the peer writes cells, the rank takes them in order.
#![allow(unsafe_code, reason = "registers the ring and copies out of it")]

use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain, RemoteAddress};
use talpf_primitives::AtomicU64;

use super::cell::{CELL, Cell, Head, INLINE};
use super::front::{CELLS, Front, Line};
use crate::error::Error;

/// Has the device write lines for a peer.
fn register(domain: &ProtectionDomain, lines: &[Line]) -> Result<MemoryRegion, Error> {
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    // SAFETY: callers keep the lines until the region is dropped, and do not move them. They are
    // atomics; what is read of them in another way is what a stamp says is written, until the peer
    // is told that it may write again.
    Ok(unsafe { domain.register(NonNull::from(lines).cast(), lines.len() * CELL, access)? })
}

/// The line that a peer writes to tell of itself. The region is declared first, so it goes first.
pub(super) struct Told {
    region: MemoryRegion,
    lines: Box<[Line]>,
}

impl Told {
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let lines: Box<[Line]> = Box::new([Line::new()]);
        Ok(Told { region: register(domain, &lines)?, lines })
    }

    /// The first byte, as peers name it.
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
/// The region is declared before the cells, so it goes first.
pub(super) struct Ring {
    region: MemoryRegion,
    front: Arc<Front>,
    /// Messages of the next cell that were taken, of those that share it.
    taken: usize,
    /// Eager messages that are matched, and with them their memory here is free: a short one counts
    /// one, and another its cells.
    pub(super) released: u64,
    /// What the peer was told of both.
    pub(super) reported: (u64, u64),
    /// The peer was told to ring when it writes.
    pub(super) asleep: bool,
}

impl Ring {
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let front = Arc::new(Front::new());
        let region = register(domain, front.lines())?;
        // As the word is at the peer from the beginning.
        Ok(Ring { region, front, taken: 0, released: 0, reported: (0, 0), asleep: true })
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        self.region.at(0)
    }

    pub(super) fn share_front(&self) -> Arc<Front> {
        Arc::clone(&self.front)
    }

    /// Cells ever taken.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.front.head()
    }

    /// What the next cell says about itself, if it is there.
    #[inline]
    pub(super) fn front(&self) -> Option<Head> {
        self.front.next()
    }

    /// The next cell, which is there.
    pub(super) fn cell(&self) -> Cell {
        self.front.cell()
    }

    /// Goes on as if so many cells had been taken.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, head: u64) {
        self.front.skip_to(head);
    }

    /// The bytes of the next message, in the next cell, which is there.
    #[inline]
    pub(super) fn short(&self, length: usize) -> &[u8] {
        let length = length.min(INLINE);
        let start = (self.taken * length).min(INLINE - length);
        let first =
            std::ptr::from_ref(self.front.line(self.head())).cast::<u8>().wrapping_add(start);
        // SAFETY: the bytes lie in the line. Its stamp was seen, so the device has written them, and
        // it writes them again only when the peer is told that they were taken, which needs this
        // ring mutably.
        unsafe { std::slice::from_raw_parts(first, length) }
    }

    /// Takes the next message, whose bytes are in its cell.
    #[inline]
    pub(super) fn take_short(&mut self, head: &Head) {
        self.taken += 1;
        if self.taken >= head.count() {
            self.taken = 0;
            self.take(1);
        }
    }

    /// The bytes in the cells after the next one, in two parts where they go round the end.
    pub(super) fn body(&self, length: usize) -> [&[u8]; 2] {
        let start = (self.head() as usize + 1) % CELLS * CELL;
        let length = length.min((CELLS - 1) * CELL);
        let before_end = length.min(CELLS * CELL - start);
        let base = self.front.lines().as_ptr().cast::<u8>();
        // SAFETY: `start` lies in the ring and `before_end` does not lead beyond its end. The stamp
        // of the first cell was seen, so the device has written these bytes, and it writes them
        // again only when the peer is told that they were taken, which needs this ring mutably.
        let first = unsafe { std::slice::from_raw_parts(base.wrapping_add(start), before_end) };
        // SAFETY: as above; what goes round the end is shorter than the ring.
        let second = unsafe { std::slice::from_raw_parts(base, length - before_end) };
        [first, second]
    }

    /// Takes the next message, of `cells` cells.
    #[inline]
    pub(super) fn take(&mut self, cells: usize) {
        self.front.take(cells);
    }
}
