//! The ring that a rank keeps for one peer: the peer writes cells, the rank takes them in order.
#![allow(unsafe_code, reason = "registers the ring and copies out of it")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain, RemoteAddress};

use super::cell::{CELL, Cell, WORDS, stamp};
use crate::error::Error;

/// Cells of a ring, a power of two.
pub(super) const CELLS: usize = 256;

/// One line of memory that the device writes.
#[repr(align(64))]
pub(super) struct Line(pub(super) [AtomicU64; WORDS]);

impl Line {
    pub(super) fn new() -> Self {
        Line([const { AtomicU64::new(0) }; WORDS])
    }
}

/// Lines that a peer writes to. The region is declared first, so it goes first.
pub(super) struct Lines {
    region: MemoryRegion,
    lines: Box<[Line]>,
}

impl Lines {
    pub(super) fn new(domain: &ProtectionDomain, count: usize) -> Result<Self, Error> {
        let lines: Box<[Line]> = (0..count).map(|_| Line::new()).collect();
        let start = NonNull::from(&*lines).cast();
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        // SAFETY: the lines are dropped after the region and do not move. They are atomics; what is
        // read of them in another way is what a stamp says is written, until the peer is told that
        // it may write again.
        let region = unsafe { domain.register(start, count * CELL, access)? };
        Ok(Lines { region, lines })
    }

    /// The first byte, as peers name it.
    pub(super) fn remote(&self) -> RemoteAddress {
        self.region.at(0)
    }

    #[inline]
    pub(super) fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        &self.lines[line].0[word]
    }
}

/// The owner's side of a ring.
pub(super) struct Ring {
    lines: Lines,
    /// Cells ever taken: the number of the next one.
    pub(super) head: u64,
    /// Cells of eager messages that are matched, and with them their memory here is free.
    pub(super) released: u64,
    /// What the peer was told of both.
    pub(super) reported: (u64, u64),
    /// The peer was told to ring when it writes.
    pub(super) asleep: bool,
}

impl Ring {
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let lines = Lines::new(domain, CELLS)?;
        // As the word is at the peer from the beginning.
        Ok(Ring { lines, head: 0, released: 0, reported: (0, 0), asleep: true })
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        self.lines.remote()
    }

    /// The next cell, if it is there.
    #[inline]
    pub(super) fn front(&self) -> Option<Cell> {
        let line = &self.lines.lines[self.head as usize % CELLS].0;
        let last = line[WORDS - 1].load(Ordering::Acquire);
        if last as u32 != stamp(self.head) {
            return None;
        }
        let mut words = [last; WORDS];
        for (word, there) in words.iter_mut().zip(&line[..WORDS - 1]) {
            *word = there.load(Ordering::Relaxed);
        }
        Some(Cell(words))
    }

    /// The bytes in the cells after the next one, in two parts where they go round the end.
    pub(super) fn body(&self, length: usize) -> [&[u8]; 2] {
        let start = (self.head as usize + 1) % CELLS * CELL;
        let length = length.min((CELLS - 1) * CELL);
        let before_end = length.min(CELLS * CELL - start);
        let base = self.lines.lines.as_ptr().cast::<u8>();
        // SAFETY: `start` lies in the ring and `before_end` does not lead beyond its end. The stamp
        // of the first cell was seen, so the device has written these bytes, and it writes them
        // again only when the peer is told that they were taken, which needs this ring mutably.
        let first = unsafe { std::slice::from_raw_parts(base.wrapping_add(start), before_end) };
        // SAFETY: as above; what goes round the end is shorter than the ring.
        let second = unsafe { std::slice::from_raw_parts(base, length - before_end) };
        [first, second]
    }

    /// Takes the next message, of `cells` cells. Bytes of a message must not look like a stamp.
    #[inline]
    pub(super) fn take(&mut self, cells: usize) {
        for number in self.head + 1..self.head + cells as u64 {
            self.lines.word(number as usize % CELLS, WORDS - 1).store(0, Ordering::Relaxed);
        }
        self.head += cells as u64;
    }
}
