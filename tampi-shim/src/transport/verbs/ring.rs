//! The ring that a rank keeps for one peer: the peer writes cells, the rank takes them in order.
#![allow(unsafe_code, reason = "registers the ring and copies out of it")]

use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain, RemoteAddress};

use super::cell::{CELL, Cell, Head, INLINE, WORDS, stamp};
use crate::error::Error;
use crate::sync::{AtomicU64, Ordering};

/// Cells of a ring, a power of two.
pub(super) const CELLS: usize = 256;

/// One line of memory that the device writes.
#[repr(align(64))]
pub(super) struct Line(pub(super) [AtomicU64; WORDS]);

impl Line {
    pub(super) fn new() -> Self {
        Line(std::array::from_fn(|_| AtomicU64::new(0)))
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

/// The cells of a ring, and which is the next.
pub(super) struct Front {
    lines: Lines,
    /// Cells ever taken: the number of the next one. Changed by the owner of the [`Ring`].
    head: AtomicU64,
}

impl Front {
    /// Whether there is a cell to take, or was a moment ago: anybody may ask.
    #[inline]
    pub(super) fn has_arrived(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        self.line(head).0[WORDS - 1].load(Ordering::Acquire) as u32 == stamp(head)
    }

    /// The line of a cell.
    #[inline]
    fn line(&self, number: u64) -> &Line {
        &self.lines.lines[number as usize % CELLS]
    }
}

/// The owner's side of a ring.
pub(super) struct Ring {
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
        let front = Front { lines: Lines::new(domain, CELLS)?, head: AtomicU64::new(0) };
        // As the word is at the peer from the beginning.
        Ok(Ring { front: Arc::new(front), taken: 0, released: 0, reported: (0, 0), asleep: true })
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        self.front.lines.remote()
    }

    pub(super) fn share_front(&self) -> Arc<Front> {
        Arc::clone(&self.front)
    }

    /// Cells ever taken.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.front.head.load(Ordering::Relaxed)
    }

    /// What the next cell says about itself, if it is there.
    #[inline]
    pub(super) fn front(&self) -> Option<Head> {
        let [.., length, about, last] = &self.line().0;
        let last = last.load(Ordering::Acquire);
        (last as u32 == stamp(self.head())).then(|| Head {
            length: length.load(Ordering::Relaxed),
            about: about.load(Ordering::Relaxed),
            last,
        })
    }

    /// The next cell, which is there.
    pub(super) fn cell(&self) -> Cell {
        Cell(std::array::from_fn(|word| self.line().0[word].load(Ordering::Relaxed)))
    }

    #[inline]
    fn line(&self) -> &Line {
        self.front.line(self.head())
    }

    /// Goes on as if so many cells had been taken.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, head: u64) {
        self.front.head.store(head, Ordering::Relaxed);
    }

    /// The bytes of the next message, in the next cell, which is there.
    #[inline]
    pub(super) fn short(&self, length: usize) -> &[u8] {
        let length = length.min(INLINE);
        let start = (self.taken * length).min(INLINE - length);
        let first = std::ptr::from_ref(self.line()).cast::<u8>().wrapping_add(start);
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
        let base = self.front.lines.lines.as_ptr().cast::<u8>();
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
        let (head, front) = (self.head(), &self.front);
        for number in head + 1..head + cells as u64 {
            front.line(number).0[WORDS - 1].store(0, Ordering::Relaxed);
        }
        front.head.store(head + cells as u64, Ordering::Relaxed);
    }
}
