//! Short puts of one body to one rank, batched and posted together.
//!
//! The first short put to a rank is posted at once. Those of the same `OpenRound` that follow it
//! to the same rank are copied into a batch and posted as one `chain`, which takes the lock of the
//! target's windows, the send queue, a receive and a completion once, and not once a put. Puts to
//! adjacent addresses share a write, as stores do in a write-combining buffer. To a window of another
//! process they go in one message, with their claims (`processes/put_list.rs`), and become a chain there.
//!
//! Each batch belongs to one `OpenRound` at a time. Its puts are posted when it is full, when its
//! owner issues an operation to another rank or of another kind or is dropped, when a task of this
//! rank polls for arrivals or waits for a sync or an operation, and by the polling task, if it
//! finds no new put in it. A polling task that sleeps would not, so the first put in a batch wakes
//! it; it checks once more after it has announced its sleep, so one of the two always sees the other.
//!
//! Every put takes the lock of its batch, so that is one whose release is a store. It is held while
//! others are taken: the windows of the target, the send queue. Deferred actions that run tasks
//! (failures, credit that others wait for) follow after its release.

use std::ops::Range;
use std::sync::Arc;

use ibverbs_sim::RemoteAddress;
use smallvec::SmallVec;
use talpf_primitives::Ordering;

use super::batches::{Batch, BatchedPut, Batches};
use super::chain::{PUTS, joined, post_chain};
use super::issued::{Issued, refusal};
use super::parked_puts::ParkedPuts;
use super::short_put::ShortPut;
use super::{Route, Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::numbers::Rank;
use crate::sender::{RoundState, Sender};
use crate::window::{Claim, Kind, Landing, Parked, Post, Rest, Together, TravelTogether};

impl Batches<Arc<RoundState>> {
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

    /// Adds a put of the owner. Its bytes are copied. Returns `true` if the batch was empty: then the
    /// caller wakes the polling task.
    #[inline(always)]
    pub(super) fn add(
        &self,
        number: usize,
        target: Rank,
        route: Route<()>,
        bytes: &[u8],
        put: impl FnOnce((u32, u32)) -> BatchedPut,
    ) -> bool {
        let mut batch = loop {
            let batch = self.each[number].lock();
            if batch.takes(target, route, bytes) {
                break batch;
            }
            drop(batch);
            self.post(number);
        };
        let is_first = batch.puts.is_empty();
        let range = batch.add_bytes(bytes);
        batch.puts.push(put(range));
        (batch.target, batch.route, batch.seen) = (target, route, false);
        if batch.is_full() {
            let left = self.empty(number, &mut batch);
            drop(batch);
            settle(left);
            return false;
        }
        if is_first {
            self.occupancy.fill(number);
        }
        is_first
    }

    /// Posts the puts of a batch.
    pub(super) fn post(&self, number: usize) {
        let mut batch = self.each[number].lock();
        let left = self.empty(number, &mut batch);
        drop(batch);
        settle(left);
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

    /// Posts the puts of a batch that the caller has locked.
    fn empty(&self, number: usize, batch: &mut Batch<Arc<RoundState>>) -> Option<Remainder> {
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

impl Batch<Arc<RoundState>> {
    #[inline]
    fn is_full(&self) -> bool {
        self.puts.len() >= PUTS
    }

    fn post(&self) -> Option<Remainder> {
        let round = self.round.as_ref()?;
        let chain = Chain { round, batch: self };
        if let Err(error) = round.count(self.target, self.puts.len() as u32) {
            let (round, target) = (Arc::clone(round), self.target);
            let (retry, refused) = (Vec::new(), None);
            return Some(Remainder { round, target, retry, refused, over: Some(error) });
        }
        let rest = match self.route {
            Route::Window(()) => {
                round.sender.peers.land_together(round.request(self.target), &chain)
            }
            Route::Direct => chain.post_raw(),
        };
        let issued = |index| chain.put(index).to_issued();
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
    let origin = &round.sender;
    retry.into_iter().for_each(|issued| origin.push_retry(issued));
    origin.peers.notify(target);
    if let Some(error) = over {
        origin.fail(&error);
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
pub(super) struct Chain<'a> {
    pub(super) round: &'a Arc<RoundState>,
    pub(super) batch: &'a Batch<Arc<RoundState>>,
}

impl Chain<'_> {
    fn put(&self, index: usize) -> ShortPut<'_> {
        let put = &self.batch.puts[index];
        let bytes = self.batch.bytes_of(put);
        let route = match self.batch.route {
            Route::Window(()) => Route::Window(self.claim(index)),
            Route::Direct => Route::Direct,
        };
        ShortPut::new(self.round, self.transfer(put), route, bytes)
    }

    fn transfer(&self, put: &BatchedPut) -> Transfer {
        let BatchedPut { remote, ref called_ns, .. } = *put;
        let bytes = self.batch.bytes_of(put).len() as u64;
        Transfer::consecutive(self.batch.target, remote, bytes, called_ns.get())
    }

    /// Posts all puts, which need no window.
    fn post_raw(&self) -> Rest {
        let (origin, target) = (&self.round.sender, self.batch.target);
        (0..self.len()).for_each(|index| origin.note(self.round, target, self.claim(index)));
        let posted = self.post(0..self.len()) == Post::All;
        let retry = if posted { SmallVec::new() } else { (0..self.len()).collect() };
        Rest { retry, ..Rest::default() }
    }

    fn trace(&self, origin: &Sender, puts: &[BatchedPut]) {
        if !origin.tracer.is_traced() {
            return;
        }
        for put in puts {
            let mut transfer = self.transfer(put);
            origin.tracer.send(&mut transfer, Verb::Put, Some(self.round.lane));
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
        let (source, kind) = (self.round.rank, Kind::Write);
        Claim { source, slot, index, end, rows: 1, stride: 0, kind, raw: false }
    }

    fn post(&self, range: Range<usize>) -> Post {
        let origin = &self.round.sender;
        self.trace(origin, &self.batch.puts[range.clone()]);
        let count = range.len();
        if count == 1 {
            return self.put(range.start).post_now();
        }
        let puts = self.batch.puts[range].iter();
        let longest = INLINE_BYTES.min(origin.own.endpoint.max_transfer);
        let writes = joined(puts.map(|put| (put.remote, put.range())), longest);
        let requests = writes.map(|(remote, range)| (remote, &self.batch.bytes[range]));
        post_chain(self.round, self.batch.target, count, requests)
    }

    fn parks_as_one(&self) -> bool {
        true
    }

    fn park(&self, range: Range<usize>) -> Box<dyn Parked> {
        match range.len() {
            1 => self.put(range.start).park(),
            _ => Box::new(ParkedPuts::new(self.round, self.batch, range)),
        }
    }
}

impl TravelTogether for Chain<'_> {
    fn with_bytes(&self, index: usize, visit: impl FnOnce(RemoteAddress, &[u8])) {
        let put = &self.batch.puts[index];
        visit(put.remote, self.batch.bytes_of(put));
    }

    fn trace_send(&self, range: Range<usize>) {
        self.trace(&self.round.sender, &self.batch.puts[range]);
    }
}
