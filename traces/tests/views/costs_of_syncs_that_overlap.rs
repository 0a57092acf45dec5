//! The syncs of a rank cost together the time in which at least one of them was awaited.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use talpf_traces::{Diff, Event, Recorder, Summary, SyncArrivals, SyncMode, WaitNs};
use tempfile::TempDir;

use crate::support::info;

const RANKS: u32 = 2;
const END_NS: u64 = 200;
const MODES: [SyncMode; 2] = [mode(SyncArrivals::Cached), mode(SyncArrivals::Default)];

const fn mode(arrivals: SyncArrivals) -> SyncMode {
    SyncMode { arrivals, barrier: false, ack: false }
}

/// Round of a rank. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    rank: u32,
    mode: SyncMode,
    /// End asked for, own operations done, and round ended.
    asked: u64,
    posted: u64,
    ended: u64,
}

fn round() -> impl Strategy<Value = Round> {
    let mode = (0..MODES.len()).prop_map(|mode| MODES[mode]);
    // Many are short, so that there are gaps between them.
    let waits = (0..10_u64, prop_oneof![0..8_u64, 0..80_u64]);
    (0..RANKS, mode, 0..100_u64, waits).prop_map(|(rank, mode, asked, (own, cost))| {
        let posted = asked + own;
        Round { rank, mode, asked, posted, ended: posted + cost }
    })
}

/// Returns the summary of a run with these rounds, each on a lane of its own, and its difference to itself.
fn summary_of(rounds: &[Round]) -> (Summary, Diff) {
    let mut events = Vec::new();
    for (lane, &Round { rank, mode, asked, posted, ended }) in (0..).zip(rounds) {
        let begin = Event::SyncBegin { rank, lane, round: 0, mode, expected: None };
        let (posted, arrived) = (WaitNs::between(posted, ended), WaitNs::default());
        events.push((asked, begin));
        events.push((ended, Event::SyncEnd { rank, lane, round: 0, posted, arrived }));
    }
    events.sort_by_key(|(time_ns, _)| *time_ns);
    let recorder = Recorder::default();
    let mut stream = recorder.stream(0);
    events.into_iter().for_each(|(time_ns, event)| stream.record(time_ns, event));
    drop(stream);
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(RANKS, 1, END_NS)).unwrap();
    let of = || Summary::of(&files.prv).unwrap();
    (of(), Diff::between(of(), of()))
}

/// Counts the nanoseconds that lie in the cost of at least one of the rounds.
fn awaited<'a>(rounds: impl Iterator<Item = &'a Round>) -> u64 {
    rounds.flat_map(|round| round.posted..round.ended).collect::<HashSet<u64>>().len() as u64
}

proptest! {
    #[test]
    fn time_in_several_costs_counts_once(rounds in prop::collection::vec(round(), 0..30)) {
        let (summary, diff) = summary_of(&rounds);
        let of_rank = |rank| rounds.iter().filter(move |round| round.rank == rank);
        for (number, rank) in (0..).zip(&summary.ranks) {
            prop_assert_eq!(rank.rounds, of_rank(number).count() as u64);
            prop_assert_eq!(rank.sync_ns, awaited(of_rank(number)));
            prop_assert!(rank.sync_ns <= summary.duration_ns);
        }
        let mut expected = BTreeMap::new();
        for mode in MODES {
            let of_mode = |rank| of_rank(rank).filter(move |round| round.mode == mode);
            let count = (0..RANKS).map(|rank| of_mode(rank).count() as u64).sum::<u64>();
            if count > 0 {
                let total = (0..RANKS).map(|rank| awaited(of_mode(rank))).sum::<u64>();
                expected.insert(mode.name().to_owned(), (count, total));
            }
        }
        let totals: BTreeMap<_, _> = summary
            .syncs
            .iter()
            .map(|(mode, costs)| (mode.clone(), (costs.count, costs.total_ns)))
            .collect();
        prop_assert_eq!(&totals, &expected);
        let of_diff = diff.syncs.iter().map(|(mode, change)| (mode.clone(), change.second));
        let of_diff: BTreeMap<_, _> =
            of_diff.map(|(mode, costs)| (mode, (costs.count, costs.total_ns))).collect();
        prop_assert_eq!(&of_diff, &expected);
    }
}

#[test]
fn the_median_is_that_of_single_rounds() {
    let round = |posted, ended| Round { rank: 0, mode: MODES[0], asked: 5, posted, ended };
    let (summary, _) = summary_of(&[round(10, 50), round(20, 60), round(30, 70), round(100, 140)]);
    let costs = summary.syncs["cached"];
    assert_eq!((costs.count, costs.median_ns, costs.p99_ns), (4, 40, 40));
    assert_eq!((costs.total_ns, summary.ranks[0].sync_ns), (100, 100));
    let text = summary.to_string();
    assert!(text.contains("in syncs") && text.contains("100 ns"), "{text}");
    assert!(Summary::EXPLANATION.contains("\ntotal cost of syncs "));
}
