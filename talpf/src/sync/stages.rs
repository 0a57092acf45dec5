//! The stages of a sync.

use talpf_traces::Event;

use super::engine::{Aftermath, LaneState, Pattern, State};
use super::request::{Request, Stage};
use super::{Arrivals, Modifier};
use crate::error::Error;
use crate::immediate::{Immediate, Kind};
use crate::numbers::{Lane, Rank, Round};
use crate::world::{RankState, World};

/// Below this bit of a count message is the count, above it the vote.
const VOTE: u32 = 32;

/// Whether a sync can go on.
enum Step {
    /// To its next stage.
    Next(Stage),
    /// Not yet.
    Wait,
    /// It has ended.
    End,
}

impl State {
    /// Carries the syncs of a lane on as far as they go.
    pub(super) fn carry_on(
        &mut self,
        lane: Lane,
        rank: &RankState,
        world: &World,
        out: &mut Aftermath,
    ) {
        while let Some(mut request) = self.lane(lane).take_ready(rank) {
            let outcome = match rank.failure() {
                Some(error) => Err(error),
                None => self.run_stages(&mut request, rank, world, out),
            };
            match outcome {
                Ok(true) => out.ended.push((request.ending, Ok(()))),
                Ok(false) => {
                    self.lane(lane).requests.push_front(request);
                    break;
                }
                Err(error) => {
                    out.failures.push((vec![rank.rank], error.clone()));
                    out.ended.push((request.ending, Err(error)));
                }
            }
        }
        self.send_controls(rank);
    }

    /// `true` once the sync has ended.
    fn run_stages(
        &mut self,
        request: &mut Request,
        rank: &RankState,
        world: &World,
        out: &mut Aftermath,
    ) -> Result<bool, Error> {
        loop {
            let step = match request.stage {
                Stage::Posting => self.posting(request)?,
                Stage::Counting => self.counting(request)?,
                Stage::Arriving => self.arriving(request)?,
                Stage::Barrier(step) => self.barrier(request, step),
                Stage::Acknowledging => self.acknowledging(request),
                Stage::Closing => self.closing(request, rank, world, out),
            };
            match step {
                Step::Next(stage) => request.stage = stage,
                Step::Wait => return Ok(false),
                Step::End => return Ok(true),
            }
        }
    }

    fn posting(&mut self, request: &mut Request) -> Result<Step, Error> {
        let round = &request.round;
        if !round.is_posted() {
            return Ok(Step::Wait);
        }
        let (lane, number) = (round.lane, round.number);
        if round.has_lost() {
            return Err(Error::NotPosted { lane, round: number });
        }
        request.sent = round.sent();
        let state = self.lane(lane);
        match request.mode.arrivals {
            Arrivals::Msg(arrivals) => {
                request.expected_total = arrivals;
                Ok(Step::Next(Stage::Arriving))
            }
            Arrivals::Cached if state.pattern.is_some() => {
                let expected = state.recall(request)?;
                request.expect(expected);
                Ok(Step::Next(Stage::Arriving))
            }
            Arrivals::Cached | Arrivals::Default => {
                self.send_counts(lane, number, &request.sent);
                Ok(Step::Next(Stage::Counting))
            }
        }
    }

    fn send_counts(&mut self, lane: Lane, round: Round, sent: &[u32]) {
        let immediate = Immediate::new(Kind::Count, lane, round);
        for (target, &count) in sent.iter().enumerate() {
            let target = Rank(target as u32);
            if target == self.rank {
                let own = self.lane(lane).arrivals.round(round);
                if let Some(own) = own {
                    own.counts[target.index()] = Some(u64::from(count));
                    own.counts_in += 1;
                }
            } else {
                self.control(target, immediate, Some(u64::from(count)));
            }
        }
    }

    fn counting(&mut self, request: &mut Request) -> Result<Step, Error> {
        let ranks = self.ranks;
        let state = self.lane(request.round.lane);
        let Some(round) = state.arrivals.round(request.round.number) else {
            return Ok(Step::Wait);
        };
        if round.counts_in < ranks {
            return Ok(Step::Wait);
        }
        let counts = || round.counts.iter().map(|count| count.unwrap_or(0));
        if let Some(rank) = counts().position(|count| count >> VOTE != 0) {
            let reason = "it voted to end the run".to_owned();
            return Err(Error::PeerFailed { rank: Rank(rank as u32), reason });
        }
        let expected: Vec<u32> = counts().map(|count| count as u32).collect();
        let cached = request.mode.arrivals == Arrivals::Cached;
        state.pattern =
            cached.then(|| Pattern { sent: request.sent.clone(), expected: expected.clone() });
        request.expect(expected);
        Ok(Step::Next(Stage::Arriving))
    }

    fn arriving(&mut self, request: &mut Request) -> Result<Step, Error> {
        let (lane, number) = (request.round.lane, request.round.number);
        let Some(round) = self.lane(lane).arrivals.round(number) else {
            return Ok(Step::Wait);
        };
        if round.total < request.expected_total {
            return Ok(Step::Wait);
        }
        let each = request.expected.iter().zip(&round.data).position(|(e, arrived)| arrived > e);
        let too_many = each.map(|rank| (rank, request.expected[rank]));
        let in_all = || round.data.iter().position(|&arrived| arrived > 0).unwrap_or(0);
        let too_many = too_many.or_else(|| {
            (round.total > request.expected_total).then(|| (in_all(), request.expected_total))
        });
        if let Some((rank, expected)) = too_many {
            return Err(Error::UnexpectedArrivals {
                lane,
                round: number,
                source_rank: Rank(rank as u32),
                arrived: if request.expected.is_empty() { round.total } else { round.data[rank] },
                expected,
            });
        }
        Ok(Step::Next(match request.mode.modifier {
            Modifier::None => Stage::Closing,
            Modifier::Barrier => {
                self.send_barrier(lane, number, 0);
                Stage::Barrier(0)
            }
            Modifier::Ack => {
                let sources: Vec<Rank> = round.sources().collect();
                for source in sources {
                    self.control(source, Immediate::new(Kind::Ack, lane, number), None);
                }
                Stage::Acknowledging
            }
        }))
    }

    /// Dissemination: after step `k` every rank knows of 2^(k+1) ranks before it.
    fn barrier(&mut self, request: &Request, step: u32) -> Step {
        if 1u64 << step >= u64::from(self.ranks) {
            return Step::Next(Stage::Closing);
        }
        let (lane, number) = (request.round.lane, request.round.number);
        let come = self.lane(lane).arrivals.round(number).map_or(0, |round| round.barrier);
        if come & (1 << step) == 0 {
            return Step::Wait;
        }
        self.send_barrier(lane, number, step + 1);
        Step::Next(Stage::Barrier(step + 1))
    }

    fn send_barrier(&mut self, lane: Lane, round: Round, step: u32) {
        let distance = 1u64 << step;
        if distance < u64::from(self.ranks) {
            let target = Rank((self.rank.0 + distance as u32) % self.ranks);
            self.control(target, Immediate::new(Kind::Barrier, lane, round), None);
        }
    }

    fn acknowledging(&mut self, request: &Request) -> Step {
        let number = request.round.number;
        let state = self.lane(request.round.lane);
        let before = number.0.checked_sub(1).map(Round);
        let come = before.and_then(|before| state.arrivals.round(before)).map_or(0, |r| r.acks);
        if come >= state.unacknowledged { Step::Next(Stage::Closing) } else { Step::Wait }
    }

    fn closing(
        &mut self,
        request: &Request,
        rank: &RankState,
        world: &World,
        out: &mut Aftermath,
    ) -> Step {
        let (lane, number) = (request.round.lane, request.round.number);
        let has_landed = |source| world.has_landed(source, rank.rank);
        let Some(freed) = rank.windows.end(lane, number, &has_landed) else {
            out.again = true;
            return Step::Wait;
        };
        out.freed.push(freed);
        let state = self.lane(lane);
        let targets = request.sent.iter().filter(|&&count| count > 0).count() as u32;
        if request.mode.modifier == Modifier::Ack {
            // The acknowledgements of this round come after it has ended.
            state.unacknowledged = targets;
            state.arrivals.forget_before(number);
        } else {
            state.unacknowledged = 0;
            state.arrivals.forget_before(Round(number.0 + 1));
        }
        if rank.tracer.is_traced() {
            let (rank_number, lane) = (rank.rank.0, u32::from(lane.0));
            rank.group.trace(|_| Event::SyncEnd { rank: rank_number, lane, round: number.0 });
        }
        Step::End
    }
}

impl LaneState {
    /// The first sync, unless nothing has changed for it.
    #[inline]
    fn take_ready(&mut self, rank: &RankState) -> Option<Request> {
        let request = self.requests.front()?;
        let unchanged = match request.stage {
            Stage::Posting => !request.round.is_posted(),
            Stage::Arriving => {
                let round = self.arrivals.round(request.round.number);
                round.is_some_and(|round| round.total < request.expected_total)
            }
            _ => false,
        };
        if unchanged && !rank.has_failed() { None } else { self.requests.pop_front() }
    }

    /// What arrives in a round under `Cached`, if it is like the one that is remembered.
    fn recall(&self, request: &Request) -> Result<Vec<u32>, Error> {
        let Some(pattern) = &self.pattern else {
            return Ok(Vec::new());
        };
        let mut both = pattern.sent.iter().zip(&request.sent);
        match both.position(|(before, now)| before != now) {
            Some(target) => Err(Error::PatternChanged {
                lane: request.round.lane,
                round: request.round.number,
                target: Rank(target as u32),
                sent: request.sent[target],
                expected: pattern.sent[target],
            }),
            None => Ok(pattern.expected.clone()),
        }
    }
}

impl Request {
    fn expect(&mut self, expected: Vec<u32>) {
        self.expected_total = expected.iter().sum();
        self.expected = expected;
    }
}
