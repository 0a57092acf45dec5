//! Links: the transport of messages between queue pairs of one process.
//!
//! The requester's thread calls the responder, which copies from the memory of one queue pair to
//! that of the other. From another process the same [`Message`] comes by a rail and is carried
//! out by the same responder, and the same [`AttemptResult`] becomes the response (see `port`).
//! Faults, and the time that messages take, are drawn here alone: the responder recognises
//! retries and duplicates by their sequence numbers, as on a wire.

mod fault;
mod priced;

pub(crate) use fault::Fate;
pub use fault::FaultPlan;
pub(crate) use priced::PricedLink;

use crate::{
    CompletionStatus, LinkModel, Operation, QueuePairNumber,
    deferred::Deferred,
    gate::GateHeld,
    queue_pair::{LocalBuffer, QueuePairCore},
    timers::Timers,
};

/// A request as the responder gets it.
pub(crate) struct Message<'a> {
    pub(crate) source: QueuePairNumber,
    pub(crate) psn: u32,
    pub(crate) operation: &'a Operation,
    pub(crate) solicited: bool,
    /// By reference: a copy would have to wait until the stores of its fields are done.
    pub(crate) local: &'a LocalBuffer<'a>,
}

/// Result of one attempt at a message: the value that an atomic found, otherwise 0.
pub(crate) type AttemptResult = Result<u64, AttemptError>;

/// Reason for which an attempt failed, or is not known to have succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptError {
    /// No receive is posted. The next attempt is due after `wait_ns`, or when a receive is posted.
    ReceiverNotReady { wait_ns: u64 },
    /// The request has failed with this status and is not retried.
    Refused(CompletionStatus),
    /// No response has arrived.
    NoResponse,
    /// The link delays the message until this time.
    Delayed { until_ns: u64 },
    /// The request was sent to another process, and is under way.
    UnderWay,
    /// The request cannot be sent to another process before others have ended.
    Busy,
}

/// Number and delay of one attempt, for links with faults.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) number: u32,
    /// `true` once the delay of this attempt is over.
    pub(crate) was_delayed: bool,
    pub(crate) timers: &'a Timers,
}

/// The link of a device.
pub(crate) struct Link {
    /// Behaviour beyond that of a link without faults or price.
    simulated: Option<Simulated>,
}

/// Behaviour of a link that is simulated.
enum Simulated {
    Faults(FaultPlan),
    Price(Box<PricedLink>),
}

impl Link {
    pub(crate) fn new(fault: Option<FaultPlan>, model: Option<LinkModel>, phantom: bool) -> Self {
        let priced = |model| Simulated::Price(Box::new(PricedLink::new(model, phantom)));
        let price = model.map(priced);
        Self { simulated: price.or(fault.map(Simulated::Faults)) }
    }

    /// Returns the link's messages under way, if they take time.
    pub(crate) fn priced(&self) -> Option<&PricedLink> {
        match &self.simulated {
            Some(Simulated::Price(priced)) => Some(priced),
            _ => None,
        }
    }

    /// Returns `true` if messages may have faults.
    #[inline]
    pub(crate) fn has_faults(&self) -> bool {
        matches!(self.simulated, Some(Simulated::Faults(_)))
    }

    /// Returns the faults of an attempt at the message of a queue pair with this sequence number.
    #[inline]
    pub(crate) fn fate(&self, source: QueuePairNumber, psn: u32, attempt: u32) -> Fate {
        match &self.simulated {
            Some(Simulated::Faults(plan)) => plan.fate(source, psn, attempt),
            _ => Fate::default(),
        }
    }

    /// Transmits `message` to `peer`, and returns the response.
    #[inline]
    pub(crate) fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        attempt: Attempt<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        match &self.simulated {
            None => peer.respond(message, held, deferred),
            Some(simulated) => simulated.transmit(peer, message, attempt, held, deferred),
        }
    }
}

impl Simulated {
    #[cold]
    fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        attempt: Attempt<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        match self {
            Self::Faults(plan) => plan.transmit(peer, message, attempt, held, deferred),
            Self::Price(priced) => priced.transmit(peer, message, held, deferred),
        }
    }
}
