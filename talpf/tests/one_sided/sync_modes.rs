//! In every mode, on every lane, readers see their own round, however fast or slow the ranks are.

use std::time::Duration;

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, Lane, Rank, SyncMode};

/// The slow ranks.
#[derive(Clone, Default)]
struct Pace {
    /// A rank that computes for some time in every round.
    slow: Option<u32>,
    /// Every rank but 0 begins when 0 has spawned everything.
    late: Option<Gate>,
    /// Mains await every sync.
    stepwise: bool,
}

/// Returns the value that `rank` puts in a round of a lane.
fn value(rank: u32, lane: u8, round: u64) -> u64 {
    u64::from(rank) << 48 | u64::from(lane) << 32 | round
}

/// Puts from every rank to both neighbours in every round of every lane; tasks check the arrivals.
fn exchange(config: Config, mode: SyncMode, lanes: &'static [u8], rounds: usize, pace: &Pace) {
    let pace = pace.clone();
    let seen = common::run(config, move |ctx| {
        let pace = pace.clone();
        async move {
            let mut handles = Vec::new();
            for &lane in lanes {
                handles.push(LaneOfRank::new(&ctx, lane, rounds).await?);
            }
            if let (Some(gate), 1..) = (&pace.late, ctx.rank().0) {
                gate.passed().await;
            }
            for round in 0..rounds {
                for lane in &handles {
                    let sync = lane.round(&ctx, mode, round, pace.slow == Some(ctx.rank().0))?;
                    if pace.stepwise {
                        sync.await?;
                    }
                }
            }
            if let (Some(gate), 0) = (&pace.late, ctx.rank().0) {
                gate.open();
            }
            ctx.group().wait().await?;
            Ok(())
        }
    });
    if let Err(error) = seen {
        panic!("{mode} on lanes {lanes:?}: {error}");
    }
}

/// The arrays and slots of a rank for one lane.
struct LaneOfRank {
    lane: Lane,
    source: talpf_runtime::Array<u64>,
    inbox: talpf_runtime::Array<u64>,
    slot: talpf::MemorySlot<u64>,
}

impl LaneOfRank {
    async fn new(ctx: &Context, lane: u8, rounds: usize) -> Result<Self, Error> {
        let source = (0..rounds).map(|round| value(ctx.rank().0, lane, round as u64));
        let source = talpf_runtime::Array::new(ctx.group(), source.collect(), 1)?;
        let inbox = common::array(ctx, vec![0u64; 2])?;
        let slot = ctx.register_global(&inbox).await?;
        Ok(LaneOfRank { lane: ctx.lane(lane)?, source, inbox, slot })
    }

    fn round(
        &self,
        ctx: &Context,
        mode: SyncMode,
        round: usize,
        slow: bool,
    ) -> Result<talpf::SyncHandle, Error> {
        let (rank, ranks, lane) = (ctx.rank().0, ctx.size(), &self.lane);
        let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
        let mine = self.source.tile(round);
        lane.put(&mine, self.slot.at(Rank(left), 1))?;
        lane.put(&mine, self.slot.at(Rank(right), 0))?;
        let sync = lane.sync(mode).window(&self.inbox.all()).spawn()?;
        let lane = lane.lane_number().0;
        let expected = [left, right].map(|rank| value(rank, lane, round as u64));
        let check = ctx.group().task("check").input(&self.inbox.all());
        check.spawn(move |inbox| {
            assert_eq!(inbox[..], expected, "rank {rank}, lane {lane}, round {round}");
            if slow {
                common::spin(Duration::from_millis(1));
                assert_eq!(inbox[..], expected, "while rank {rank} reads");
            }
        })?;
        Ok(sync)
    }
}

#[test]
fn ranks_at_their_own_pace() {
    for mode in common::modes(2) {
        for ranks in [1, 2, 5] {
            exchange(common::config(ranks, 2), mode, &[0], 20, &Pace::default());
        }
    }
}

#[test]
fn several_lanes_at_once() {
    for mode in common::modes(2) {
        exchange(common::config(3, 2), mode, &[0, 1, 7, 255], 10, &Pace::default());
        exchange(common::config(2, 1), mode, &[200], 10, &Pace::default());
    }
}

#[test]
fn a_slow_rank_among_fast_ones() {
    for mode in common::modes(2) {
        for stepwise in [false, true] {
            let pace = Pace { slow: Some(1), stepwise, ..Pace::default() };
            exchange(common::config(3, 2), mode, &[0], 10, &pace);
            exchange(common::config(3, 2), mode, &[3, 0], 5, &pace);
        }
    }
}

#[test]
fn a_rank_many_rounds_ahead_of_late_ones() {
    for mode in common::modes(2) {
        for lanes in [&[0][..], &[9, 0]] {
            let pace = Pace { late: Some(Gate::default()), ..Pace::default() };
            exchange(common::config(3, 2), mode, lanes, 12, &pace);
        }
    }
}
