//! The exchange of counts, and barriers.
//!
//! A rank learns how many operations come to it by two kinds of control messages. In an exchange
//! all ranks disseminate that they have begun it (`dissemination.rs`); each of these messages
//! carries a count. A rank to which the sender has no such message gets its count in a message of
//! its own, and only if that is not 0. So beyond the messages of the dissemination a rank sends at
//! most one to each of its targets.
//!
//! A rank begins to disseminate once its counts are *delivered*: the device has carried their
//! messages out, which has left a completion in the queue of each target. When the message of the
//! last step arrives at a rank, all ranks have begun, so every completion of a count was in its
//! queue before, and was taken before: the queue is first in, first out. A count that has not come
//! then is 0.
//!
//! If the sync has a barrier, a rank begins once its operations are delivered, too, and the
//! exchange is the barrier: a rank that has all steps knows that all ranks have their arrivals.
//! Where arrivals are known without an exchange, or are checked for conflicts, which fail all ranks
//! of the round, the barrier comes after them: a rank begins it once it has its arrivals.
//!
//! With few ranks, which send few messages in any case, the barrier comes after them, too: counts
//! travel while operations wait for windows, and no rank waits for another to let its operations
//! land before it sends.
//!
//! **Source**: Hoefler, Siebert, Lumsdaine, *Scalable communication protocols for dynamic sparse
//! data exchange* (2010), with dissemination in place of their non-blocking barrier.

use super::Arrivals;
use super::active_sync::{ActiveSync, Progress, Stage, exchange_is_barrier};
use super::deferred::Deferred;
use super::engine::State;
use super::lane_state::Pattern;
use crate::control_plane;
use crate::immediate::Kind;
use crate::numbers::Rank;
use crate::sender::{RoundState, Sender};

impl State {
    /// Sends the counts of a posted round that no step of the exchange carries. Returns the stage
    /// that follows.
    pub(super) fn announce_counts(&mut self, sync: &ActiveSync) -> Stage {
        let round = &sync.round;
        let at = (round.lane, round.number);
        let is_barrier = exchange_is_barrier(sync);
        let mut waits = false;
        for (target, count) in round.sent() {
            waits |= is_barrier;
            if target == self.rank {
                let own = self.lane(at.0).arrivals.round(at.1);
                own.into_iter().for_each(|own| own.count(target, count));
            } else if !self.plan.meets(target) {
                waits = true;
                self.control(target, Kind::Count, at, count);
            }
        }
        if waits { Stage::Delivering } else { self.begin(round, Kind::Count) }
    }

    /// Waits until the counts are delivered, and with a barrier the operations.
    pub(super) fn delivering(
        &mut self,
        sync: &ActiveSync,
        sender: &Sender,
        out: &mut Deferred,
    ) -> Progress {
        let round = &sync.round;
        self.send_controls(sender, out);
        // A parked operation is posted by its target.
        if !self.has_sent_controls() || exchange_is_barrier(sync) && round.parked.must_wait() {
            return Progress::Wait;
        }
        let endpoint = &sender.own.endpoint;
        if !round.sent().all(|(target, _)| endpoint.is_drained(target)) {
            // What a thread of this process carries out nothing announces.
            out.again |= !is_announced(round, sender);
            return Progress::Wait;
        }
        Progress::Next(self.begin(round, Kind::Count))
    }

    pub(super) fn counting(&mut self, sync: &mut ActiveSync, step: u32) -> Progress {
        if let Some(next) = self.disseminate(&sync.round, Kind::Count, step) {
            return next.map_or(Progress::Wait, Progress::Next);
        }
        let rank = self.rank;
        let state = self.lane(sync.round.lane);
        let Some(round) = state.arrivals.round(sync.round.number) else {
            return Progress::Wait;
        };
        sync.expected = round.counts_in_all();
        let cached = sync.mode.arrivals == Arrivals::Cached;
        if cached {
            let at = (sync.round.lane, sync.round.number);
            control_plane::repeats_counts(rank, at.0, at.1, sync.expected);
        }
        state.pattern = cached.then(|| Pattern {
            sent: sync.round.sent().collect(),
            expected: round.counts().to_vec(),
        });
        Progress::Next(Stage::Arriving)
    }

    /// Begins an exchange or a barrier.
    pub(super) fn begin(&mut self, round: &RoundState, kind: Kind) -> Stage {
        self.send_step(round, kind, 0);
        stage_of(kind, 0)
    }

    /// Returns the stage after `step` of an exchange or a barrier: `Some(None)` if its message has
    /// not arrived, `None` after the last step.
    pub(super) fn disseminate(
        &mut self,
        round: &RoundState,
        kind: Kind,
        step: u32,
    ) -> Option<Option<Stage>> {
        if step == self.plan.steps() {
            return None;
        }
        let arrivals = self.lane(round.lane).arrivals.round(round.number);
        let come = arrivals.map(|of| if kind == Kind::Count { of.counted } else { of.barrier });
        if !come.is_some_and(|come| come.has(step)) {
            return Some(None);
        }
        self.send_step(round, kind, step + 1);
        Some(Some(stage_of(kind, step + 1)))
    }

    fn send_step(&mut self, round: &RoundState, kind: Kind, step: u32) {
        for target in self.plan.targets(step).map(Rank) {
            let count = if kind == Kind::Count { round.sent_to(target) } else { 0 };
            self.control(target, kind, (round.lane, round.number), count);
        }
    }
}

/// Returns `true` if a response of another process ends requests of a round, for which it is announced.
#[cold] // Out of the way of runs in one process.
fn is_announced(round: &RoundState, sender: &Sender) -> bool {
    let own = &sender.own;
    own.has_wire && {
        own.awaits_responses.set();
        round.sent().any(|(target, _)| own.endpoint.awaits_response(target))
    }
}

fn stage_of(kind: Kind, step: u32) -> Stage {
    if kind == Kind::Count { Stage::Counting(step) } else { Stage::Barrier(step) }
}
