//! Where a rank writes the ring that a peer keeps for it.

use ibverbs_sim::SendWorkRequest;
use smallvec::SmallVec;

use super::cell::{CELL, Cell, Kind, WORDS};
use super::link::{BATCH, CHUNK, Link, inline};
use super::ring::CELLS;
use crate::error::Error;
use crate::matching::Key;

/// See the module text.
#[derive(Default)]
pub(super) struct Outlet {
    /// Cells ever written: the number of the next one.
    tail: u64,
    /// Those of eager messages among them.
    eager: u64,
}

impl Outlet {
    #[inline]
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// Whether the ring has room for so many cells.
    #[inline]
    pub(super) fn room(&self, link: &Link, cells: usize) -> bool {
        let in_flight = (self.tail as u32).wrapping_sub(link.credits().0);
        in_flight as usize + cells <= CELLS
    }

    /// Whether the peer will keep an eager message of so many cells if it has to.
    #[inline]
    pub(super) fn quota(&self, link: &Link, quota: usize, cells: usize) -> bool {
        let unmatched = (self.eager as u32).wrapping_sub(link.credits().1);
        unmatched as usize + cells <= quota
    }

    #[inline]
    pub(super) fn write(&mut self, link: &Link, cell: Cell) -> Result<(), Error> {
        let words: [u64; WORDS] = cell.stamped(self.tail);
        let operation = link.ring_at(self.tail as usize % CELLS);
        link.post(&mut [inline(operation, bytemuck::bytes_of(&words))])?;
        self.tail += 1;
        link.wake()
    }

    /// Writes an eager message that fits into one cell.
    #[inline]
    pub(super) fn write_short(
        &mut self,
        link: &Link,
        key: &Key,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut cell = Cell::of_message(Kind::Eager, key, bytes.len() as u32);
        match <[u8; 8]>::try_from(bytes) {
            Ok(word) => cell.0[0] = u64::from_ne_bytes(word),
            Err(_) => bytemuck::bytes_of_mut(&mut cell.0)[..bytes.len()].copy_from_slice(bytes),
        }
        self.eager += 1;
        self.write(link, cell)
    }

    /// Writes an eager message of several cells: the bytes, then its first cell.
    pub(super) fn write_split(
        &mut self,
        link: &Link,
        first: Cell,
        bytes: &[u8],
        cells: usize,
    ) -> Result<(), Error> {
        let words = first.stamped(self.tail);
        let mut requests = SmallVec::<[SendWorkRequest<'_>; BATCH]>::new();
        let mut rest = bytes;
        let mut at = (self.tail as usize + 1) % CELLS;
        while !rest.is_empty() {
            let before_end = (CELLS - at) * CELL;
            let (now, later) = rest.split_at(rest.len().min(CHUNK).min(before_end));
            requests.push(inline(link.ring_at(at), now));
            at = (at + now.len().div_ceil(CELL)) % CELLS;
            rest = later;
        }
        let first = inline(link.ring_at(self.tail as usize % CELLS), bytemuck::bytes_of(&words));
        requests.push(first);
        link.post(&mut requests)?;
        self.tail += cells as u64;
        self.eager += cells as u64;
        link.wake()
    }
}
