//! Faults of a link, the same for the same seed.
//!
//! The faults of a message depend only on the seed, its queue pair, its sequence number and its
//! attempt: not on threads, nor on other queue pairs. Order within a queue pair is kept, since a
//! delayed message blocks those behind it.

use crate::random::Random;
use crate::{
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

impl FaultPlan {
    #[cold]
    pub(super) fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        attempt: Attempt<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        let mut random = AttemptRandom::new(self.seed, message, attempt.number);
        let delayed = random.occurs(self.delay_ppm);
        let long_ns = 1 + random.0.next_u64() % self.max_delay_ns.max(1);
        let overtaken = random.occurs(self.reorder_ppm);
        if (delayed || overtaken) && !attempt.was_delayed {
            let delay_ns = if delayed { long_ns } else { 1 };
            let until_ns = attempt.timers.now_ns().saturating_add(delay_ns);
            return Err(AttemptError::Delayed { until_ns });
        }
        if random.occurs(self.drop_request_ppm) {
            return Err(AttemptError::NoResponse);
        }
        let first = peer.respond(message, held, deferred);
        let arrived = first.is_ok();
        if arrived && random.occurs(self.drop_response_ppm) {
            return Err(AttemptError::NoResponse);
        }
        if arrived && random.occurs(self.duplicate_ppm) {
            return peer.respond(message, held, deferred);
        }
        first
    }
}

/// Random numbers of one attempt.
struct AttemptRandom(Random);

impl AttemptRandom {
    fn new(seed: u64, message: &Message<'_>, attempt: u32) -> Self {
        let place = u64::from(message.source.0) << 32 | u64::from(message.psn);
        let mixed = Random::new(seed ^ place.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
        Self(Random::new(mixed ^ u64::from(attempt)))
    }

    fn occurs(&mut self, chance_ppm: u32) -> bool {
        self.0.next_u64() % MILLION < u64::from(chance_ppm)
    }
}
