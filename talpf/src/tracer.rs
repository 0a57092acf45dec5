//! The trace events of the communication of one rank.

use std::sync::atomic::{AtomicU64, Ordering};

use talpf_traces::{Event, ValueKind, WaitNs};

use crate::numbers::{LaneNumber, Rank, Round};
use crate::operation::{Done, Transfer, Verb};
use crate::round::RoundState;
use crate::world::RankState;

/// The numbers of messages, which match sends with arrivals: requests of one queue pair arrive in
/// order, so both sides count.
pub(crate) struct Tracer {
    traced: bool,
    /// Number of announced operations to every rank.
    sent: Box<[AtomicU64]>,
    /// Number of announced operations from every rank.
    arrived: Box<[AtomicU64]>,
    /// Number of gets from every rank.
    gets: Box<[AtomicU64]>,
}

impl Tracer {
    pub(crate) fn new(traced: bool, ranks: u32) -> Self {
        let peers = if traced { ranks } else { 0 };
        let counters = || (0..peers).map(|_| AtomicU64::new(0)).collect();
        Tracer { traced, sent: counters(), arrived: counters(), gets: counters() }
    }

    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.traced
    }
}

/// Returns the number of the message of an announced operation: even, those of gets are odd.
fn announced(number: u64) -> u64 {
    2 * number
}

fn brought(number: u64) -> u64 {
    2 * number + 1
}

impl RankState {
    /// Returns the time, for events that need it before they are recorded; 0 if not traced.
    #[inline]
    pub(crate) fn trace_clock(&self) -> u64 {
        if self.tracer.traced { self.group.clock().now_ns().max(1) } else { 0 }
    }

    /// Records that an operation is about to be posted, unless recorded before.
    #[inline]
    pub(crate) fn trace_send(&self, at: &mut Transfer, verb: Verb) {
        if self.tracer.traced {
            self.record_send(at, verb);
        }
    }

    #[cold]
    fn record_send(&self, at: &mut Transfer, verb: Verb) {
        let called_ns = std::mem::take(&mut at.called_ns);
        if called_ns == 0 {
            return;
        }
        let number = self.tracer.sent[at.target.index()].fetch_add(1, Ordering::Relaxed);
        let bytes = if verb == Verb::Put { at.bytes } else { 0 };
        self.group.trace(|now_ns| Event::Send {
            rank: self.rank.0,
            peer: at.target.0,
            message: announced(number),
            bytes,
            waited: WaitNs::between(called_ns, now_ns),
        });
    }

    /// Records the arrival of an announced operation.
    pub(crate) fn trace_arrival(&self, source: Rank, lane: LaneNumber, round: Round) {
        let number = self.tracer.arrived[source.index()].fetch_add(1, Ordering::Relaxed);
        self.record_receive(source, announced(number), lane, round);
    }

    fn record_receive(&self, source: Rank, message: u64, lane: LaneNumber, round: Round) {
        let (rank, peer, lane, round) = (self.rank.0, source.0, u32::from(lane.0), round.0);
        self.group.trace(|_| Event::Receive { rank, peer, message, lane, round });
    }

    /// Records both ends of a get, which moves data from the target to this rank.
    pub(crate) fn trace_get(
        &self,
        round: &std::sync::Arc<RoundState>,
        at: &Transfer,
        verb: Verb,
        done: Done,
    ) -> Done {
        if !self.tracer.traced || verb != Verb::Get {
            return done;
        }
        let number = self.tracer.gets[at.target.index()].fetch_add(1, Ordering::Relaxed);
        let (at, round) = (*at, std::sync::Arc::clone(round));
        self.group.trace(|now_ns| Event::Send {
            rank: at.target.0,
            peer: self.rank.0,
            message: brought(number),
            bytes: at.bytes,
            waited: WaitNs::between(at.called_ns, now_ns),
        });
        Box::new(move |result| {
            if result.is_ok() {
                let origin = round.world.rank(round.rank);
                origin.record_receive(at.target, brought(number), round.lane, round.number);
            }
            done(result);
        })
    }

    /// Records a pass over the completion queues that has found completions.
    pub(crate) fn trace_pass(&self, completions: usize) {
        self.trace_value(ValueKind::PollCompletions, completions);
        self.trace_outstanding();
    }

    /// Records the number of requests under way, before a request is posted and after its
    /// completion is taken, so that the last value is that of the end.
    pub(crate) fn trace_outstanding(&self) {
        if self.tracer.traced {
            self.trace_value(ValueKind::OutstandingRequests, self.outstanding());
        }
    }

    fn trace_value(&self, kind: ValueKind, value: usize) {
        let rank = self.rank.0;
        self.group.trace(|_| Event::Value { rank, kind, value: value as i64 });
    }
}
