//! Short puts of one body to one rank, batched and posted together.
//!
//! The first short put to a rank is posted at once. Those of the same `OpenRound` that follow it
//! to the same rank are copied into a batch and posted as one `chain`, which takes the lock of the
//! target's windows, the send queue, a receive and a completion once, and not once a put. Puts to
//! adjacent addresses share a write, as stores do in a write-combining buffer.
//!
//! Each batch belongs to one `OpenRound` at a time. Its puts are posted when it is full, when its
//! owner issues an operation to another rank or of another kind or is dropped, when a task of this
//! rank polls for arrivals or waits for a sync or an operation, and by the polling task, if it
//! finds no new put in it. A polling task that sleeps would not, so nothing is batched then; it
//! checks once more after it has announced its sleep, so one of the two always sees the other.
//!
//! The lock of a batch is held while others are taken: the windows of the target, the send queue.
//! Deferred actions that run tasks (failures, credit that others wait for) follow after its
//! release.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use ibverbs_sim::RemoteAddress;
use smallvec::SmallVec;
use talpf_primitives::{AtomicU32, Mutex, Ordering};

use super::chain::{PUTS, joined, post_chain};
use super::issued::{Issued, refusal};
use super::occupancy::Occupancy;
use super::short_put::ShortPut;
use super::{Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::numbers::Rank;
use crate::round::RoundState;
use crate::window::{Claim, Kind, Landing, Parked, Post, Rest, Together};
use crate::world::RankState;

/// Number of batches of a rank. An `OpenRound` that finds none free posts every put by itself.
const BATCHES: usize = 16;
/// Largest number of bytes in a batch.
const BYTES: usize = 2048;

/// The batches of one rank.
pub(crate) struct Batches {
    occupancy: Occupancy,
    /// Changes when a task of the rank polls or waits. Puts of two epochs are not batched together:
    /// a task that polls waits for an answer, which a batch would delay.
    epoch: CachePadded<AtomicU32>,
    each: [CachePadded<Mutex<Batch>>; BATCHES],
}

/// Short puts to one rank, all through windows or all without.
struct Batch {
    /// Round of the owner; `None` without an owner.
    round: Option<Arc<RoundState>>,
    target: Rank,
    windowed: bool,
    puts: Vec<BatchedPut>,
    /// Bytes of all puts, one after another.
    bytes: Vec<u8>,
    /// `true` once the polling task has seen the batch unchanged.
    seen: bool,
}

/// A put to the rank of its batch, without its bytes.
pub(super) struct BatchedPut {
    /// Slot of the elements `index..end`.
    pub(super) slot: u32,
    pub(super) index: u64,
    pub(super) end: u64,
    pub(super) remote: RemoteAddress,
    /// Time of the call, as in its [`Transfer`].
    pub(super) called_ns: Cell<u64>,
    /// Range of its bytes among those of its batch.
    pub(super) bytes: (u32, u32),
}

impl BatchedPut {
    #[inline]
    fn range(&self) -> Range<usize> {
        self.bytes.0 as usize..self.bytes.1 as usize
    }
}

impl Batches {
    pub(crate) fn new() -> Self {
        let empty = || Batch {
            round: None,
            target: Rank(0),
            windowed: false,
            puts: Vec::new(),
            bytes: Vec::new(),
            seen: false,
        };
        Batches {
            occupancy: Occupancy::new(),
            epoch: CachePadded::new(AtomicU32::new(0)),
            each: std::array::from_fn(|_| CachePadded::new(Mutex::new(empty()))),
        }
    }

    /// Gives a batch to an issuer of operations of `round`, if one is free.
    #[cold]
    pub(super) fn acquire(&self, round: &Arc<RoundState>) -> Option<usize> {
        let number = self.occupancy.acquire(BATCHES)?;
        self.each[number].lock().round = Some(Arc::clone(round));
        Some(number)
    }

    /// Posts the puts of a batch and takes it back from its owner.
    #[cold]
    pub(super) fn release(&self, number: usize) {
        let mut batch = self.each[number].lock();
        let left = self.empty(number, &mut batch);
        let round = batch.round.take();
        drop(batch);
        self.occupancy.release(number);
        settle(left);
        drop(round);
    }

    /// Adds a put of the owner. Its bytes are copied.
    #[inline(always)]
    pub(super) fn add(
        &self,
        number: usize,
        target: Rank,
        windowed: bool,
        bytes: &[u8],
        put: impl FnOnce((u32, u32)) -> BatchedPut,
    ) {
        let mut batch = loop {
            let batch = self.each[number].lock();
            if batch.takes(target, windowed, bytes) {
                break batch;
            }
            drop(batch);
            self.post(number);
        };
        let is_first = batch.puts.is_empty();
        let range = batch.add_bytes(bytes);
        batch.puts.push(put(range));
        (batch.target, batch.windowed, batch.seen) = (target, windowed, false);
        if batch.is_full() || is_first && self.is_unseen(number, &batch) {
            let left = self.empty(number, &mut batch);
            drop(batch);
            settle(left);
        }
    }

    /// Marks a batch as filled. Returns `true` if the polling task may not see that.
    #[cold]
    fn is_unseen(&self, number: usize, batch: &Batch) -> bool {
        self.occupancy.fill(number);
        batch.round.as_ref().is_some_and(|round| round.world.rank(round.rank).poller.is_asleep())
    }

    /// Posts the puts of a batch.
    pub(super) fn post(&self, number: usize) {
        let mut batch = self.each[number].lock();
        let left = self.empty(number, &mut batch);
        drop(batch);
        settle(left);
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

    /// Posts the puts of all batches: a task of the rank polls or waits.
    #[inline]
    pub(crate) fn post_all(&self) {
        // Of two changes at the same time one is enough.
        self.epoch.store(self.epoch().wrapping_add(1), Ordering::Relaxed);
        if self.is_filled() {
            self.filled_ones().for_each(|number| self.post(number));
        }
    }

    /// Posts the batches that have not changed since the last call.
    #[cold]
    pub(crate) fn post_unchanged(&self) {
        for number in self.filled_ones() {
            let Some(mut batch) = self.each[number].try_lock() else {
                // Its owner is adding a put.
                continue;
            };
            if std::mem::replace(&mut batch.seen, true) {
                let left = self.empty(number, &mut batch);
                drop(batch);
                settle(left);
            }
        }
    }

    fn filled_ones(&self) -> impl Iterator<Item = usize> {
        let filled = self.occupancy.filled();
        (0..BATCHES).filter(move |number| filled & 1 << number != 0)
    }

    /// Posts the puts of a batch that the caller has locked.
    fn empty(&self, number: usize, batch: &mut Batch) -> Option<Remainder> {
        if batch.puts.is_empty() {
            return None;
        }
        let left = batch.post();
        batch.puts.clear();
        batch.bytes.clear();
        self.occupancy.empty(number);
        left
    }
}

impl Batch {
    #[inline]
    fn takes(&self, target: Rank, windowed: bool, bytes: &[u8]) -> bool {
        let is_alike = self.target == target && self.windowed == windowed;
        self.puts.is_empty() || is_alike && self.bytes.len() + bytes.len() <= BYTES
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.puts.len() >= PUTS
    }

    #[inline]
    fn add_bytes(&mut self, bytes: &[u8]) -> (u32, u32) {
        let first = self.bytes.len() as u32;
        match <[u8; 8]>::try_from(bytes) {
            // The most frequent length, without a call.
            Ok(word) => self.bytes.extend_from_slice(&word),
            Err(_) => self.bytes.extend_from_slice(bytes),
        }
        (first, self.bytes.len() as u32)
    }

    fn bytes_of(&self, put: &BatchedPut) -> &[u8] {
        &self.bytes[put.range()]
    }

    fn post(&self) -> Option<Remainder> {
        let round = self.round.as_ref()?;
        let chain = Chain { round, batch: self };
        let world = &round.world;
        if let Err(error) = round.count(self.target, self.puts.len() as u32) {
            let (round, target) = (Arc::clone(round), self.target);
            let (retry, refused) = (Vec::new(), None);
            return Some(Remainder { round, target, retry, refused, over: Some(error) });
        }
        let rest = if self.windowed {
            let has_landed = |source| world.has_landed(source, self.target);
            let windows = &world.rank(self.target).windows;
            windows.land_together(round.lane, round.number, &chain, &has_landed)
        } else {
            chain.post_raw()
        };
        let issued = |index| chain.put(index).to_issued(self.windowed);
        let retry = rest.retry.into_iter().map(issued).collect();
        let refused = rest.refused.map(|index| chain.claim(index));
        Some(Remainder {
            round: Arc::clone(round),
            target: self.target,
            retry,
            refused,
            over: None,
        })
    }
}

/// Completes the posting of a batch. The caller holds no lock.
fn settle(left: Option<Remainder>) {
    let Some(Remainder { round, target, retry, refused, over }) = left else {
        return;
    };
    let origin = round.world.rank(round.rank);
    retry.into_iter().for_each(|issued| origin.push_retry(issued));
    round.world.notify(target);
    if let Some(error) = over {
        round.world.fail(&[round.rank], &error);
    }
    if let Some(claim) = refused {
        // The puts have returned: the syncs of both ranks report the error.
        refusal(&claim, &round, target);
    }
}

/// The part of a posting that follows once the lock of the batch is released.
struct Remainder {
    round: Arc<RoundState>,
    target: Rank,
    retry: Vec<Issued>,
    refused: Option<Claim>,
    /// Error of a round with more operations than its limit.
    over: Option<Error>,
}

/// The puts of a batch as they are posted: plain writes, and a message that counts them.
struct Chain<'a> {
    round: &'a Arc<RoundState>,
    batch: &'a Batch,
}

impl Chain<'_> {
    fn put(&self, index: usize) -> ShortPut<'_> {
        let put = &self.batch.puts[index];
        let bytes = self.batch.bytes_of(put);
        ShortPut { round: self.round, at: self.transfer(put), claim: self.claim(index), bytes }
    }

    fn transfer(&self, put: &BatchedPut) -> Transfer {
        let BatchedPut { remote, ref called_ns, .. } = *put;
        let bytes = self.batch.bytes_of(put).len() as u64;
        Transfer { target: self.batch.target, remote, bytes, called_ns: called_ns.get() }
    }

    /// Posts all puts, which need no window.
    fn post_raw(&self) -> Rest {
        let (world, target) = (&self.round.world, self.batch.target);
        (0..self.len()).for_each(|index| world.note(self.round, target, self.claim(index)));
        let posted = self.post(0..self.len()) == Post::All;
        let retry = if posted { SmallVec::new() } else { (0..self.len()).collect() };
        Rest { retry, refused: None }
    }

    fn trace(&self, origin: &RankState, puts: &[BatchedPut]) {
        if !origin.tracer.is_traced() {
            return;
        }
        for put in puts {
            let mut transfer = self.transfer(put);
            origin.trace_send(&mut transfer, Verb::Put);
            put.called_ns.set(transfer.called_ns);
        }
    }
}

impl Together for Chain<'_> {
    fn len(&self) -> usize {
        self.batch.puts.len()
    }

    #[inline]
    fn claim(&self, index: usize) -> Claim {
        let BatchedPut { slot, index, end, .. } = self.batch.puts[index];
        Claim { source: self.round.rank, slot, index, end, kind: Kind::Write, raw: false }
    }

    fn post(&self, range: Range<usize>) -> Post {
        let origin = self.round.state();
        self.trace(origin, &self.batch.puts[range.clone()]);
        let count = range.len();
        if count == 1 {
            return self.put(range.start).post_now();
        }
        let puts = self.batch.puts[range].iter();
        let longest = INLINE_BYTES.min(origin.endpoint.max_transfer);
        let writes = joined(puts.map(|put| (put.remote, put.range())), longest);
        let requests = writes.map(|(remote, range)| (remote, &self.batch.bytes[range]));
        post_chain(self.round, self.batch.target, count, requests)
    }

    fn park(&self, index: usize) -> Box<dyn Parked> {
        self.put(index).park()
    }
}
