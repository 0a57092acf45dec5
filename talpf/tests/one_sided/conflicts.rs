//! A round that reads and writes one location is reported (R6), to the rank whose memory it is and
//! to those whose operations meet there.
#![allow(unsafe_code, reason = "windows keep gets and puts apart; raw slots do not")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::{Array, Out};

use Verb::{Get, Put, Update};

/// Elements are touched so many at a time: a put of more than 256 bytes returns its guard when it
/// has landed.
const UNIT: usize = 40;
const UNITS: usize = 8;
const RANKS: u32 = 4;
const LANES: [u8; 2] = [0, 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Get,
    /// Of the first element.
    Update,
    Put,
}

/// An operation of `source` on units of the array of `target`.
#[derive(Clone, Debug)]
struct Operation {
    lane: usize,
    source: u32,
    verb: Verb,
    target: u32,
    units: Range<usize>,
}

fn operation(source: u32, verb: Verb, units: Range<usize>) -> Operation {
    Operation { lane: 0, source, verb, target: 2, units }
}

impl Operation {
    fn elements(&self) -> Range<usize> {
        let first = self.units.start * UNIT;
        first..if self.verb == Update { first + 1 } else { self.units.end * UNIT }
    }

    async fn run(
        &self,
        ctx: &Context,
        slot: &MemorySlot<u64>,
        local: &Array<u64>,
    ) -> Result<(), Error> {
        let round = ctx.lane(LANES[self.lane])?.round();
        let Range { start, end } = self.elements();
        let task = ctx.group().task("local").output(&local.region(..end - start));
        let local: Out<u64> = task.run(|guard| guard)?.await?;
        let remote = slot.at(Rank(self.target), start);
        drop(match self.verb {
            Get => round.get(remote, local).await?,
            Update => round.fetch_and_add(remote, 1, local).await?,
            Put => round.put(local, remote).await?,
        });
        Ok(())
    }
}

/// The rounds of a program; its operations are carried out one after another.
type Plan = Vec<Vec<Operation>>;

/// Returns the result of the main of each rank.
fn ends(plan: &Plan, config: Config) -> Vec<Result<(), Error>> {
    let ends = Arc::new(Mutex::new(vec![Ok(()); RANKS as usize]));
    let operations = plan.iter().map(Vec::len).sum::<usize>();
    let gates: Vec<Gate> = (0..=operations).map(|_| Gate::default()).collect();
    gates[0].open();
    let result = common::run(config, |ctx| {
        let (ends, plan, gates) = (Arc::clone(&ends), plan.clone(), gates.clone());
        async move {
            let end = rounds(&ctx, &plan, &gates).await;
            ends.lock().unwrap()[ctx.rank().0 as usize] = end.clone();
            end
        }
    });
    let ends = std::mem::take(&mut *ends.lock().unwrap());
    assert_eq!(result.is_ok(), ends.iter().all(Result::is_ok), "{ends:?}");
    ends
}

async fn rounds(ctx: &Context, plan: &Plan, gates: &[Gate]) -> Result<(), Error> {
    let memory = common::array(ctx, vec![0u64; UNITS * UNIT])?;
    // SAFETY: operations follow each other, and no task has a guard of it.
    let slot = unsafe { ctx.register_raw(&memory) }.await?;
    let local = common::array(ctx, vec![0u64; UNITS * UNIT])?;
    ctx.register_local(&local)?;
    let mut gates = gates.iter();
    let mut passed = gates.next();
    for round in plan {
        for operation in round {
            let next = gates.next();
            if operation.source == ctx.rank().0 {
                passed.unwrap().passed().await;
                operation.run(ctx, &slot, &local).await?;
                next.unwrap().open();
            }
            passed = next;
        }
        for lane in LANES {
            ctx.lane(lane)?.sync(SyncMode::DEFAULT).await?;
        }
    }
    Ok(())
}

fn config(check_conflicts: bool) -> Config {
    Config { check_conflicts, ..common::unwatched(RANKS, 2) }
}

#[track_caller]
fn no_conflict(plan: Plan) {
    for end in ends(&plan, config(true)) {
        end.unwrap();
    }
}

/// In whatever order the operations of the last round come, the ranks of the conflict get the error
/// with what `report` says, and the others who has failed and why.
#[track_caller]
fn conflict(mut plan: Plan, ranks: &[u32], report: &str) {
    let report = &*format!("{report}: a round must not read and write one location");
    for _ in 0..2 {
        plan.last_mut().unwrap().reverse();
        for (rank, end) in ends(&plan, config(true)).into_iter().enumerate() {
            match end.unwrap_err() {
                Error::PeerFailed { rank: failed, reason } if !ranks.contains(&(rank as u32)) => {
                    assert_eq!((failed, &*reason), (Rank(ranks[0]), report));
                }
                error => {
                    assert!(ranks.contains(&(rank as u32)), "{rank}: {error}");
                    assert!(matches!(error, Error::Conflict { .. }), "{rank}: {error}");
                    assert_eq!(error.to_string(), report, "{rank}");
                }
            }
        }
    }
}

#[test]
fn a_get_and_a_put() {
    let round = vec![operation(0, Get, 1..4), operation(1, Put, 3..5)];
    let report =
        "lane 0 round 0: rank 0 gets and rank 1 puts elements 120..160 of slot 0 at rank 2";
    conflict(vec![round], &[2, 0, 1], report);
}

#[test]
fn a_get_and_an_update() {
    let round = vec![operation(0, Get, 1..4), operation(1, Update, 3..4)];
    let report =
        "lane 0 round 0: rank 0 gets and rank 1 updates elements 120..121 of slot 0 at rank 2";
    conflict(vec![round], &[2, 0, 1], report);
}

#[test]
fn an_update_and_a_put() {
    let round = vec![operation(0, Put, 1..4), operation(1, Update, 3..4)];
    let report =
        "lane 0 round 0: rank 1 updates and rank 0 puts elements 120..121 of slot 0 at rank 2";
    conflict(vec![round], &[2, 0, 1], report);
}

#[test]
fn operations_of_one_rank_and_of_the_target_itself() {
    let round = vec![operation(1, Get, 1..2), operation(1, Put, 1..2)];
    let report = "lane 0 round 0: rank 1 gets and rank 1 puts elements 40..80 of slot 0 at rank 2";
    conflict(vec![round], &[2, 1], report);
    let round = vec![operation(0, Get, 1..2), operation(2, Put, 1..2)];
    let report = "lane 0 round 0: rank 0 gets and rank 2 puts elements 40..80 of slot 0 at rank 2";
    conflict(vec![round], &[2, 0], report);
}

#[test]
fn a_later_round_of_another_lane_after_rounds_without() {
    let get = Operation { lane: 1, ..operation(0, Get, 1..2) };
    let put = Operation { lane: 1, ..operation(1, Put, 1..2) };
    let report = "lane 3 round 2: rank 0 gets and rank 1 puts elements 40..80 of slot 0 at rank 2";
    let plan = vec![vec![put.clone()], vec![get.clone()], vec![get, put]];
    conflict(plan, &[2, 0, 1], report);
}

/// Operations that follow each other are joined.
#[test]
fn several_puts_and_a_long_get() {
    let mut round: Vec<_> = [2, 5, 3, 4, 3].map(|unit| operation(1, Put, unit..unit + 1)).into();
    round.push(operation(0, Get, 0..7));
    let report = "lane 0 round 0: rank 0 gets and rank 1 puts elements 80..240 of slot 0 at rank 2";
    conflict(vec![round], &[2, 0, 1], report);
}

#[test]
fn neighbours_are_no_conflict() {
    no_conflict(vec![vec![
        operation(0, Get, 1..3),
        operation(1, Put, 3..5),
        operation(3, Put, 0..1),
        operation(3, Put, 2..2),
        operation(1, Update, 6..7),
        operation(0, Get, 5..6),
    ]]);
}

#[test]
fn rounds_lanes_and_targets_are_apart() {
    let (get, put) = (operation(0, Get, 1..4), operation(1, Put, 3..5));
    let other_lane = Operation { lane: 1, ..put.clone() };
    let other_target = Operation { target: 3, ..put.clone() };
    no_conflict(vec![
        vec![get.clone()],
        vec![put.clone()],
        vec![get.clone(), other_lane],
        vec![other_target, get],
        vec![put],
    ]);
}

#[test]
fn operations_of_one_kind_are_no_conflict() {
    no_conflict(vec![
        vec![operation(0, Put, 1..4), operation(1, Put, 3..5), operation(1, Put, 1..2)],
        vec![operation(0, Get, 1..4), operation(1, Get, 3..5), operation(1, Get, 1..2)],
        vec![operation(0, Update, 1..2), operation(1, Update, 1..2), operation(2, Update, 1..2)],
    ]);
}

#[test]
fn no_conflict_is_found_unless_asked_for() {
    let plan = vec![vec![operation(0, Get, 1..4), operation(1, Put, 3..5)]];
    for end in ends(&plan, config(false)) {
        end.unwrap();
    }
    assert_eq!(Config::default().check_conflicts, cfg!(debug_assertions));
}

/// More than are kept as they come: the notes of a round are joined meanwhile.
#[test]
fn short_puts_that_travel_together() {
    for (get, is_conflict) in [(900, false), (899, true)] {
        let result = common::run(config(true), move |ctx| async move {
            let memory = common::array(&ctx, vec![0u64; 1000])?;
            // SAFETY: one rank does it all, one after another, and nobody has a guard of it.
            let slot = unsafe { ctx.register_raw(&memory) }.await?;
            let local = common::array(&ctx, vec![0u64; 100])?;
            ctx.register_local(&local)?;
            if ctx.rank() == Rank(0) {
                ctx.get(slot.at(Rank(1), get), &local.all())?;
                common::read(&ctx, &local).await?;
                let round = ctx.round();
                for at in (0..900).rev().step_by(2).chain((0..900).step_by(2)) {
                    round.put_copy(&[1u64], slot.at(Rank(1), at)).await?;
                }
            }
            ctx.sync(SyncMode::DEFAULT).await
        });
        assert_eq!(result.is_err(), is_conflict, "{result:?}");
        let expected = "rank 0 gets and rank 0 puts elements 899..900 of slot 0 at rank 1";
        result.err().iter().for_each(|error| common::says(error, &["lane 0 round 0", expected]));
    }
}

/// In windows, too: they let both land.
#[test]
fn an_update_and_a_put_in_a_window() {
    for (cell, is_conflict) in [(4, false), (3, true)] {
        let result = common::run(config(true), move |ctx| async move {
            let cells = common::array(&ctx, vec![0u64; 8])?;
            let slot = ctx.register_global(&cells).await?;
            let local = common::array(&ctx, vec![0u64; 4])?;
            ctx.register_local(&local)?;
            match ctx.rank() {
                Rank(0) => ctx.put(&local.all(), slot.at(Rank(2), 0))?,
                Rank(1) => ctx.fetch_and_add(slot.at(Rank(2), cell), 1, &local.region(..1))?,
                _ => {}
            }
            ctx.sync(SyncMode::DEFAULT).window(&cells.all()).await
        });
        assert_eq!(result.is_err(), is_conflict, "{result:?}");
        let expected = "rank 1 updates and rank 0 puts elements 3..4 of slot 0 at rank 2";
        result.err().iter().for_each(|error| common::says(error, &["lane 0 round 0", expected]));
    }
}

/// Returns, by lane and target, the first round in which operations of two kinds touch an element,
/// and the lowest such element.
fn oracle(plan: &Plan) -> BTreeMap<(usize, u32), (usize, usize)> {
    let mut conflicts = BTreeMap::new();
    for (number, round) in plan.iter().enumerate() {
        for (lane, target) in (0..LANES.len()).flat_map(|lane| (0..RANKS).map(move |t| (lane, t))) {
            let here = |op: &&Operation| (op.lane, op.target) == (lane, target);
            let verbs = |element: usize| {
                let touch = round.iter().filter(here).filter(|op| op.elements().contains(&element));
                touch.map(|op| op.verb).collect::<BTreeSet<_>>()
            };
            let mut elements = 0..UNITS * UNIT;
            if let Some(first) = elements.find(|element| verbs(*element).len() > 1) {
                conflicts.entry((lane, target)).or_insert((number, first));
            }
        }
    }
    conflicts
}

fn operations() -> impl Strategy<Value = Operation> {
    let verb = prop_oneof![3 => Just(Put), 3 => Just(Get), 1 => Just(Update)];
    let (lane, rank, unit) = (0..LANES.len(), 0..RANKS, 0..UNITS);
    (lane, rank.clone(), verb, 1..rank.end, unit, 1..3usize).prop_map(
        |(lane, source, verb, target, first, len)| {
            let units = first..(first + len).min(UNITS);
            Operation { lane, source, verb, target, units }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn as_the_oracle_says(plan in prop::collection::vec(prop::collection::vec(operations(), 0..8), 1..4)) {
        let expected = oracle(&plan);
        let ends = ends(&plan, config(true));
        prop_assert_eq!(ends.iter().all(Result::is_ok), expected.is_empty(), "{:?}", ends);
        for error in ends.into_iter().filter_map(Result::err) {
            let Error::Conflict { lane, round, reader, reads, writer, writes, target, index, end, .. } = error else {
                prop_assert!(matches!(error, Error::PeerFailed { .. }), "{}", error);
                continue;
            };
            let lane = LANES.iter().position(|known| *known == lane.0).unwrap();
            let known = expected.get(&(lane, target.0));
            prop_assert_eq!(known, Some(&(round.0 as usize, index as usize)));
            let has = |source: Rank, verb: &str| plan[round.0 as usize].iter().any(|op| {
                let verbs = [(Get, "gets"), (Update, "updates"), (Put, "puts")];
                (op.lane, op.target, op.source) == (lane, target.0, source.0)
                    && verbs.contains(&(op.verb, verb))
                    && op.elements().contains(&(index as usize))
            });
            prop_assert!(has(reader, reads) && has(writer, writes) && index < end);
        }
    }
}
