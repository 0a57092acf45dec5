//! The stages of a sync.

use super::abandoned::Finished;
use super::active_sync::{ActiveSync, Progress, Stage, exchange_is_barrier};
use super::arrivals::RoundArrivals;
use super::deferred::Deferred;
use super::engine::State;
use super::lane_state::{LaneState, Pattern, expected_from};
use super::{Arrivals, SyncMode};
use crate::error::Error;
use crate::immediate::Kind;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::sender::Sender;
use crate::window::Unended;

impl State {
    /// Takes in completions and advances syncs. Returns the number of completions.
    pub(super) fn pass(&mut self, sender: &Sender, deferred: &mut Deferred) -> usize {
        let mut finished = Finished::new();
        if sender.own.has_wire {
            finished.extend(sender.peers.finished(self.rank));
        }
        let taken = self.take_arrivals(sender, deferred) + self.take_completions(sender, deferred);
        if let Some(error) = sender.failure.failing() {
            deferred.failures.push((error.ranks(self.rank), error.clone()));
        }
        let (windows, notifications) = (&sender.own.windows, &sender.own.notifications);
        if windows.has_delayed() || notifications.has_delayed() {
            self.settle(sender, deferred);
        }
        let mut lanes = (0..self.lanes.len()).map(|lane| LaneNumber(lane as u8));
        let has_ended = lanes.any(|lane| self.advance(lane, sender, deferred));
        if has_ended && self.lanes.iter().any(|lane| !lane.syncs.is_empty()) {
            // The thread inside makes another pass, for the other syncs.
            sender.own.ring_doorbell();
        }
        self.fail_abandoned(&finished, sender, deferred);
        self.send_controls(sender, deferred);
        if sender.tracer.is_traced() && taken > 0 {
            sender.tracer.pass(taken, sender.outstanding());
        }
        taken
    }

    /// Takes in what other threads have landed of operations that were parked.
    #[cold]
    fn settle(&self, sender: &Sender, deferred: &mut Deferred) {
        let (windows, notifications) = (&sender.own.windows, &sender.own.notifications);
        let has_landed = |source| sender.peers.has_landed(source, self.rank);
        if windows.has_delayed() {
            deferred.settled = windows.settle(&has_landed);
        }
        if notifications.has_delayed() {
            notifications.settle(&has_landed, deferred.notified.get_or_insert_default());
        }
    }

    /// Advances the first sync of a lane as far as possible. Returns `true` if it has ended.
    pub(super) fn advance(
        &mut self,
        lane: LaneNumber,
        sender: &Sender,
        out: &mut Deferred,
    ) -> bool {
        let Some(mut sync) = self.lane(lane).take_ready(sender.has_failed()) else {
            return false;
        };
        let outcome = match sender.failure.broken() {
            Some(error) => Err(Box::new(error)),
            None => self.run_stages(&mut sync, sender, out),
        };
        let result = match outcome {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.lane(lane).syncs.push_front(sync);
                return false;
            }
            Err(error) => {
                // Later rounds must not end before the run has failed.
                sender.failure.begin(&error);
                out.failures.push((error.ranks(self.rank), Error::clone(&error)));
                Err(error)
            }
        };
        out.ended = Some((sync, result));
        true
    }

    /// Runs the stages of a sync as far as possible. Returns `true` if it has ended.
    fn run_stages(
        &mut self,
        sync: &mut ActiveSync,
        sender: &Sender,
        out: &mut Deferred,
    ) -> Result<bool, Box<Error>> {
        loop {
            let step = match sync.stage {
                Stage::Posting => self.posting(sync)?,
                Stage::Delivering => self.delivering(sync, sender, out),
                Stage::Counting(step) => self.counting(sync, step),
                Stage::Arriving => self.arriving(sync, sender)?,
                Stage::Barrier(step) => self.barrier(sync, step),
                Stage::Acknowledging => self.acknowledging(sync),
                Stage::Closing => self.closing(sync, sender, out),
            };
            match step {
                Progress::Next(stage) => sync.stage = stage,
                Progress::Wait => return Ok(false),
                Progress::End => return Ok(true),
            }
        }
    }

    fn posting(&mut self, sync: &mut ActiveSync) -> Result<Progress, Box<Error>> {
        let round = &sync.round;
        if !round.is_posted() {
            return Ok(Progress::Wait);
        }
        let (lane, number) = (round.lane, round.number);
        if round.has_missing() {
            return Err(Error::NotPosted { lane, round: number }.into());
        }
        let state = self.lane(lane);
        match sync.mode.arrivals {
            Arrivals::Msg(arrivals) => {
                sync.expected = arrivals;
                Ok(Progress::Next(Stage::Arriving))
            }
            Arrivals::Cached if state.pattern.is_some() => {
                sync.expected = state.recall(sync)?;
                Ok(Progress::Next(Stage::Arriving))
            }
            Arrivals::Cached | Arrivals::Default => Ok(Progress::Next(self.announce_counts(sync))),
        }
    }

    fn arriving(&mut self, sync: &mut ActiveSync, sender: &Sender) -> Result<Progress, Box<Error>> {
        let (lane, number, plan) = (sync.round.lane, sync.round.number, self.plan);
        let LaneState { arrivals, pattern, .. } = self.lane(lane);
        let Some(round) = arrivals.round(number) else {
            return Ok(Progress::Wait);
        };
        if round.total < sync.expected {
            return Ok(Progress::Wait);
        }
        if let Some((source, arrived, expected)) = too_many(sync, pattern, round) {
            let source_rank = Rank(source as u32);
            return Err(Error::UnexpectedArrivals {
                lane,
                round: number,
                source_rank,
                arrived,
                expected,
            }
            .into());
        }
        if let Some(claims) = sender.own.windows.conflict(lane, number) {
            return Err(Error::conflict(claims, self.rank, lane, number).into());
        }
        let is_known = matches!(sync.mode.arrivals, Arrivals::Msg(_));
        let has_passed = !is_known && round.counted.are_all(&plan) && exchange_is_barrier(sync);
        if sync.mode.ack {
            let sources: Vec<Rank> = round.sources().collect();
            for source in sources {
                self.control(source, Kind::Ack, (lane, number), 0);
            }
        }
        Ok(Progress::Next(if sync.mode.barrier && !has_passed {
            self.begin(&sync.round, Kind::Barrier)
        } else {
            after_barrier(sync.mode)
        }))
    }

    fn barrier(&mut self, sync: &ActiveSync, step: u32) -> Progress {
        match self.disseminate(&sync.round, Kind::Barrier, step) {
            Some(next) => next.map_or(Progress::Wait, Progress::Next),
            None => Progress::Next(after_barrier(sync.mode)),
        }
    }

    fn acknowledging(&mut self, sync: &ActiveSync) -> Progress {
        let number = sync.round.number;
        let state = self.lane(sync.round.lane);
        let before = number.0.checked_sub(1).map(Round);
        let come = before.and_then(|before| state.arrivals.round(before)).map_or(0, |r| r.acks);
        if come >= state.unacknowledged { Progress::Next(Stage::Closing) } else { Progress::Wait }
    }

    fn closing(&mut self, sync: &ActiveSync, sender: &Sender, out: &mut Deferred) -> Progress {
        let (lane, number) = (sync.round.lane, sync.round.number);
        let has_landed = |source| sender.peers.has_landed(source, self.rank);
        match sender.own.windows.end(lane, number, &has_landed, &mut out.settled) {
            Ok(over) => out.over = Some(over),
            Err(reason) => {
                out.again |= reason == Unended::Landing;
                return Progress::Wait;
            }
        }
        let state = self.lane(lane);
        let last_arrival_ns = state.arrivals.round(number).map_or(0, |round| round.last_ns);
        if sync.mode.ack {
            // The acknowledgements of this round come after it has ended.
            state.unacknowledged = sync.round.sent().count() as u32;
            state.arrivals.forget_before(number);
        } else {
            state.unacknowledged = 0;
            state.arrivals.forget_before(Round(number.0 + 1));
        }
        sender.tracer.end_sync(&sync.round, last_arrival_ns);
        Progress::End
    }
}

/// Returns the stage after the barrier, or after the arrivals without a barrier.
fn after_barrier(mode: SyncMode) -> Stage {
    if mode.ack { Stage::Acknowledging } else { Stage::Closing }
}

/// Finds a source with more operations than expected, once those are known. Returns it with the
/// numbers that have arrived and are expected: of that source if known, otherwise in all.
#[inline]
fn too_many(
    sync: &ActiveSync,
    pattern: &Option<Pattern>,
    round: &RoundArrivals,
) -> Option<(usize, u32, u32)> {
    if round.total == 0 {
        return None;
    }
    let mut each = round.data.iter().enumerate();
    let from_one = each.find_map(|(rank, &arrived)| {
        let expected = expected_from(rank, sync.mode, pattern, round)?;
        (arrived > expected).then_some((rank, arrived, expected))
    });
    let in_all = || {
        let source = round.sources().next().map_or(0, Rank::index);
        (round.total > sync.expected).then_some((source, round.total, sync.expected))
    };
    from_one.or_else(in_all)
}
