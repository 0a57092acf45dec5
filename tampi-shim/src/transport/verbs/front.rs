//! The cells of a ring, and which of them is the next.
//!
//! The peer's device writes a cell with its stamp last; the owner of the ring looks for the stamp of
//! the next cell, uses the cell, takes it, and then tells the peer (`credits`), which may write to
//! the place again from then on. Everybody else may look whether a cell is there.

use talpf_primitives::{AtomicU64, Ordering};

use super::cell::{Cell, Head, WORDS, stamp};

/// Cells of a ring, a power of two. Models have few.
pub(super) const CELLS: usize = if cfg!(talpf_loom) { 4 } else { 256 };

/// One line of memory that the device writes.
#[repr(align(64))]
pub(super) struct Line(pub(super) [AtomicU64; WORDS]);

impl Line {
    pub(super) fn new() -> Self {
        Line(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// See the module text.
pub(super) struct Front {
    lines: Box<[Line]>,
    /// Cells ever taken: the number of the next one. Changed by the owner of the ring.
    head: AtomicU64,
}

impl Front {
    pub(super) fn new() -> Self {
        Front { lines: (0..CELLS).map(|_| Line::new()).collect(), head: AtomicU64::new(0) }
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The line of a cell.
    #[inline]
    pub(super) fn line(&self, number: u64) -> &Line {
        &self.lines[number as usize % CELLS]
    }

    /// Cells ever taken.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// Returns whether there is a cell to take, or was a moment ago: anybody may ask.
    #[inline]
    pub(super) fn has_arrived(&self) -> bool {
        let head = self.head();
        self.line(head).0[WORDS - 1].load(Ordering::Acquire) as u32 == stamp(head)
    }

    /// Reads what the next cell says about itself, if it is there.
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

    /// The next cell, which is there.
    pub(super) fn cell(&self) -> Cell {
        let line = self.line(self.head());
        Cell(std::array::from_fn(|word| line.0[word].load(Ordering::Relaxed)))
    }

    /// Takes the next message, of `cells` cells, for the owner of the ring. Bytes of a message must
    /// not look like a stamp.
    #[inline]
    pub(super) fn take(&self, cells: usize) {
        let head = self.head();
        for number in head + 1..head + cells as u64 {
            self.line(number).0[WORDS - 1].store(0, Ordering::Relaxed);
        }
        self.head.store(head + cells as u64, Ordering::Relaxed);
    }

    /// Goes on as if so many cells had been taken.
    #[cfg(test)]
    pub(super) fn skip_to(&self, head: u64) {
        self.head.store(head, Ordering::Relaxed);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
