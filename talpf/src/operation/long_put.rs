//! Long puts to a rank of this process that are one request. The thread that posts one carries it
//! out, so that usually its guard returns at once, without a completion.
//!
//! A put that comes before its window is open would be copied by the target, which opens it, from
//! the cache of the issuer; that delays the target, and its next window as well. So the issuer
//! polls the window for a part of the time that the copy takes, if its worker has nothing else to
//! do, before the put is parked.

use std::sync::Arc;

use ibverbs_sim::{Operation as Request, Payload, ScatterGather};

use super::guards::Entries;
use super::issued::{Issued, Memory, refusal};
use super::open_round::{OpenRound, when_done};
use super::registration::Registered;
use super::short_put::posted;
use super::{Operation, Transfer, Verb};
use crate::immediate::{Immediate, Kind as Announced};
use crate::processes::WindowRequest;
use crate::round::RoundState;
use crate::window::{Claim, Landing, Outcome, Parked, Post};

/// Bytes of a put for each poll of its window. A poll takes about a tenth of a microsecond, and so
/// do that many bytes from another cache.
const BYTES_A_POLL: u64 = 4096;
/// Largest number of polls.
const MAX_POLLS: u64 = 64;

/// A long put with its guard.
struct LongPut<'a, G> {
    round: &'a Arc<RoundState>,
    at: Transfer,
    claim: Claim,
    windowed: bool,
    /// `true` while the window table returns the put instead of parking it.
    patient: bool,
    guard: Registered<G>,
    memory: Entries,
    /// Receives the operation of a put that is parked.
    parked: Option<&'a mut Option<Operation<G>>>,
}

impl OpenRound {
    /// Returns `true` if a put is one request to a rank of this process.
    pub(super) fn is_one_request(&self, at: &Transfer, memory: &[ScatterGather]) -> bool {
        let endpoint = &self.state.state().endpoint;
        memory.len() <= endpoint.max_sge
            && at.bytes <= endpoint.max_transfer as u64
            && self.state.world.remote_processes(at.target).is_none()
    }

    /// Issues a put of `memory`, which is one request.
    pub(super) fn put_at_once<G: Send + 'static>(
        &self,
        guard: Registered<G>,
        at: Transfer,
        claim: Claim,
        windowed: bool,
        memory: Entries,
    ) -> Operation<G> {
        let (round, origin) = (&self.state, self.state.state());
        if let Some(error) = origin.failure() {
            return Operation::failed(error);
        }
        let (world, target) = (&round.world, at.target);
        let mut parked = None;
        // A put that is passed to the window table twice would be noted twice.
        let patient = at.bytes >= BYTES_A_POLL && !world.config.check_conflicts;
        let to = Some(&mut parked);
        let put = LongPut { round, at, claim, windowed, patient, guard, memory, parked: to };
        let operation = match put.land() {
            Outcome::Posted(put) => {
                world.notify(target);
                Some(put.returned())
            }
            Outcome::Retry(put) => {
                let (issued, operation) = put.into_issued(Memory::Entries);
                origin.push_retry(issued);
                Some(operation)
            }
            Outcome::Parked | Outcome::Refused(_) => None,
        };
        origin.progress_if_rung(world);
        operation.or(parked).unwrap_or_else(|| Operation::failed(refusal(&claim, round, target)))
    }
}

impl<G: Send + 'static> LongPut<'_, G> {
    /// Passes the put to the windows of its target, or posts it if the slot has none.
    fn land(mut self) -> Outcome<Self> {
        let round = self.round;
        let RoundState { world, lane, number, .. } = &**round;
        if self.windowed {
            let request = WindowRequest { target: self.at.target, lane: *lane, round: *number };
            let windows = &world.rank(request.target).windows;
            let opened = windows.opened();
            return match world.land(request, self.claim, false, self) {
                Outcome::Retry(mut put) if put.patient => {
                    put.patient = false;
                    let polls = (put.at.bytes / BYTES_A_POLL).min(MAX_POLLS) as u32;
                    let opens = || (windows.opened() != opened).then_some(());
                    round.state().poll_at_most(polls, world, opens);
                    world.land(request, put.claim, false, put)
                }
                outcome => outcome,
            };
        }
        match self.post() {
            Post::All => Outcome::Posted(self),
            _ => Outcome::Retry(self),
        }
    }

    /// Returns the operation of a posted put, with its guard if the device has carried it out.
    fn returned(self) -> Operation<G> {
        let origin = self.round.state();
        if origin.endpoint.is_drained(self.at.target) {
            return Operation::returned(self.guard.into_guard());
        }
        // Another thread works on the queue pair, or a request before this one waits.
        let windowed = false;
        let (issued, operation) = LongPut { windowed, ..self }.into_issued(|_| Memory::Posted);
        if let Some(issued) = issued.attempt() {
            origin.push_retry(issued);
        }
        operation
    }

    /// Returns the put as an issued operation with `memory`, and its future.
    fn into_issued(self, memory: impl FnOnce(Entries) -> Memory) -> (Issued, Operation<G>) {
        let LongPut { round, at, claim, windowed, guard, .. } = self;
        let (operation, completer) = Operation::under_way(round);
        let done = Some(when_done(guard, None, completer));
        let memory = memory(self.memory);
        (Issued::new(round, at, claim, windowed, Verb::Put, memory, done), operation)
    }
}

impl<G: Send + 'static> Landing for LongPut<'_, G> {
    fn post(&mut self) -> Post {
        let origin = self.round.state();
        let RoundState { lane, number, .. } = &**self.round;
        origin.trace_send(&mut self.at, Verb::Put);
        origin.trace_outstanding();
        let immediate = Immediate::new(Announced::Data, *lane, *number).to_bits();
        let request = Request::WriteWithImmediate { remote: self.at.remote, immediate };
        let payload = Payload::Gather(&self.memory);
        posted(origin, origin.endpoint.post_silent(self.at.target, request, payload))
    }

    fn is_patient(&self) -> bool {
        self.patient
    }

    fn park(mut self) -> Box<dyn Parked> {
        let parked = self.parked.take();
        let (issued, operation) = self.into_issued(Memory::Entries);
        if let Some(parked) = parked {
            *parked = Some(operation);
        }
        issued.park()
    }
}
