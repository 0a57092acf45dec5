//! The trace of the communication of a rank.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common;
use talpf::{Context, Error, NotifiedTask, Rank, SyncMode};
use talpf_traces::Recorder;
use talpf_traces::paraver::{self, TraceInfo};

const EXPECTED: u64 = 95_000_004;
const OUTSTANDING: u64 = 95_000_011;

/// Returns the trace of a run of `ranks`, which passes the linter.
fn traced<F>(ranks: u32, workers: usize, program: impl Fn(Context) -> F) -> String
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let recorder = Recorder::default();
    let mut config = common::unwatched(ranks, workers);
    config.runtime.recorder = Some(recorder.clone());
    common::run(config, program).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let info = TraceInfo { ranks, workers: workers as u32, ..TraceInfo::default() };
    let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
    let report = paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    std::fs::read_to_string(&files.prv).unwrap()
}

#[test]
fn a_library_is_traced_under_its_ranks() {
    let trace = traced(2, 2, |mut ctx| async move {
        for _ in 0..2 {
            let library = async |ctx: Context| {
                let mine = common::array(&ctx, vec![1u64])?;
                let inbox = common::array(&ctx, vec![0u64])?;
                let slot = ctx.register_global(&inbox).await?;
                ctx.put(&mine.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
                ctx.sync(SyncMode::CACHED).window(&inbox.all()).await
            };
            ctx.rehook(library).await?;
        }
        Ok(())
    });
    let messages = trace.lines().filter(|line| line.starts_with("3:"));
    assert_eq!(messages.count(), 4);
}

#[test]
fn a_notified_put_is_a_message_between_its_ranks() {
    for len in [1, 5_000] {
        let trace = traced(2, 2, move |ctx| async move {
            let mine = common::array(&ctx, vec![0u64; len])?;
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            let other = Rank(1 - ctx.rank().0);
            let received = notifications.inbox(&inbox.all(), 7)?;
            ctx.put_notify(&mine.all(), slot.at(other, 0), 7, 0)?;
            ctx.group().task("receive").inbox(&received).run(drop)?.await?;
            notifications.notify(other, 8, 0).await?;
            notifications.wait(8).await.map(drop)
        });
        let messages = trace.lines().filter(|line| line.starts_with("3:"));
        assert_eq!(messages.count(), 4, "{len} elements");
    }
}

/// Returns the values of every kind of event of a run, in order of time. Both ranks put an array to
/// each other in every round.
fn values(len: usize, modes: [SyncMode; 2]) -> BTreeMap<u64, Vec<i64>> {
    let trace = traced(2, 2, move |ctx| async move {
        let mine = common::array(&ctx, vec![1u64; len])?;
        ctx.register_local(&mine)?;
        let inbox = common::array(&ctx, vec![0u64; len])?;
        let slot = ctx.register_global(&inbox).await?;
        for mode in modes {
            ctx.put(&mine.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
            ctx.sync(mode).window(&inbox.all()).await?;
        }
        Ok(())
    });
    values_of(&trace, "1")
}

/// Returns the values of every kind of event of Paraver's task `task`, in order of time.
fn values_of(trace: &str, task: &str) -> BTreeMap<u64, Vec<i64>> {
    let mut values = BTreeMap::<u64, Vec<i64>>::new();
    // 2:cpu:application:rank:thread:time, and then pairs of kind and value.
    for line in trace.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if fields[0] == "2" && fields[3] == task {
            for pair in fields[6..].chunks(2) {
                let value = pair[1].parse().unwrap();
                values.entry(pair[0].parse().unwrap()).or_default().push(value);
            }
        }
    }
    values
}

#[test]
fn requests_outstanding_rise_and_fall_back_to_none() {
    // A put that finds its window open is carried out at once, so this one comes before it.
    let is_put = Arc::new(AtomicBool::new(false));
    let trace = traced(2, 2, move |ctx| {
        let is_put = Arc::clone(&is_put);
        async move {
            let mine = common::array(&ctx, vec![1u64; 5_000])?;
            ctx.register_local(&mine)?;
            let inbox = common::array(&ctx, vec![0u64; 5_000])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                ctx.put(&mine.all(), slot.at(Rank(1), 0))?;
                is_put.store(true, Ordering::Release);
            }
            while !is_put.load(Ordering::Acquire) {
                ctx.group().wait_for(Duration::from_micros(100)).await;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        }
    });
    let levels = &values_of(&trace, "1")[&OUTSTANDING];
    assert!(levels.iter().any(|level| *level > 0), "{levels:?}");
    assert_eq!(levels.last(), Some(&0));
}

#[test]
fn arrivals_expected_are_those_of_the_sync() {
    assert!(values(1, [SyncMode::msg(1); 2])[&EXPECTED].contains(&1));
    // The first sync learns it, the second has it when it begins.
    assert!(values(1, [SyncMode::CACHED; 2])[&EXPECTED].contains(&1));
}

#[test]
fn a_sync_costs_from_where_its_rank_has_done_its_own_work() {
    const ROUNDS: u64 = 20;
    let late = Duration::from_millis(1);
    let trace = traced(2, 2, move |ctx| async move {
        let mine = common::array(&ctx, vec![1u64; 1])?;
        ctx.register_local(&mine)?;
        let inbox = common::array(&ctx, vec![0u64; 1])?;
        let slot = ctx.register_global(&inbox).await?;
        for _ in 0..ROUNDS {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
            // Asked for before its own put is posted.
            ctx.group().wait_for(late).await;
            let (slot, peer) = (slot.clone(), Rank(1 - ctx.rank().0));
            let put = ctx.group().task("late").input(&mine.all());
            put.run(move |mine| drop(round.put(mine, slot.at(peer, 0))))?.await?;
            sync.await?;
        }
        Ok(())
    });
    let values = values_of(&trace, "1");
    let [ended, asked, cost, arrived, open] =
        [5, 6, 7, 8, 10].map(|kind| &values[&(95_000_000 + kind)]);
    assert_eq!(ended.iter().filter(|round| **round > 0).count(), ended.len());
    assert!(ended.len() as u64 >= ROUNDS && cost.len() == ended.len(), "{trace}");
    let late_ns = late.as_nanos() as i64;
    let waited = |times: &[i64]| times.iter().filter(|time| **time >= late_ns).count();
    assert!(waited(asked) as u64 >= ROUNDS, "{asked:?}");
    assert!(waited(cost) < ended.len() / 2, "{cost:?}");
    assert!(arrived.iter().zip(asked).all(|(arrived, asked)| arrived <= asked), "{arrived:?}");
    assert_eq!(open.last(), Some(&0));
}

#[test]
fn a_get_is_one_line_of_its_bytes_and_an_empty_notice() {
    const LEN: usize = 100;
    let trace = traced(2, 1, |ctx| async move {
        let theirs = common::array(&ctx, vec![1u64; LEN])?;
        let slot = ctx.register_global(&theirs).await?;
        let mine = common::array(&ctx, vec![0u64; LEN])?;
        if ctx.rank() == Rank(0) {
            ctx.get(slot.at(Rank(1), 0), &mine.all())?;
        }
        ctx.sync(SyncMode::DEFAULT).expose(&theirs.all()).await
    });
    let messages = trace.lines().filter(|line| line.starts_with("3:"));
    // Paraver's numbers of the sending and the receiving rank, and bytes.
    let mut messages: Vec<[&str; 3]> = messages
        .map(|line| line.split(':').collect::<Vec<_>>())
        .map(|fields| [fields[3], fields[9], fields[13]])
        .collect();
    messages.sort_unstable();
    assert_eq!(messages, [["1", "2", "0"], ["2", "1", "800"]]);
}

/// More puts than a send queue has room for.
const MANY: usize = 3_000;

/// Returns the trace of a body that puts `len` elements to one of `targets` after another, while
/// nobody takes completions.
fn more_than_fit(targets: u32, len: usize) -> String {
    traced(targets + 1, 1, move |ctx| async move {
        let mine = common::array(&ctx, vec![1u64; len])?;
        ctx.register_local(&mine)?;
        let inbox = common::array(&ctx, vec![0u64; len])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            let round = ctx.round();
            let task = ctx.group().task("puts").input(vec![mine.all(); MANY]);
            let put = task.run(move |guards| {
                for (nth, guard) in guards.into_iter().enumerate() {
                    let target = Rank(1 + nth as u32 % targets);
                    drop(round.put(guard, slot.at(target, 0)));
                }
            });
            put?.await?;
        }
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
    })
}

#[test]
fn a_put_is_one_line_even_if_the_send_queue_was_full() {
    // Short ones by themselves, short ones together, and long ones.
    for (targets, len) in [(2, 1), (1, 1), (1, 100)] {
        let trace = more_than_fit(targets, len);
        let size = format!(":{}:", 8 * len);
        let lines = trace.lines().filter(|line| line.starts_with("3:") && line.contains(&size));
        assert!(lines.count() >= MANY, "{targets} targets, {len} elements");
        let unmatched = trace.lines().find(|line| line.ends_with("sends had no receive"));
        assert_eq!(unmatched, None, "{targets} targets, {len} elements");
    }
}
