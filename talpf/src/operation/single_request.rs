//! Operations on memory of a rank of this process that are one request. The thread that posts one
//! carries it out, so that usually its guard returns at once, without a completion.

use std::sync::Arc;

use ibverbs_sim::{Operation as Request, Payload, ScatterGather, SendFlags, SendWorkRequest};

use super::chain::posted;
use super::future::awaited;
use super::guards::Entries;
use super::issued::{Issued, refusal};
use super::open_round::OpenRound;
use super::patience::MayBePatient;
use super::payloads::Memory;
use super::registration::Registered;
use super::{Operation, Route, Transfer, Verb};
use crate::endpoint::silent;
use crate::immediate::{Immediate, Kind as Announced};
use crate::sender::RoundState;
use crate::window::{Landing, Outcome, Parked, Post};

/// An operation of one request, with its guard.
struct SingleRequest<'a, G> {
    round: &'a Arc<RoundState>,
    at: Transfer,
    route: Route,
    verb: Verb,
    /// Number of the message of a traced get.
    message: Option<u64>,
    is_patient: bool,
    guard: Registered<G>,
    memory: Entries,
    /// Receives the future of an operation that is parked.
    parked: Option<&'a mut Option<Operation<G>>>,
}

impl OpenRound {
    /// Returns `true` if an operation is one request to a rank of this process.
    pub(super) fn is_one_request(&self, at: &Transfer, memory: &[ScatterGather]) -> bool {
        let endpoint = &self.state.sender.own.endpoint;
        at.is_consecutive()
            && memory.len() <= endpoint.max_sge
            && at.bytes <= endpoint.max_transfer as u64
            && self.state.sender.peers.shares_memory_with(at.target)
    }

    /// Issues an operation on `memory` that is one request.
    pub(super) fn issue_at_once<G: Send + 'static>(
        &self,
        guard: Registered<G>,
        at: Transfer,
        route: Route,
        verb: Verb,
        memory: Entries,
    ) -> Operation<G> {
        let (round, origin) = (&self.state, &self.state.sender);
        if let Some(error) = origin.error() {
            return Operation::failed(error);
        }
        let target = at.target;
        let mut parked = None;
        let to = Some(&mut parked);
        let message = origin.tracer.begin_get(&at, verb);
        let is_patient = false;
        let mut request = SingleRequest {
            round,
            at,
            route,
            verb,
            message,
            is_patient,
            guard,
            memory,
            parked: to,
        };
        let outcome = match route {
            Route::Window(claim) => self.land(target, claim, at.bytes, request),
            Route::Direct if request.post() == Post::All => Outcome::Posted(request),
            Route::Direct => Outcome::Retry(request),
        };
        let operation = match outcome {
            Outcome::Posted(request) => {
                origin.peers.notify(target);
                Some(request.returned())
            }
            Outcome::Retry(request) => {
                let (issued, operation) = request.into_issued(Memory::Entries);
                origin.push_retry(issued);
                Some(operation)
            }
            Outcome::Parked | Outcome::Refused(_) => None,
        };
        round.progress_if_rung();
        match (operation.or(parked), route) {
            (Some(operation), _) => operation,
            (None, Route::Window(claim)) => Operation::failed(refusal(&claim, round, target)),
            (None, Route::Direct) => unreachable!("only windows park or refuse an operation"),
        }
    }
}

impl<G: Send + 'static> SingleRequest<'_, G> {
    /// Returns the future of a posted operation, with its guard if the device has carried it out.
    fn returned(self) -> Operation<G> {
        let SingleRequest { round, at, message, .. } = self;
        let origin = &round.sender;
        if origin.own.endpoint.is_drained(at.target) {
            if let Some(message) = message {
                origin.tracer.end_get(at.target, message, round.lane, round.number);
            }
            return Operation::returned(self.guard.into_guard());
        }
        // Another thread works on the queue pair, or a request before this one waits.
        let posted = SingleRequest { route: Route::Direct, ..self };
        let (issued, operation) = posted.into_issued(|_| Memory::Posted);
        issued.issue();
        operation
    }

    /// Returns the operation as an issued one with `memory`, and its future.
    fn into_issued(self, memory: impl FnOnce(Entries) -> Memory) -> (Issued, Operation<G>) {
        let SingleRequest { round, at, route, verb, message, guard, .. } = self;
        let (operation, done) = awaited(round, at.target, verb, message, guard);
        let memory = memory(self.memory);
        (Issued::new(round, at, route, verb, memory, Some(done)), operation)
    }
}

impl<G: Send + 'static> Landing for SingleRequest<'_, G> {
    fn post(&mut self) -> Post {
        let origin = &self.round.sender;
        let RoundState { lane, number, .. } = &**self.round;
        origin.tracer.send(&mut self.at, self.verb, Some(*lane));
        origin.tracer.outstanding(|| origin.outstanding());
        let immediate = Immediate::new(Announced::Data, *lane, *number).to_bits();
        let (endpoint, Transfer { target, remote, .. }) = (&origin.own.endpoint, self.at);
        let announced = Request::WriteWithImmediate { remote, immediate };
        let payload = Payload::Gather(&self.memory);
        let Some(request) = self.verb.bringing(remote) else {
            return posted(origin, endpoint.post_silent(target, announced, payload));
        };
        let mut requests = with_notice(request, payload, announced);
        posted(origin, endpoint.post_all(target, &mut requests))
    }

    fn is_patient(&self) -> bool {
        self.is_patient
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

impl<G: Send + 'static> MayBePatient for SingleRequest<'_, G> {
    fn set_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
    }
}

/// Returns a request that brings data here, and the empty one that announces to its target that it has
/// been carried out.
#[inline]
pub(super) fn with_notice(
    request: Request,
    payload: Payload<'_>,
    notice: Request,
) -> [SendWorkRequest<'_>; 2] {
    let notice = silent(notice, Payload::Gather(&[]));
    [silent(request, payload), SendWorkRequest { flags: SendFlags::FENCE, ..notice }]
}
