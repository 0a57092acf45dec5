//! Long puts to a rank of this process that are one request. The thread that posts one carries it
//! out, so that usually its guard returns at once, without a completion.
//!
//! A put that comes before its window is open would be copied by the target, which opens it, from
//! the cache of the issuer; that delays the target, and its next window as well. So the issuer
//! polls the window for a part of the time that the copy takes, if its worker has nothing else to
//! do, before the put is parked.

use std::sync::Arc;

use ibverbs_sim::{Operation as Request, Payload, ScatterGather};

use super::chain::posted;
use super::guards::Entries;
use super::issued::{Issued, refusal};
use super::open_round::OpenRound;
use super::payloads::Memory;
use super::registration::Registered;
use super::{Operation, Transfer, Verb};
use crate::immediate::{Immediate, Kind as Announced};
use crate::sender::RoundState;
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
    pub(super) fn is_one_request(
        &self,
        at: &Transfer,
        claim: &Claim,
        memory: &[ScatterGather],
    ) -> bool {
        let endpoint = &self.state.sender.own.endpoint;
        claim.is_consecutive()
            && memory.len() <= endpoint.max_sge
            && at.bytes <= endpoint.max_transfer as u64
            && self.state.sender.peers.local(at.target).is_some()
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
        let (round, origin) = (&self.state, &self.state.sender);
        if let Some(error) = origin.error() {
            return Operation::failed(error);
        }
        let target = at.target;
        let mut parked = None;
        // A put that is passed to the window table twice would be noted twice.
        let patient = at.bytes >= BYTES_A_POLL && !origin.checks_conflicts;
        let to = Some(&mut parked);
        let put = LongPut { round, at, claim, windowed, patient, guard, memory, parked: to };
        let operation = match put.land() {
            Outcome::Posted(put) => {
                origin.peers.notify(target);
                Some(put.returned())
            }
            Outcome::Retry(put) => {
                let (issued, operation) = put.into_issued(Memory::Entries);
                origin.push_retry(issued);
                Some(operation)
            }
            Outcome::Parked | Outcome::Refused(_) => None,
        };
        origin.own.progress_if_rung();
        operation.or(parked).unwrap_or_else(|| Operation::failed(refusal(&claim, round, target)))
    }
}

impl<G: Send + 'static> LongPut<'_, G> {
    /// Passes the put to the windows of its target, or posts it if the slot has none.
    fn land(mut self) -> Outcome<Self> {
        let round = self.round;
        let peers = &round.sender.peers;
        if self.windowed {
            let request = round.request(self.at.target);
            let opened = peers.opened(request.target);
            return match peers.land(request, self.claim, false, self) {
                Outcome::Retry(mut put) if put.patient => {
                    put.patient = false;
                    let polls = (put.at.bytes / BYTES_A_POLL).min(MAX_POLLS) as u32;
                    let opens = || (peers.opened(request.target) != opened).then_some(());
                    round.sender.own.poll_at_most(polls, opens);
                    peers.land(request, put.claim, false, put)
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
        let origin = &self.round.sender;
        if origin.own.endpoint.is_drained(self.at.target) {
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
        let done = Some(completer.into_done(guard, None));
        let memory = memory(self.memory);
        (Issued::new(round, at, claim, windowed, Verb::Put, memory, done), operation)
    }
}

impl<G: Send + 'static> Landing for LongPut<'_, G> {
    fn post(&mut self) -> Post {
        let origin = &self.round.sender;
        let RoundState { lane, number, .. } = &**self.round;
        origin.tracer.send(&mut self.at, Verb::Put);
        origin.tracer.outstanding(|| origin.outstanding());
        let immediate = Immediate::new(Announced::Data, *lane, *number).to_bits();
        let request = Request::WriteWithImmediate { remote: self.at.remote, immediate };
        let payload = Payload::Gather(&self.memory);
        posted(origin, origin.own.endpoint.post_silent(self.at.target, request, payload))
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
