//! Gets of few bytes from a rank of this process, and atomics there, whose window is open.
//!
//! The thread that posts one carries it out under the lock of the windows, like a short put, and has
//! the result at once: nothing is allocated, and no completion, waker or pending operation is
//! involved. One that comes before its window takes the way of all others, which parks it; it has
//! then been passed to the windows twice, so the way is not taken while these note operations.

use std::sync::Arc;

use ibverbs_sim::{Operation as Request, Payload, ScatterGather};
use talpf_runtime::ByteLayout;

use super::chain::posted;
use super::future::awaited;
use super::guards::Destination;
use super::issued::Issued;
use super::open_round::OpenRound;
use super::payloads::Memory;
use super::registration::Registered;
use super::single_request::with_notice;
use super::{Operation, Route, Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::immediate::{Immediate, Kind as Announced};
use crate::sender::RoundState;
use crate::window::{Landing, Outcome, Parked, Post};

/// A get or an atomic of one piece.
struct ShortGet<'a> {
    round: &'a Arc<RoundState>,
    at: &'a Transfer,
    verb: Verb,
    entry: ScatterGather,
}

impl OpenRound {
    /// Returns `true` if an operation that brings data here may be tried by
    /// [`OpenRound::bring_at_once`].
    #[inline]
    pub(super) fn is_short_get(&self, layout: &ByteLayout, at: &Transfer) -> bool {
        let origin = &self.state.sender;
        at.bytes <= INLINE_BYTES.min(origin.own.endpoint.max_transfer) as u64
            && at.bytes > 0
            && at.is_consecutive()
            && layout.is_contiguous()
            && !origin.checks_conflicts
            && !origin.tracer.is_traced()
            && origin.peers.shares_memory_with(at.target)
    }

    /// Posts an operation on the memory `entry` of `guard`, which usually returns its guard at once.
    ///
    /// **Errors**: the guard of an operation that no open window lets in, or that finds no room.
    #[inline]
    pub(super) fn bring_at_once<G: Destination>(
        &self,
        guard: Registered<G>,
        entry: ScatterGather,
        at: &Transfer,
        route: Route,
        verb: Verb,
    ) -> Result<Operation<G>, Registered<G>> {
        let (round, origin) = (&self.state, &self.state.sender);
        if origin.has_failed() {
            return Err(guard);
        }
        let get = ShortGet { round, at, verb, entry };
        let is_posted = match route {
            Route::Direct => get.post() == Post::All,
            Route::Window(claim) => {
                let request = round.request(at.target);
                let outcome = origin.peers.land(request, claim, true, &get);
                matches!(outcome, Outcome::Posted(_))
            }
        };
        if !is_posted {
            return Err(guard);
        }
        origin.peers.notify(at.target);
        let operation = if origin.own.endpoint.is_drained(at.target) {
            Operation::returned(guard.into_guard())
        } else {
            self.await_posted(guard, *at, verb)
        };
        round.progress_if_rung();
        Ok(operation)
    }

    /// Returns the future of an operation that was posted while another thread works on the queue
    /// pair, or a request before it waits.
    #[cold]
    fn await_posted<G: Send + 'static>(
        &self,
        guard: Registered<G>,
        at: Transfer,
        verb: Verb,
    ) -> Operation<G> {
        let round = &self.state;
        let (operation, done) = awaited(round, at.target, verb, None, guard);
        Issued::new(round, at, Route::Direct, verb, Memory::Posted, Some(done)).issue();
        operation
    }
}

impl ShortGet<'_> {
    #[inline]
    fn post(&self) -> Post {
        let ShortGet { round, at, verb, entry } = self;
        let (target, remote) = (at.target, at.remote);
        let immediate = Immediate::new(Announced::Data, round.lane, round.number).to_bits();
        let notice = Request::WriteWithImmediate { remote, immediate };
        let request = verb.bringing(remote).unwrap_or(notice);
        let payload = Payload::Gather(std::slice::from_ref(entry));
        let mut requests = with_notice(request, payload, notice);
        posted(&round.sender, round.sender.own.endpoint.post_all(target, &mut requests))
    }
}

/// By reference, since the windows move what they let in.
impl Landing for &ShortGet<'_> {
    #[inline]
    fn post(&mut self) -> Post {
        ShortGet::post(self)
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn park(self) -> Box<dyn Parked> {
        unreachable!("a patient operation is returned")
    }
}
