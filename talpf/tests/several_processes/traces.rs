//! Each process records a trace of its own; together they are that of one process.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Context, Error, Rank, SyncMode};
use talpf_traces::paraver::{self, TraceInfo};
use talpf_traces::{Extent, Keep, Limits, PairSummary, Recorder, Summary};

use crate::common;

const RANKS: u32 = 3;

const ROUNDS: u64 = 5;

/// Elements of puts that are copied, and of longer ones.
const LENGTHS: [usize; 2] = [3, 5_000];

/// Puts to the next rank on two lanes, whose windows open in another order than their puts are called.
async fn program(ctx: Context) -> Result<(), Error> {
    let next = Rank((ctx.rank().0 + 1) % RANKS);
    let lanes = [ctx.lane(1)?, ctx.lane(2)?];
    let mut slots = Vec::new();
    for len in LENGTHS {
        let mine = common::array(&ctx, vec![1u64; len])?;
        let inbox = common::array(&ctx, vec![0u64; len])?;
        ctx.register_local(&mine)?;
        let slot = ctx.register_global(&inbox).await?;
        slots.push((mine, inbox, slot));
    }
    for _ in 0..10 {
        for (lane, (mine, _, slot)) in lanes.iter().zip(&slots) {
            lane.put(&mine.all(), slot.at(next, 0))?;
        }
        let mut syncs = Vec::new();
        for (lane, (_, inbox, _)) in lanes.iter().zip(&slots).rev() {
            syncs.push(lane.sync(SyncMode::DEFAULT).window(&inbox.all()).spawn()?);
        }
        for sync in syncs {
            sync.await?;
        }
    }
    Ok(())
}

/// Runs a program in a process for each rank, and returns their traces.
fn traced<F>(
    folder: &Path,
    control: bool,
    program: impl Fn(Context) -> F + Sync,
) -> Vec<std::path::PathBuf>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (records, keep, extent) = (1 << 20, Keep::First, Extent::Whole);
    let limits = Limits { records, keep, extent, edges: false, control };
    let recorders: Vec<Recorder> =
        (0..RANKS).map(|_| Recorder::with_limits(limits.clone())).collect();
    let wires = SocketWire::mesh(RANKS).unwrap().into_iter().zip(&recorders);
    let ranks = wires.map(|(wire, recorder)| {
        let mut config = common::config(RANKS, 2);
        config.runtime.recorder = Some(recorder.clone());
        (Arc::new(wire) as Arc<dyn Wire>, config)
    });
    for ended in common::on_wires(ranks.collect(), program) {
        ended.unwrap();
    }
    let write = |recorder: &Recorder| {
        let files = recorder.write_paraver(folder, "t", &TraceInfo::default()).unwrap();
        let report = paraver::check(&files.prv).unwrap();
        assert!(report.is_clean(), "{report}");
        files.prv
    };
    recorders.iter().map(write).collect()
}

#[test]
fn messages_of_all_lanes_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = traced(folder.path(), false, program);
    let merged = paraver::merge(&pieces, folder.path().join("t.prv")).unwrap();
    let report = paraver::check(&merged.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let summary = Summary::of(&merged.prv).unwrap();
    let bytes = 10 * 8 * LENGTHS.iter().sum::<usize>() as u64;
    let pair = |from| PairSummary { from, to: (from + 1) % RANKS, messages: 20, bytes };
    assert_eq!(summary.messages.pairs, (0..RANKS).map(pair).collect::<Vec<_>>());

    let text = std::fs::read_to_string(&merged.prv).unwrap();
    assert!(text.contains("# clocks of all processes corrected, within "), "{text}");
    assert!(!text.contains("in none of these traces"), "{text}");
    // The tag is the round, and each message has the size of its lane.
    for (round, size) in (0..10).flat_map(|round| LENGTHS.map(|len| (round, 8 * len))) {
        let end = format!(":{size}:{round}");
        let of_round = text.lines().filter(|line| line.starts_with("3:") && line.ends_with(&end));
        assert_eq!(of_round.count(), RANKS as usize, "{size} bytes, round {round}");
    }
}

/// Additions to a number of the next rank, each in a window.
async fn counted(ctx: Context) -> Result<(), Error> {
    let next = Rank((ctx.rank().0 + 1) % RANKS);
    let counter = common::array(&ctx, vec![0u64])?;
    let slot = ctx.register_global(&counter).await?;
    let found = common::array(&ctx, vec![0u64])?;
    for _ in 0..ROUNDS {
        ctx.fetch_and_add(slot.at(next, 0), 1, &found.all())?;
        ctx.sync(SyncMode::DEFAULT).window(&counter.all()).await?;
    }
    Ok(())
}

#[test]
fn atomics_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = traced(folder.path(), false, counted);
    let merged = paraver::merge(&pieces, folder.path().join("t.prv")).unwrap();
    let text = std::fs::read_to_string(&merged.prv).unwrap();
    assert!(!text.contains("in none of these traces"), "{text}");
    let messages = Summary::of(&merged.prv).unwrap().messages;
    let pair = |from| PairSummary { from, to: (from + 1) % RANKS, messages: ROUNDS, bytes: 0 };
    assert_eq!(messages.pairs, (0..RANKS).map(pair).collect::<Vec<_>>());
}

/// Puts to the next rank in rounds that end with acknowledgements, and in one that does not. What follows the
/// end of the recording leaves no message, and no half of one.
async fn acknowledged(ctx: Context) -> Result<(), Error> {
    let next = Rank((ctx.rank().0 + 1) % RANKS);
    let mine = common::array(&ctx, vec![1u64])?;
    let inbox = common::array(&ctx, vec![0u64])?;
    let slot = ctx.register_global(&inbox).await?;
    for _ in 0..ROUNDS {
        ctx.put(&mine.all(), slot.at(next, 0))?;
        ctx.sync(SyncMode::msg(1).with_ack()).window(&inbox.all()).await?;
    }
    ctx.sync(SyncMode::DEFAULT).await?;
    ctx.stop_trace();
    let inbox = common::array(&ctx, vec![0u64])?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.put(&mine.all(), slot.at(next, 0))?;
    ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
}

#[test]
fn control_messages_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let pieces = traced(folder.path(), true, acknowledged);
    let merged = paraver::merge(&pieces, folder.path().join("t.prv")).unwrap();
    let report = paraver::check(&merged.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let text = std::fs::read_to_string(&merged.prv).unwrap();
    assert!(!text.contains("in none of these traces"), "{text}");
    let messages = Summary::of(&merged.prv).unwrap().messages;
    let pair =
        |from| PairSummary { from, to: (from + 1) % RANKS, messages: ROUNDS, bytes: 8 * ROUNDS };
    assert_eq!(messages.pairs, (0..RANKS).map(pair).collect::<Vec<_>>());
    // A sync has an exchange of two steps, and so has the barrier of few ranks.
    let steps = 2 * u64::from(RANKS);
    let expected = [
        ("acknowledgement", u64::from(RANKS) * ROUNDS),
        ("step of a barrier", steps),
        ("step of an exchange", steps),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(messages.control, BTreeMap::from(expected));
}

#[test]
fn a_process_without_a_recorder_is_named() {
    let ranks = SocketWire::mesh(2).unwrap().into_iter().zip([Some(Recorder::default()), None]);
    let ranks = ranks.map(|(wire, recorder)| {
        let mut config = common::config(2, 1);
        config.runtime.recorder = recorder;
        (Arc::new(wire) as Arc<dyn Wire>, config)
    });
    let ends = common::on_wires(ranks.collect(), |_| async { Ok::<_, Error>(()) });
    let is_named = |end: &Result<(), Error>| {
        matches!(end, Err(Error::OtherRun { what: "recording of a trace", .. }))
    };
    assert!(ends.iter().any(is_named), "{ends:?}");
    assert!(ends.iter().all(Result::is_err), "{ends:?}");
}
