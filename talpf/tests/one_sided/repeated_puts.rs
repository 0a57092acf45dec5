//! Programs that repeat most of their long puts from round to round give what their puts, one after another, give.
//! Between processes windows give tickets for such puts.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use talpf::{Config, Error, Rank, SyncMode};

use crate::common;

/// Elements of a target that a source puts to.
const SPAN: usize = 1200;

/// The elements that a rank puts to another one in a round: the first one of those for it, and their number.
type Put = Option<(usize, usize)>;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    /// By round, source and target.
    rounds: Vec<Vec<Vec<Put>>>,
    /// `true` if each source has a window of its own.
    has_many_windows: bool,
    awaits_each: bool,
    is_known: bool,
}

fn put() -> impl Strategy<Value = Put> {
    let whole = Just(Some((0, SPAN)));
    let part = (0..SPAN, 1..SPAN).prop_map(|(at, len)| Some((at, len.min(SPAN - at))));
    prop_oneof![2 => whole, 2 => part, 1 => Just(None)]
}

/// Most puts are those of the round before.
fn rounds(ranks: usize) -> impl Strategy<Value = Vec<Vec<Vec<Put>>>> {
    let change = prop_oneof![4 => Just(None), 1 => put().prop_map(Some)];
    let changes = prop::collection::vec(prop::collection::vec(change, ranks * ranks), 2..10);
    (prop::collection::vec(put(), ranks * ranks), changes).prop_map(move |(first, changes)| {
        let mut rounds = vec![first];
        for changes in changes {
            let before = &rounds[rounds.len() - 1];
            let change = |(before, change): (&Put, Option<Put>)| change.unwrap_or(*before);
            rounds.push(before.iter().zip(changes).map(change).collect());
        }
        let by_source = |round: Vec<Put>| round.chunks(ranks).map(<[Put]>::to_vec).collect();
        rounds.into_iter().map(by_source).collect()
    })
}

fn program() -> impl Strategy<Value = Program> {
    let flags = any::<[bool; 3]>();
    (2usize..5).prop_flat_map(move |ranks| (Just(ranks), rounds(ranks), flags)).prop_map(
        |(ranks, rounds, [has_many_windows, awaits_each, is_known])| Program {
            ranks,
            rounds,
            has_many_windows,
            awaits_each,
            is_known,
        },
    )
}

fn value(round: usize, source: usize, element: usize) -> u64 {
    (round as u64) << 40 | (source as u64) << 32 | element as u64
}

/// Returns the inboxes of each rank after each round.
fn serial(program: &Program) -> Vec<Vec<u64>> {
    let mut inboxes = vec![vec![0; program.ranks * SPAN]; program.ranks];
    let mut seen = vec![Vec::new(); program.ranks];
    for (round, puts) in program.rounds.iter().enumerate() {
        for (source, targets) in puts.iter().enumerate() {
            for (target, put) in targets.iter().enumerate() {
                for element in put.iter().flat_map(|(at, len)| *at..at + len) {
                    inboxes[target][source * SPAN + element] = value(round, source, element);
                }
            }
        }
        for (seen, inbox) in seen.iter_mut().zip(&inboxes) {
            seen.push(digest(inbox));
        }
    }
    seen
}

fn digest(inbox: &[u64]) -> u64 {
    inbox.iter().fold(0, |sum, value| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(*value))
}

fn run(program: &Program, workers: usize, credits: usize) -> Vec<Vec<u64>> {
    let config = common::config(program.ranks as u32, workers);
    let config = Config { credits, check_conflicts: false, ..config };
    let ends = common::run(config, |ctx| {
        let program = program.clone();
        async move {
            let me = ctx.rank().0 as usize;
            let mine = common::array(&ctx, vec![0u64; SPAN])?;
            let inbox = common::array(&ctx, vec![0u64; program.ranks * SPAN])?;
            let slot = ctx.register_global(&inbox).await?;
            ctx.register_local(&mine)?;
            let seen = Arc::new(Mutex::new(Vec::new()));
            for (round, puts) in program.rounds.iter().enumerate() {
                ctx.group().task("fill").output(&mine.all()).spawn(move |mut mine| {
                    for (element, to) in mine.iter_mut().enumerate() {
                        *to = value(round, me, element);
                    }
                })?;
                for (target, put) in puts[me].iter().enumerate() {
                    if let Some((at, len)) = *put {
                        let to = slot.at(Rank(target as u32), me * SPAN + at);
                        ctx.put(&mine.region(at..at + len), to)?;
                    }
                }
                let arrivals = puts.iter().filter(|targets| targets[me].is_some()).count();
                let mode = match program.is_known {
                    true => SyncMode::msg(arrivals as u32),
                    false => SyncMode::DEFAULT,
                };
                let mut sync = ctx.sync(mode);
                if program.has_many_windows {
                    for source in 0..program.ranks {
                        sync = sync.window(&inbox.region(source * SPAN..(source + 1) * SPAN));
                    }
                } else {
                    sync = sync.window(&inbox.all());
                }
                let sync = sync.spawn()?;
                let to = Arc::clone(&seen);
                ctx.group().task("see").input(&inbox.all()).spawn(move |inbox| {
                    to.lock().unwrap().push(digest(&inbox));
                })?;
                if program.awaits_each {
                    sync.await?;
                }
            }
            ctx.group().wait().await?;
            let seen = std::mem::take(&mut *seen.lock().unwrap());
            Ok::<_, Error>(seen)
        }
    });
    ends.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn programs_see_what_was_put(
        program in program(), workers in 1usize..4, credits in prop_oneof![Just(1usize), Just(64)],
    ) {
        prop_assert_eq!(run(&program, workers, credits), serial(&program));
    }
}
