//! Short puts, whose bytes are copied from the caller's memory, with nothing allocated unless they
//! are parked. The first is posted by itself, those that follow are batched.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ibverbs_sim::{Operation as Request, RemoteAddress};
use smallvec::SmallVec;

use super::batches::{BatchedPut, NO_BATCH, NO_RANK};
use super::chain::posted;
use super::issued::{Issued, refusal};
use super::open_round::OpenRound;
use super::patience::MayBePatient;
use super::payloads::Memory;
use super::registration::Registered;
use super::{Operation, Route, Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::immediate::{Immediate, Kind as Announced};
use crate::numbers::TicketNumber;
use crate::sender::RoundState;
use crate::slot::{Located, RemoteRegion};
use crate::window::{Kind, Landing, Outcome, Parked, Post};

/// A put of bytes that its caller lends.
pub(super) struct ShortPut<'a> {
    pub(super) round: &'a Arc<RoundState>,
    pub(super) at: Transfer,
    pub(super) route: Route,
    pub(super) bytes: &'a [u8],
    is_patient: bool,
}

impl<'a> ShortPut<'a> {
    #[inline]
    pub(super) fn new(
        round: &'a Arc<RoundState>,
        at: Transfer,
        route: Route,
        bytes: &'a [u8],
    ) -> Self {
        ShortPut { round, at, route, bytes, is_patient: false }
    }

    /// Posts the put to the device at once.
    #[inline]
    pub(super) fn post_now(&mut self) -> Post {
        let RoundState { lane, number, .. } = &**self.round;
        self.post_with(Immediate::new(Announced::Data, *lane, *number).to_bits())
    }

    #[inline]
    fn post_with(&mut self, immediate: u32) -> Post {
        let Transfer { target, remote, .. } = self.at;
        let origin = &self.round.sender;
        origin.tracer.send(&mut self.at, Verb::Put, Some(self.round.lane));
        let request = Request::WriteWithImmediate { remote, immediate };
        posted(origin, origin.own.endpoint.post_inline(target, request, self.bytes))
    }

    /// Returns an operation that owns a copy of the bytes.
    pub(super) fn to_issued(&self) -> Issued {
        let memory = Memory::Inline(SmallVec::from_slice(self.bytes));
        Issued::new(self.round, self.at, self.route, Verb::Put, memory, None)
    }
}

impl Landing for ShortPut<'_> {
    #[inline]
    fn post(&mut self) -> Post {
        self.post_now()
    }

    fn post_by_ticket(&mut self, ticket: TicketNumber) -> Post {
        self.post_with(Immediate::by_ticket(ticket))
    }

    fn eager_bytes(&self) -> Option<(RemoteAddress, &[u8])> {
        Some((self.at.remote, self.bytes))
    }

    #[inline]
    fn is_patient(&self) -> bool {
        self.is_patient
    }

    fn trace_eager_send(&mut self) {
        self.round.sender.tracer.send(&mut self.at, Verb::Put, Some(self.round.lane));
    }

    fn park(self) -> Box<dyn Parked> {
        self.to_issued().park()
    }
}

impl MayBePatient for ShortPut<'_> {
    #[inline]
    fn set_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
    }
}

impl OpenRound {
    /// Adds a put that follows another one to the same rank to a batch. Returns `false`, without any
    /// effect, if it has to be posted by itself.
    pub(super) fn add_to_batch<T>(&self, bytes: &[u8], len: u64, to: &RemoteRegion<'_, T>) -> bool {
        let RemoteRegion { slot, rank: target, part, .. } = *to;
        let origin = &self.state.sender;
        let fits = bytes.len() <= origin.batches.longest;
        let follows = self.epoch.load(Ordering::Relaxed) == origin.batches.epoch();
        // Operations to be retried slow their issuer down, which batched puts would not.
        if !fits || !follows || origin.has_failed() || origin.has_retries() {
            return false;
        }
        let Some(batch) = self.batch() else {
            return false;
        };
        let located = match slot.find(origin.run, target, part, len) {
            Some(located) => located,
            None => match slot.locate(origin.run, target, part, len) {
                Ok(located) if located.rows == 1 => located,
                _ => return false,
            },
        };
        let Located { remote, index, end, windowed, .. } = located;
        if !windowed && self.is_to_be_noted_by(target) {
            return false;
        }
        let (slot, called_ns) = (slot.number, Cell::new(origin.tracer.clock()));
        let put = |bytes| BatchedPut { slot, index, end, remote, called_ns, bytes };
        let route = if windowed { Route::Window(()) } else { Route::Direct };
        if origin.batches.add(batch, target, route, bytes, put) {
            origin.own.wake_poller();
        }
        true
    }

    #[inline(never)]
    pub(super) fn put_copy_alone<T>(
        &self,
        bytes: &[u8],
        len: u64,
        to: &RemoteRegion<'_, T>,
    ) -> Operation<()> {
        let longest = INLINE_BYTES.min(self.state.sender.own.endpoint.max_transfer);
        if bytes.len() > longest {
            let (what, value) = ("number of bytes to copy into a put", bytes.len() as u64);
            return self.refuse(Error::Limit { what, value, limit: longest as u64 });
        }
        match self.locate(to, len, Kind::Write) {
            Ok((at, route)) if at.is_consecutive() => {
                self.after_short_put((), self.short_put(bytes, at, route))
            }
            Ok((at, route)) => {
                self.flush_batch(NO_RANK);
                let (memory, verb) = (Memory::Inline(bytes.into()), Verb::Put);
                let put = Issued::new(&self.state, at, route, verb, memory, None);
                self.after_short_put((), Ok(put.attempt()))
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Posts or parks a short put, or returns it to be retried.
    pub(super) fn short_put(
        &self,
        bytes: &[u8],
        at: Transfer,
        route: Route,
    ) -> Result<Option<Issued>, Error> {
        let round = &self.state;
        let (origin, peers) = (&round.sender, &round.sender.peers);
        if let Some(error) = origin.error() {
            return Err(error);
        }
        at.prefetch(peers);
        let mut put = ShortPut::new(round, at, route, bytes);
        self.flush_batch(at.target.0);
        let Route::Window(claim) = route else {
            let post = put.post_now();
            peers.notify(at.target);
            return Ok((post != Post::All).then(|| put.to_issued()));
        };
        match self.land(at.target, claim, at.bytes, put) {
            Outcome::Posted(_) => {
                peers.notify(at.target);
                Ok(None)
            }
            Outcome::Parked => Ok(None),
            Outcome::Retry(put) => Ok(Some(put.to_issued())),
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
                issued.set_done(completer.into_done(Registered::unused(guard), None));
                self.state.sender.push_retry(issued);
                operation
            }
            Err(error) => Operation::failed(error),
        }
    }

    /// Posts the batch before an operation that is posted by itself, to `target` if that is a short
    /// put.
    #[inline]
    pub(super) fn flush_batch(&self, target: u32) {
        let batches = &self.state.sender.batches;
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
        let batches = &self.state.sender.batches;
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
