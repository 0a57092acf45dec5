//! Ring buffer of cells, with the number of the next cell to take.
//!
//! The peer's device writes a cell with its stamp last. The owner of the ring polls for the stamp
//! of the next cell, uses the cell, takes it, and then reports it to the peer (`credits`), which
//! may overwrite it from then on. Other threads may only test whether a cell has arrived.

use talpf_primitives::{AtomicU64, Ordering};

use super::cell::{Cell, Head, WORDS, stamp};

/// Number of cells of a ring, a power of two. Models have few.
pub(super) const CELLS: usize = if cfg!(talpf_loom) { 4 } else { 256 };

/// Cache line that the device writes.
#[repr(align(64))]
pub(super) struct Line(pub(super) [AtomicU64; WORDS]);

impl Line {
    pub(super) fn new() -> Self {
        Line(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Cells of a ring and the number of the next one.
pub(super) struct RingBuffer {
    lines: Box<[Line]>,
    /// Number of cells ever taken, which is the number of the next one. Changed by the owner of the
    /// ring.
    head: AtomicU64,
}

impl RingBuffer {
    pub(super) fn new() -> Self {
        RingBuffer { lines: (0..CELLS).map(|_| Line::new()).collect(), head: AtomicU64::new(0) }
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the line of a cell.
    #[inline]
    pub(super) fn line(&self, number: u64) -> &Line {
        &self.lines[number as usize % CELLS]
    }

    /// Returns the number of cells ever taken.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// Returns `true` if there is a cell to take, or was a moment ago. Any thread may call it.
    #[inline]
    pub(super) fn has_arrived(&self) -> bool {
        let head = self.head();
        self.line(head).0[WORDS - 1].load(Ordering::Acquire) as u32 == stamp(head)
    }

    /// Reads the head of the next cell, if it has arrived.
    #[inline]
    pub(super) fn next(&self) -> Option<Head> {
        let head = self.head();
        let [.., length, about, last] = &self.line(head).0;
        let last = last.load(Ordering::Acquire);
        (last as u32 == stamp(head)).then(|| Head {
            length: length.load(Ordering::Relaxed),
            about: about.load(Ordering::Relaxed),
            last,
        })
    }

    /// Reads the next cell, which has arrived.
    pub(super) fn cell(&self) -> Cell {
        let line = self.line(self.head());
        Cell(std::array::from_fn(|word| line.0[word].load(Ordering::Relaxed)))
    }

    /// Takes the next message, of `cells` cells, for the owner of the ring. Clears the stamps of
    /// all but the first cell: bytes of a message must not be taken for a stamp later.
    #[inline]
    pub(super) fn take(&self, cells: usize) {
        let head = self.head();
        for number in head + 1..head + cells as u64 {
            self.line(number).0[WORDS - 1].store(0, Ordering::Relaxed);
        }
        self.head.store(head + cells as u64, Ordering::Relaxed);
    }

    /// Continues as if so many cells had been taken.
    #[cfg(test)]
    pub(super) fn skip_to(&self, head: u64) {
        self.head.store(head, Ordering::Relaxed);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
