//! Faults of a link, the same for the same seed.
//!
//! The faults of a message depend only on the seed, its queue pair, its sequence number and its
//! attempt: not on threads, nor on other queue pairs. Order within a queue pair is kept, since a
//! delayed message blocks those behind it.
//!
//! Messages to another process meet the same faults at the requesting end, before they are given to the
//! rail and as their responses come in (`queue_pair::remote`). Several are under way there, so one
//! may be sent again, by the same attempt, because one before it was lost.

use crate::random::Random;
use crate::{
    QueuePairNumber,
    deferred::Deferred,
    gate::GateHeld,
    link::{Attempt, AttemptError, AttemptResult, Message},
    queue_pair::QueuePairCore,
};

/// Chances of the faults of a link, per million messages. Each attempt draws anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Chance that the message is lost.
    pub drop_request_ppm: u32,
    /// Chance that the message arrives and its response is lost.
    pub drop_response_ppm: u32,
    /// Chance that the message arrives twice.
    pub duplicate_ppm: u32,
    /// Chance that the message is delayed by 1 to `max_delay_ns`.
    pub delay_ppm: u32,
    /// Longest delay.
    pub max_delay_ns: u64,
    /// Chance that the message is delayed until the time next moves, so that other queue pairs
    /// overtake it.
    pub reorder_ppm: u32,
}

const MILLION: u64 = 1_000_000;

/// Faults of one attempt at a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Delay of the message; 0 for none.
    pub(crate) delay_ns: u64,
    pub(crate) is_lost: bool,
    /// `true` if the message arrives and its response is lost, unless that refuses the message.
    pub(crate) is_response_lost: bool,
    pub(crate) arrives_twice: bool,
}

impl FaultPlan {
    /// Returns the faults of an attempt at the message of a queue pair with this sequence number.
    #[cold]
    pub(super) fn fate(&self, source: QueuePairNumber, psn: u32, attempt: u32) -> Fate {
        let mut random = AttemptRandom::new(self.seed, source, psn, attempt);
        let delayed = random.occurs(self.delay_ppm);
        let long_ns = 1 + random.0.next_u64() % self.max_delay_ns.max(1);
        let overtaken = random.occurs(self.reorder_ppm);
        Fate {
            delay_ns: if delayed { long_ns } else { u64::from(overtaken) },
            is_lost: random.occurs(self.drop_request_ppm),
            is_response_lost: random.occurs(self.drop_response_ppm),
            arrives_twice: random.occurs(self.duplicate_ppm),
        }
    }

    #[cold]
    pub(super) fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        attempt: Attempt<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        let fate = self.fate(message.source, message.psn, attempt.number);
        if fate.delay_ns > 0 && !attempt.was_delayed {
            let until_ns = attempt.timers.now_ns().saturating_add(fate.delay_ns);
            return Err(AttemptError::Delayed { until_ns });
        }
        if fate.is_lost {
            return Err(AttemptError::NoResponse);
        }
        let first = peer.respond(message, held, deferred);
        if first.is_ok() && fate.is_response_lost {
            return Err(AttemptError::NoResponse);
        }
        if first.is_ok() && fate.arrives_twice {
            return peer.respond(message, held, deferred);
        }
        first
    }
}

/// Random numbers of one attempt.
struct AttemptRandom(Random);

impl AttemptRandom {
    fn new(seed: u64, source: QueuePairNumber, psn: u32, attempt: u32) -> Self {
        let place = u64::from(source.0) << 32 | u64::from(psn);
        let mixed = Random::new(seed ^ place.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
        Self(Random::new(mixed ^ u64::from(attempt)))
    }

    fn occurs(&mut self, chance_ppm: u32) -> bool {
        self.0.next_u64() % MILLION < u64::from(chance_ppm)
    }
}
