//! Random programs give what running them superstep by superstep, one rank after another, gives.

use crate::common;
use ibverbs_sim::FaultPlan;
use proptest::prelude::*;
use talpf::{Context, Error, Lane, MemorySlot, Rank, SyncMode};
use talpf_runtime::Array;

/// Elements of every array.
const LEN: usize = 96;
/// Results of atomics, a tile each.
const OLDS: usize = 4;

/// An operation of a rank, the only one of the round that writes its elements.
#[derive(Clone, Debug)]
enum Operation {
    Put { from: usize, to: (usize, usize), len: usize },
    Get { from: (usize, usize), to: usize, len: usize },
    Add { to: (usize, usize), add: u64, result: usize },
}

/// The memory of a rank in one lane.
#[derive(Clone, Debug, PartialEq)]
struct Memory {
    source: Vec<u64>,
    inbox: Vec<u64>,
    shown: Vec<u64>,
    counters: Vec<u64>,
    got: Vec<u64>,
    olds: Vec<u64>,
}

/// Operations by rank, of one round of one lane.
type RoundPlan = Vec<Vec<Operation>>;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    lanes: Vec<u8>,
    /// By lane and round.
    rounds: Vec<Vec<RoundPlan>>,
    mode: SyncMode,
    await_each: bool,
}

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

fn round_plan(dice: &mut Dice, ranks: usize) -> RoundPlan {
    let mut plan = vec![Vec::new(); ranks];
    let mut inbox_used = vec![0; ranks];
    let mut got_used = vec![0; ranks];
    let mut olds_used = vec![0; ranks];
    let mut counter_used = vec![[false; 4]; ranks];
    for _ in 0..dice.below(6 * ranks) {
        let (me, peer) = (dice.below(ranks), dice.below(ranks));
        let len = if dice.below(2) == 0 { dice.below(8) } else { dice.below(60) };
        match dice.below(4) {
            0 | 1 => {
                let to = inbox_used[peer] + dice.below(3);
                if to + len <= LEN {
                    inbox_used[peer] = to + len;
                    let from = dice.below(LEN - len + 1);
                    plan[me].push(Operation::Put { from, to: (peer, to), len });
                }
            }
            2 => {
                let to = got_used[me] + dice.below(3);
                if to + len <= LEN {
                    got_used[me] = to + len;
                    let from = (peer, dice.below(LEN - len + 1));
                    plan[me].push(Operation::Get { from, to, len });
                }
            }
            _ => {
                let (cell, result) = (dice.below(4), olds_used[me]);
                if result < OLDS && !std::mem::replace(&mut counter_used[peer][cell], true) {
                    olds_used[me] += 1;
                    let add = dice.below(1_000) as u64;
                    plan[me].push(Operation::Add { to: (peer, cell), add, result });
                }
            }
        }
    }
    plan
}

fn program(seed: u64, ranks: usize, mode: SyncMode, lanes: &[u8], rounds: usize) -> Program {
    let dice = &mut Dice(seed);
    let fixed = mode.arrivals == talpf::Arrivals::Cached;
    let of_lane = |dice: &mut Dice| {
        let first = round_plan(dice, ranks);
        let round = |_| if fixed { first.clone() } else { round_plan(dice, ranks) };
        (0..rounds).map(round).collect()
    };
    Program {
        ranks,
        lanes: lanes.to_vec(),
        rounds: lanes.iter().map(|_| of_lane(dice)).collect(),
        mode,
        await_each: dice.below(2) == 0,
    }
}

impl Memory {
    fn new(rank: usize, lane: usize) -> Self {
        let numbers = |salt: u64| {
            (0..LEN as u64).map(move |at| at << 16 | salt << 8 | (rank + 10 * lane) as u64)
        };
        Memory {
            source: numbers(1).collect(),
            inbox: numbers(2).collect(),
            shown: numbers(3).collect(),
            counters: vec![0; 4],
            got: numbers(4).collect(),
            olds: vec![0; OLDS],
        }
    }
}

/// Computes as a rank does between two rounds: every value depends on all.
fn compute(source: &mut [u64], shown: &mut [u64], inbox: &[u64], got: &[u64], olds: &[u64]) {
    let carry = olds.iter().fold(0u64, |sum, old| sum.wrapping_mul(31).wrapping_add(*old));
    for at in 0..LEN {
        source[at] = source[at].wrapping_mul(5).wrapping_add(inbox[at] ^ got[LEN - 1 - at]);
        shown[at] = shown[at].wrapping_add(source[at].rotate_left(7) ^ carry);
    }
}

/// Runs a program serially, as the oracle.
fn serial(program: &Program) -> Vec<Vec<Memory>> {
    let memories = |lane| (0..program.ranks).map(move |rank| Memory::new(rank, lane));
    let mut all: Vec<Vec<Memory>> =
        (0..program.lanes.len()).map(|lane| memories(lane).collect()).collect();
    for (lane, rounds) in program.rounds.iter().enumerate() {
        let ranks = &mut all[lane];
        for round in rounds {
            for (me, operations) in round.iter().enumerate() {
                for operation in operations {
                    match *operation {
                        Operation::Put { from, to: (peer, to), len } => {
                            let values = ranks[me].source[from..from + len].to_vec();
                            ranks[peer].inbox[to..to + len].copy_from_slice(&values);
                        }
                        Operation::Get { from: (peer, from), to, len } => {
                            let values = ranks[peer].shown[from..from + len].to_vec();
                            ranks[me].got[to..to + len].copy_from_slice(&values);
                        }
                        Operation::Add { to: (peer, cell), add, result } => {
                            ranks[me].olds[result] = ranks[peer].counters[cell];
                            ranks[peer].counters[cell] += add;
                        }
                    }
                }
            }
            for Memory { source, inbox, shown, got, olds, .. } in ranks.iter_mut() {
                compute(source, shown, inbox, got, olds);
            }
        }
    }
    all
}

/// The arrays and slots of one rank in one lane.
struct Arrays {
    source: Array<u64>,
    inbox: (Array<u64>, MemorySlot<u64>),
    shown: (Array<u64>, MemorySlot<u64>),
    counters: (Array<u64>, MemorySlot<u64>),
    got: Array<u64>,
    olds: Array<u64>,
}

async fn global(
    ctx: &Context,
    values: Vec<u64>,
    tile: usize,
) -> Result<(Array<u64>, MemorySlot<u64>), Error> {
    let array = Array::new(ctx.group(), values, tile)?;
    let slot = ctx.register_global(&array).await?;
    Ok((array, slot))
}

fn local(ctx: &Context, values: Vec<u64>, tile: usize) -> Result<Array<u64>, Error> {
    let array = Array::new(ctx.group(), values, tile)?;
    ctx.register_local(&array)?;
    Ok(array)
}

impl Arrays {
    async fn new(ctx: &Context, lane: usize) -> Result<Self, Error> {
        let memory = Memory::new(ctx.rank().0 as usize, lane);
        Ok(Arrays {
            source: local(ctx, memory.source, 13)?,
            inbox: global(ctx, memory.inbox, 40).await?,
            shown: global(ctx, memory.shown, 96).await?,
            counters: global(ctx, memory.counters, 4).await?,
            got: local(ctx, memory.got, 7)?,
            olds: local(ctx, memory.olds, 1)?,
        })
    }

    fn issue(&self, lane: &Lane, operation: &Operation) -> Result<(), Error> {
        let round = lane.round();
        match *operation {
            Operation::Put { from, to: (peer, to), len } => {
                let to = self.inbox.1.at(Rank(peer as u32), to);
                lane.put(&self.source.region(from..from + len), to)
            }
            Operation::Get { from: (peer, from), to, len } => {
                let slot = self.shown.1.clone();
                let task = lane.group().task("get").output(&self.got.region(to..to + len));
                let get = move |to| drop(round.get(slot.at(Rank(peer as u32), from), to));
                Ok(task.spawn(get)?)
            }
            Operation::Add { to: (peer, cell), add, result } => {
                let slot = self.counters.1.clone();
                let task = lane.group().task("add").inout(&self.olds.tile(result));
                let fetch = move |old| {
                    drop(round.fetch_and_add(slot.at(Rank(peer as u32), cell), add, old))
                };
                Ok(task.spawn(fetch)?)
            }
        }
    }

    fn compute(&self, ctx: &Context) -> Result<(), Error> {
        let task = ctx.group().task("compute").inout(&self.source.all()).inout(&self.shown.0.all());
        let task = task.input(&self.inbox.0.all()).input(&self.got.all()).input(&self.olds.all());
        Ok(task.spawn(|mut source, mut shown, inbox, got, olds| {
            compute(&mut source, &mut shown, &inbox, &got, &olds);
        })?)
    }

    async fn read(&self, ctx: &Context) -> Result<Memory, Error> {
        Ok(Memory {
            source: common::read(ctx, &self.source).await?,
            inbox: common::read(ctx, &self.inbox.0).await?,
            shown: common::read(ctx, &self.shown.0).await?,
            counters: common::read(ctx, &self.counters.0).await?,
            got: common::read(ctx, &self.got).await?,
            olds: common::read(ctx, &self.olds).await?,
        })
    }
}

/// Returns the number of operations that reach `rank` in a round.
fn arrivals(round: &RoundPlan, rank: usize) -> u32 {
    let reaches = |operation: &&Operation| match **operation {
        Operation::Put { to: (peer, _), .. }
        | Operation::Get { from: (peer, _), .. }
        | Operation::Add { to: (peer, _), .. } => peer == rank,
    };
    round.iter().flatten().filter(reaches).count() as u32
}

fn run(program: &Program, workers: usize, credits: usize) -> Vec<Vec<Memory>> {
    let config = common::config(program.ranks as u32, workers);
    run_with(talpf::Config { credits, ..config }, program)
}

fn run_with(config: talpf::Config, program: &Program) -> Vec<Vec<Memory>> {
    let ends = common::run(config, |ctx| {
        let program = program.clone();
        async move {
            let me = ctx.rank().0 as usize;
            let mut lanes = Vec::new();
            for (at, number) in program.lanes.iter().enumerate() {
                lanes.push((ctx.lane(*number)?, Arrays::new(&ctx, at).await?));
            }
            for round in 0..program.rounds[0].len() {
                for (at, (lane, arrays)) in lanes.iter().enumerate() {
                    let plan = &program.rounds[at][round];
                    for operation in &plan[me] {
                        arrays.issue(lane, operation)?;
                    }
                    let mut mode = program.mode;
                    if let talpf::Arrivals::Msg(_) = mode.arrivals {
                        mode.arrivals = talpf::Arrivals::Msg(arrivals(plan, me));
                    }
                    let sync = lane.sync(mode).window(&arrays.inbox.0.all());
                    let sync = sync.window(&arrays.counters.0.all()).expose(&arrays.shown.0.all());
                    let sync = sync.spawn()?;
                    arrays.compute(&ctx)?;
                    if program.await_each {
                        sync.await?;
                    }
                }
            }
            ctx.group().wait().await?;
            let mut memories = Vec::new();
            for (_, arrays) in &lanes {
                memories.push(arrays.read(&ctx).await?);
            }
            Ok::<_, Error>(memories)
        }
    });
    let by_rank = ends.unwrap();
    let of_lane = |lane: usize| by_rank.iter().map(move |lanes| lanes[lane].clone()).collect();
    (0..program.lanes.len()).map(of_lane).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 100 } else { 300 }))]
    #[test]
    fn as_the_serial_oracle(
        seed in any::<u64>(), ranks in 1usize..6, workers in 1usize..5, mode in 0usize..10,
        lanes in prop_oneof![Just(vec![0u8]), Just(vec![0, 1]), Just(vec![5, 0, 255])],
        rounds in 1usize..8, credits in prop_oneof![Just(1usize), Just(2), Just(64)],
    ) {
        let program = program(seed, ranks, common::modes(0)[mode], &lanes, rounds);
        prop_assert_eq!(run(&program, workers, credits), serial(&program));
    }
}

#[test]
fn a_bad_link_changes_nothing() {
    for seed in 0..4 {
        let program = program(seed, 3, common::modes(0)[seed as usize], &[0], 5);
        let mut config = common::config(3, 2);
        config.device.fault = Some(FaultPlan {
            seed,
            drop_request_ppm: 20_000,
            drop_response_ppm: 20_000,
            duplicate_ppm: 200_000,
            delay_ppm: 100_000,
            max_delay_ns: 100_000,
            reorder_ppm: 100_000,
        });
        assert_eq!(run_with(config, &program), serial(&program), "seed {seed}");
    }
}
