//! A run of several processes that hangs says so, and one that only takes its time does not.

use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use talpf::{Config, Context, Error, Rank, SyncMode};

/// Returns the report of rank 0 of a run that hangs.
fn report<F>(ranks: u32, main: impl Fn(Context) -> F + Sync) -> String
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let ends = common::run_all(common::watched(ranks, 1), main);
    let hangs = |end: &Result<(), Error>| match end {
        Err(Error::Runtime(talpf_runtime::Error::Hang(text))) => Some(text.to_string()),
        Err(Error::PeerFailed { .. }) | Ok(()) => None,
        other => panic!("a hang was expected, not {other:?}"),
    };
    ends.iter().find_map(hangs).unwrap_or_else(|| panic!("no hang in {ends:?}"))
}

#[test]
fn a_put_that_is_missing_is_reported() {
    for ranks in [2, 5] {
        let text = report(ranks, |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&inbox).await?;
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
        });
        let what = "sync(msg(1)) of lane 0 round 0 expects 1 operation, 0 have arrived";
        assert!(text.contains(what), "{text}");
    }
}

/// After a failure a process waits up to five seconds for those that do not answer.
#[test]
fn processes_of_a_run_that_hangs_do_not_wait_for_each_other() {
    for ranks in [2, 3] {
        let start = Instant::now();
        report(ranks, |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&inbox).await?;
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
        });
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{ranks} ranks: {took:?}");
    }
}

#[test]
fn a_rank_that_has_ended_keeps_nobody_from_seeing_it() {
    let text = report(3, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            return Ok(());
        }
        ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
    });
    assert!(text.contains("expects 1 operation,"), "{text}");
}

#[test]
fn ranks_in_different_collective_calls_are_reported() {
    let text = report(2, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        if ctx.rank() == Rank(0) {
            ctx.register_global(&inbox).await?;
        }
        ctx.sync(SyncMode::DEFAULT).await
    });
    let (first, second) = ("a collective call of all ranks", "sync(default)");
    assert!(text.contains(first) || text.contains(second), "{text}");
}

/// As [`common::config`], with a very short hang watch.
fn impatient(ranks: u32) -> Config {
    let mut config = common::config(ranks, 1);
    config.runtime.hang_after = Duration::from_millis(1);
    config
}

#[test]
fn a_rank_that_computes_is_waited_for() {
    let ends = common::run(impatient(3), |ctx| async move {
        let mine = common::array(&ctx, vec![7u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(1) {
            let slow = |_| thread::sleep(Duration::from_millis(300));
            ctx.group().task("slow").inout(&mine.all()).spawn(slow)?;
            ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
            ctx.put(&mine.all(), slot.at(Rank(2), 0))?;
            ctx.sync(SyncMode::msg(0)).await?;
        } else {
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
        }
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap(), [[7], [0], [7]]);
}

#[test]
fn ranks_that_talk_are_not_taken_for_stuck() {
    let ends = common::run(impatient(3), |ctx| async move {
        let mine = common::array(&ctx, vec![u64::from(ctx.rank().0); 100])?;
        ctx.register_local(&mine)?;
        let inbox = common::array(&ctx, vec![0u64; 100])?;
        let slot = ctx.register_global(&inbox).await?;
        let next = Rank((ctx.rank().0 + 1) % ctx.size());
        for step in 0..300 {
            // Short ones and long ones; some ranks rest now and then.
            let len = if step % 2 == 0 { 1 } else { 100 };
            if step % 50 == ctx.rank().0 {
                ctx.group().wait_for(Duration::from_millis(5)).await;
            }
            ctx.put(&mine.region(..len), slot.at(next, 0))?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        }
        Ok(common::read(&ctx, &inbox).await?[99])
    });
    assert_eq!(ends.unwrap(), [2, 0, 1]);
}
