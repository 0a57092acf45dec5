//! The batches of one rank, in which short puts wait to be posted together (see `batch`).

use std::cell::Cell;
use std::ops::Range;

use crossbeam_utils::CachePadded;
use ibverbs_sim::RemoteAddress;
use talpf_primitives::{AtomicU32, BriefMutex, Ordering};

use super::occupancy::Occupancy;
use super::transfer::Route;
use crate::endpoint::INLINE_BYTES;
use crate::numbers::Rank;

/// Number of batches of a rank. An `OpenRound` that finds none free posts every put by itself.
pub(super) const BATCHES: usize = 16;
/// Largest number of bytes in a batch.
const BYTES: usize = 2048;

/// The value of a rank without a rank.
pub(super) const NO_RANK: u32 = u32::MAX;
/// The number of a batch without a batch.
pub(super) const NO_BATCH: usize = usize::MAX;

/// The batches of one rank.
pub(crate) struct Batches<R> {
    /// Most bytes of a put.
    pub(super) longest: usize,
    pub(super) occupancy: Occupancy,
    /// Changes when a task of the rank polls or waits. Puts of two epochs are not batched together:
    /// a task that polls waits for an answer, which a batch would delay.
    pub(super) epoch: CachePadded<AtomicU32>,
    pub(super) each: [CachePadded<BriefMutex<Batch<R>>>; BATCHES],
}

/// Short puts to one rank, all through windows or all without.
pub(super) struct Batch<R> {
    /// Round of the owner; `None` without an owner.
    pub(super) round: Option<R>,
    pub(super) target: Rank,
    pub(super) route: Route<()>,
    pub(super) puts: Vec<BatchedPut>,
    /// Bytes of all puts, one after another.
    pub(super) bytes: Vec<u8>,
    /// `true` once the polling task has seen the batch unchanged.
    pub(super) seen: bool,
}

/// A put to the rank of its batch, without its bytes.
pub(super) struct BatchedPut {
    /// Slot of the elements `index..end`.
    pub(super) slot: u32,
    pub(super) index: u64,
    pub(super) end: u64,
    pub(super) remote: RemoteAddress,
    /// Time of the call, as in its [`Transfer`](super::Transfer).
    pub(super) called_ns: Cell<u64>,
    /// Range of its bytes among those of its batch.
    pub(super) bytes: (u32, u32),
}

impl BatchedPut {
    #[inline]
    pub(super) fn range(&self) -> Range<usize> {
        self.bytes.0 as usize..self.bytes.1 as usize
    }
}

impl<R> Batches<R> {
    /// Makes the batches of a rank whose device transfers at most so many bytes at a time.
    pub(crate) fn new(max_transfer: usize) -> Self {
        let empty = || Batch {
            round: None,
            target: Rank(0),
            route: Route::Direct,
            puts: Vec::new(),
            bytes: Vec::new(),
            seen: false,
        };
        Batches {
            longest: INLINE_BYTES.min(max_transfer),
            occupancy: Occupancy::new(),
            epoch: CachePadded::new(AtomicU32::new(0)),
            each: std::array::from_fn(|_| CachePadded::new(BriefMutex::new(empty()))),
        }
    }

    /// Gives a batch to an issuer of operations of `round`, if one is free.
    #[cold]
    pub(super) fn acquire(&self, round: &R) -> Option<usize>
    where
        R: Clone,
    {
        let number = self.occupancy.acquire(BATCHES)?;
        self.each[number].lock().round = Some(round.clone());
        Some(number)
    }

    /// Returns `true` if any batch is filled.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.occupancy.filled() != 0
    }

    /// As `is_filled`, for a polling task that has announced its sleep.
    pub(crate) fn is_filled_at_last(&self) -> bool {
        self.occupancy.filled_at_last() != 0
    }

    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(super) fn filled_ones(&self) -> impl Iterator<Item = usize> {
        let filled = self.occupancy.filled();
        (0..BATCHES).filter(move |number| filled & 1 << number != 0)
    }
}

impl<R> Batch<R> {
    #[inline]
    pub(super) fn takes(&self, target: Rank, route: Route<()>, bytes: &[u8]) -> bool {
        let is_alike = self.target == target && self.route == route;
        self.puts.is_empty() || is_alike && self.bytes.len() + bytes.len() <= BYTES
    }

    #[inline]
    pub(super) fn add_bytes(&mut self, bytes: &[u8]) -> (u32, u32) {
        let first = self.bytes.len() as u32;
        match <[u8; 8]>::try_from(bytes) {
            // The most frequent length, without a call.
            Ok(word) => self.bytes.extend_from_slice(&word),
            Err(_) => self.bytes.extend_from_slice(bytes),
        }
        (first, self.bytes.len() as u32)
    }

    /// Copies some of the puts, with their bytes, to a batch without an owner.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let puts = &self.puts[range];
        let first = puts.first().map_or(0, |put| put.bytes.0);
        let end = puts.last().map_or(first, |put| put.bytes.1);
        let from_first = |put: &BatchedPut| BatchedPut {
            called_ns: put.called_ns.clone(),
            bytes: (put.bytes.0 - first, put.bytes.1 - first),
            ..*put
        };
        Batch {
            round: None,
            target: self.target,
            route: self.route,
            puts: puts.iter().map(from_first).collect(),
            bytes: self.bytes[first as usize..end as usize].to_vec(),
            seen: false,
        }
    }

    pub(super) fn bytes_of(&self, put: &BatchedPut) -> &[u8] {
        &self.bytes[put.range()]
    }
}
