//! How a message gets from one queue pair to another and its answer back.
//!
//! The link runs inside one process: the requester's thread calls the responder, which copies
//! straight from the one's memory to the other's. From another process the same [`Message`] comes
//! over a wire, is answered by the same responder, and the same [`AttemptResult`] goes back (see `wire`).
//! What goes wrong on the way is the link's business alone: retries and
//! duplicates are told from new messages by their sequence numbers, as on a wire.

mod fault;

pub use fault::FaultPlan;

use crate::{
    CompletionStatus, Operation, QueuePairNumber,
    deferred::Deferred,
    gate::GateHeld,
    queue_pair::{LocalBuffer, QueuePairCore},
    timers::Timers,
};

/// One request on its way.
pub(crate) struct Message<'a> {
    pub(crate) source: QueuePairNumber,
    pub(crate) psn: u32,
    pub(crate) operation: &'a Operation,
    pub(crate) solicited: bool,
    /// By reference: to copy it would mean to wait for it to be written.
    pub(crate) local: &'a LocalBuffer<'a>,
}

/// What comes back of a message that was carried out: what an atomic found, else 0.
pub(crate) type AttemptResult = Result<u64, AttemptError>;

/// Why a message was not carried out, or not known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptError {
    /// No receive is posted. Ask again after `wait_ns`, or when one is.
    ReceiverNotReady { wait_ns: u64 },
    /// Never.
    Refused(CompletionStatus),
    /// Nothing came back.
    NoResponse,
    /// The link keeps the message until then.
    Delayed { until_ns: u64 },
}

/// The circumstances of one attempt, for links that are not perfect.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) number: u32,
    /// The link has kept this attempt for as long as it wanted.
    pub(crate) was_delayed: bool,
    pub(crate) timers: &'a Timers,
}

/// The link of a device.
pub(crate) struct Link {
    fault: Option<FaultPlan>,
}

impl Link {
    pub(crate) fn new(fault: Option<FaultPlan>) -> Self {
        Self { fault }
    }

    /// Brings `message` to `peer`, and its answer back.
    #[inline]
    pub(crate) fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        attempt: Attempt<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        match &self.fault {
            None => peer.respond(message, held, deferred),
            Some(plan) => plan.transmit(peer, message, attempt, held, deferred),
        }
    }
}
