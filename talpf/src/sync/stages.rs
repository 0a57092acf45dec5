//! The stages of a sync.

use std::collections::VecDeque;

use talpf_traces::Event;

use super::active_sync::{ActiveSync, Stage};
use super::arrivals::{LaneArrivals, RoundArrivals};
use super::counting::exchange_is_barrier;
use super::deferred::Deferred;
use super::engine::State;
use super::{Arrivals, SyncMode};
use crate::error::Error;
use crate::immediate::Kind;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::world::{RankState, World};

/// The syncs and arrivals of one lane.
pub(super) struct LaneState {
    pub(super) arrivals: LaneArrivals,
    /// Syncs in the order of their rounds.
    pub(super) syncs: VecDeque<ActiveSync>,
    pub(super) pattern: Option<Pattern>,
    /// Number of targets of the round that ended last, if it ended with acknowledgements.
    pub(super) unacknowledged: u32,
}

/// The cached pattern of a lane: operations by target and by source.
pub(super) struct Pattern {
    pub(super) sent: Vec<u32>,
    pub(super) expected: Vec<u32>,
}

/// The result of an attempt to advance a sync.
pub(super) enum Progress {
    /// The sync enters its next stage.
    Next(Stage),
    /// The sync stays in its stage.
    Wait,
    /// The sync has ended.
    End,
}

impl State {
    /// Advances the first sync of a lane as far as possible. Returns `true` if it has ended.
    pub(super) fn advance(
        &mut self,
        lane: LaneNumber,
        rank: &RankState,
        world: &World,
        out: &mut Deferred,
    ) -> bool {
        let Some(mut sync) = self.lane(lane).take_ready(rank) else {
            return false;
        };
        let outcome = match rank.broken() {
            Some(error) => Err(Box::new(error)),
            None => self.run_stages(&mut sync, rank, world, out),
        };
        let result = match outcome {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.lane(lane).syncs.push_front(sync);
                return false;
            }
            Err(error) => {
                // Later rounds must not end before the run has failed.
                rank.note_failing(&error);
                out.failures.push((error.ranks(rank.rank), Error::clone(&error)));
                Err(error)
            }
        };
        rank.engine.count_syncs(-1);
        out.ended = Some((sync, result));
        true
    }

    /// Runs the stages of a sync as far as possible. Returns `true` if it has ended.
    fn run_stages(
        &mut self,
        sync: &mut ActiveSync,
        rank: &RankState,
        world: &World,
        out: &mut Deferred,
    ) -> Result<bool, Box<Error>> {
        loop {
            let step = match sync.stage {
                Stage::Posting => self.posting(sync)?,
                Stage::Delivering => self.delivering(sync, rank, out),
                Stage::Counting(step) => self.counting(sync, step),
                Stage::Arriving => self.arriving(sync, rank)?,
                Stage::Barrier(step) => self.barrier(sync, step),
                Stage::Acknowledging => self.acknowledging(sync),
                Stage::Closing => self.closing(sync, rank, world, out),
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

    fn arriving(
        &mut self,
        sync: &mut ActiveSync,
        rank: &RankState,
    ) -> Result<Progress, Box<Error>> {
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
        if let Some(claims) = rank.windows.conflict(lane, number) {
            return Err(Error::conflict(claims, rank.rank, lane, number).into());
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

    fn closing(
        &mut self,
        sync: &ActiveSync,
        rank: &RankState,
        world: &World,
        out: &mut Deferred,
    ) -> Progress {
        let (lane, number) = (sync.round.lane, sync.round.number);
        let has_landed = |source| world.has_landed(source, rank.rank);
        out.over = rank.windows.end(lane, number, &has_landed);
        if out.over.is_none() {
            out.again = true;
            return Progress::Wait;
        }
        let state = self.lane(lane);
        if sync.mode.ack {
            // The acknowledgements of this round come after it has ended.
            state.unacknowledged = sync.round.sent().filter(|&count| count > 0).count() as u32;
            state.arrivals.forget_before(number);
        } else {
            state.unacknowledged = 0;
            state.arrivals.forget_before(Round(number.0 + 1));
        }
        if rank.tracer.is_traced() {
            let (rank_number, lane) = (rank.rank.0, u32::from(lane.0));
            rank.group.trace(|_| Event::SyncEnd { rank: rank_number, lane, round: number.0 });
        }
        Progress::End
    }
}

impl LaneState {
    /// Takes the first sync, unless nothing has changed for it.
    #[inline]
    fn take_ready(&mut self, rank: &RankState) -> Option<ActiveSync> {
        let sync = self.syncs.front()?;
        let unchanged = match sync.stage {
            Stage::Posting => !sync.round.is_posted(),
            Stage::Arriving => {
                let round = self.arrivals.round(sync.round.number);
                round.is_some_and(|round| round.total < sync.expected)
            }
            _ => false,
        };
        if unchanged && !rank.has_failed() { None } else { self.syncs.pop_front() }
    }

    /// Returns the number of arrivals of a round, if known before its sync.
    pub(super) fn known(&self, mode: SyncMode) -> Option<u32> {
        match mode.arrivals {
            Arrivals::Msg(arrivals) => Some(arrivals),
            Arrivals::Cached => self.pattern.as_ref().map(|pattern| pattern.expected.iter().sum()),
            Arrivals::Default => None,
        }
    }

    /// Returns the number of arrivals of a round under `Cached`.
    ///
    /// **Errors**: the round differs from the cached pattern.
    fn recall(&self, sync: &ActiveSync) -> Result<u32, Error> {
        let Some(pattern) = &self.pattern else {
            return Ok(0);
        };
        let mut both = pattern.sent.iter().zip(sync.round.sent()).enumerate();
        match both.find(|(_, (before, now))| **before != *now) {
            Some((target, (&expected, sent))) => Err(Error::PatternChanged {
                lane: sync.round.lane,
                round: sync.round.number,
                target: Rank(target as u32),
                sent,
                expected,
            }),
            None => Ok(pattern.expected.iter().sum()),
        }
    }
}

/// Returns the stage after the barrier, or after the arrivals without a barrier.
fn after_barrier(mode: SyncMode) -> Stage {
    if mode.ack { Stage::Acknowledging } else { Stage::Closing }
}

/// Returns the number of operations expected from a rank, after the exchange of counts if any.
/// `None` under `Msg`, which knows the sum only.
pub(super) fn expected_from(
    rank: usize,
    mode: SyncMode,
    pattern: &Option<Pattern>,
    arrivals: &RoundArrivals,
) -> Option<u32> {
    match (mode.arrivals, pattern) {
        (Arrivals::Msg(_), _) => None,
        (Arrivals::Cached, Some(pattern)) => Some(pattern.expected[rank]),
        _ => Some(arrivals.counts()[rank]),
    }
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
