//! Short puts, whose bytes are copied from the caller's memory, with nothing allocated unless they
//! are parked. The first is posted by itself, those that follow are batched.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ibverbs_sim::{Error as DeviceError, Operation as Request, PostError};
use smallvec::SmallVec;

use super::batch::BatchedPut;
use super::issued::{Issued, Memory, refusal};
use super::open_round::{OpenRound, when_done};
use super::registration::Registered;
use super::{Operation, Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::immediate::{Immediate, Kind as Announced};
use crate::processes::WindowRequest;
use crate::round::RoundState;
use crate::slot::RemoteRegion;
use crate::window::{Claim, Kind, Landing, Outcome, Parked, Post};
use crate::world::RankState;

/// A put of bytes that its caller lends.
pub(super) struct ShortPut<'a> {
    pub(super) round: &'a Arc<RoundState>,
    pub(super) at: Transfer,
    pub(super) claim: Claim,
    pub(super) bytes: &'a [u8],
}

impl ShortPut<'_> {
    /// Posts the put to the device at once.
    #[inline]
    pub(super) fn post_now(&mut self) -> Post {
        let Transfer { target, remote, .. } = self.at;
        let RoundState { lane, number, .. } = &**self.round;
        let origin = self.round.world.rank(self.round.rank);
        origin.trace_send(&mut self.at, Verb::Put);
        let immediate = Immediate::new(Announced::Data, *lane, *number).to_bits();
        let request = Request::WriteWithImmediate { remote, immediate };
        posted(origin, origin.endpoint.post_inline(target, request, self.bytes))
    }

    pub(super) fn origin(&self) -> &RankState {
        self.round.world.rank(self.round.rank)
    }

    /// Returns an operation that owns a copy of the bytes.
    pub(super) fn to_issued(&self, windowed: bool) -> Issued {
        let memory = Memory::Inline(SmallVec::from_slice(self.bytes));
        Issued::new(self.round, self.at, self.claim, windowed, Verb::Put, memory, None)
    }
}

/// Returns the outcome of requests that are posted as one.
#[inline]
pub(super) fn posted(origin: &RankState, result: Result<(), PostError>) -> Post {
    match result.map_err(|error| error.reason) {
        Ok(()) => Post::All,
        Err(DeviceError::QueueFull { .. }) => Post::Nothing,
        Err(reason) => {
            origin.fail_soon(Error::Device(reason));
            Post::All
        }
    }
}

impl Landing for ShortPut<'_> {
    #[inline]
    fn post(&mut self) -> Post {
        self.post_now()
    }

    fn park(self) -> Box<dyn Parked> {
        self.to_issued(true).park()
    }
}

/// The value of `last` without a rank.
pub(super) const NO_RANK: u32 = u32::MAX;
/// The value of `batch` without a batch.
pub(super) const NO_BATCH: usize = usize::MAX;

impl OpenRound {
    /// Adds a put that follows another one to the same rank to a batch. Returns `false`, without
    /// any effect, if it has to be posted by itself.
    pub(super) fn add_to_batch<T>(&self, bytes: &[u8], len: u64, to: &RemoteRegion<'_, T>) -> bool {
        let RemoteRegion { slot, rank: target, index, .. } = *to;
        let origin = self.state.world.rank(self.state.rank);
        let fits = bytes.len() <= INLINE_BYTES.min(origin.endpoint.max_transfer);
        let follows = self.epoch.load(Ordering::Relaxed) == origin.batches.epoch();
        // Operations to be retried slow their issuer down, which batched puts would not.
        let is_here = self.state.world.remote_processes(target).is_none();
        if !fits || !follows || !is_here || origin.has_failed() || origin.has_retries() {
            return false;
        }
        let Some(batch) = self.batch() else {
            return false;
        };
        let run = self.state.world.run;
        let Ok((remote, windowed)) = slot.remote(run, target, index, len) else {
            return false;
        };
        let called_ns = Cell::new(origin.trace_clock());
        let (slot, end) = (slot.number, index + len);
        let put = |bytes| BatchedPut { slot, index, end, remote, called_ns, bytes };
        origin.batches.add(batch, target, windowed, bytes, put);
        true
    }

    #[inline(never)]
    pub(super) fn put_copy_alone<T>(
        &self,
        bytes: &[u8],
        len: u64,
        to: &RemoteRegion<'_, T>,
    ) -> Operation<()> {
        if bytes.len() > self.longest_copied() {
            let (what, value) = ("number of bytes to copy into a put", bytes.len() as u64);
            return self.refuse(Error::Limit { what, value, limit: self.longest_copied() as u64 });
        }
        match self.locate(to, len, Kind::Write) {
            Ok((at, claim, windowed)) => {
                self.after_short_put((), self.short_put(bytes, at, claim, windowed))
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Posts or parks a short put, or returns it to be retried.
    pub(super) fn short_put(
        &self,
        bytes: &[u8],
        at: Transfer,
        claim: Claim,
        windowed: bool,
    ) -> Result<Option<Issued>, Error> {
        let round = &self.state;
        let world = &round.world;
        let mut put = ShortPut { round, at, claim, bytes };
        if let Some(error) = put.origin().failure() {
            return Err(error);
        }
        self.flush_batch(at.target.0);
        if !windowed {
            let post = put.post_now();
            world.notify(at.target);
            return Ok((post != Post::All).then(|| put.to_issued(false)));
        }
        let request = WindowRequest { target: at.target, lane: round.lane, round: round.number };
        match world.land(request, claim, true, put) {
            Outcome::Posted(_) => {
                world.notify(at.target);
                Ok(None)
            }
            Outcome::Parked => Ok(None),
            Outcome::Retry(put) => Ok(Some(put.to_issued(true))),
            Outcome::Refused(_) => Err(refusal(&claim, round, at.target)),
        }
    }

    /// Returns the operation of a short put, with the guard of its issuer once it is posted or
    /// parked.
    pub(super) fn after_short_put<G: Send + 'static>(
        &self,
        guard: G,
        left: Result<Option<Issued>, Error>,
    ) -> Operation<G> {
        match left {
            Ok(None) => Operation::returned(guard),
            Ok(Some(mut issued)) => {
                let (operation, completer) = Operation::under_way(&self.state);
                issued.set_done(when_done(Registered::unused(guard), None, completer));
                self.state.world.rank(self.state.rank).push_retry(issued);
                operation
            }
            Err(error) => Operation::failed(error),
        }
    }

    /// Posts the batch before an operation that is posted by itself, to `target` if that is a short
    /// put.
    #[inline]
    pub(super) fn flush_batch(&self, target: u32) {
        let batches = &self.state.state().batches;
        self.last.store(target, Ordering::Relaxed);
        self.epoch.store(batches.epoch(), Ordering::Relaxed);
        let batch = self.batch.load(Ordering::Relaxed);
        if batch != NO_BATCH && batches.is_filled() {
            batches.post(batch);
        }
    }

    /// Returns the batch of this handle, if it has one or one is free.
    #[inline]
    fn batch(&self) -> Option<usize> {
        match self.batch.load(Ordering::Relaxed) {
            NO_BATCH => self.acquire_batch(),
            batch => Some(batch),
        }
    }

    #[cold]
    fn acquire_batch(&self) -> Option<usize> {
        let batches = &self.state.world.rank(self.state.rank).batches;
        let own = batches.acquire(&self.state)?;
        let set =
            |own| self.batch.compare_exchange(NO_BATCH, own, Ordering::Relaxed, Ordering::Relaxed);
        Some(set(own).map_or_else(
            |other| {
                batches.release(own);
                other
            },
            |_| own,
        ))
    }
}
