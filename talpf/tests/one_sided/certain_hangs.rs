//! An operation that can never come is reported long before the hang period is over; one that still
//! may come is waited for.
#![cfg(target_os = "linux")]

use std::thread;
use std::time::{Duration, Instant};

use talpf::{Context, Error, Rank, SyncMode, exec};

use crate::common::{self, Gate, alone, with_own_workers};

/// A third of the hang period: the machine may do other work.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Long enough for a hang that is certain to be reported.
const LATER: Duration = Duration::from_millis(300);

/// Puts to rank 0 from every rank but the last, while rank 0 expects one from all.
async fn put_to_first(ctx: Context, mode: SyncMode) -> Result<(), Error> {
    let one = common::array(&ctx, vec![1u64])?;
    let inbox = common::array(&ctx, vec![0u64; 32])?;
    let slot = ctx.register_global(&inbox).await?;
    if ctx.rank() != Rank(ctx.size() - 1) {
        ctx.put(&one.all(), slot.at(Rank(0), ctx.rank().0 as usize))?;
    }
    ctx.sync(if ctx.rank() == Rank(0) { mode } else { SyncMode::msg(0) }).window(&inbox.all()).await
}

#[test]
fn an_operation_that_is_missing_is_reported_at_once() {
    alone("certain_hangs::an_operation_that_is_missing_is_reported_at_once", || {
        for (ranks, workers) in [(2, 1), (3, 2), (32, 4)] {
            let begin = Instant::now();
            let mode = SyncMode::msg(ranks);
            let result =
                exec(common::config(ranks, workers), move |ctx| put_to_first(ctx, mode)).map(drop);
            let took = begin.elapsed();
            let Err(Error::Runtime(talpf_runtime::Error::Hang(report))) = result else {
                panic!("{ranks} ranks: {result:?}");
            };
            let says = format!("sync(msg({ranks})) of lane 0 round 0 expects {ranks} operations");
            assert!(report.contains(&says), "{report}");
            assert!(took < AT_ONCE, "{ranks} ranks, {workers} workers: {took:?}");
        }
    });
}

#[test]
fn an_operation_that_is_missing_is_reported_at_once_by_ranks_with_workers_of_their_own() {
    let name =
        "an_operation_that_is_missing_is_reported_at_once_by_ranks_with_workers_of_their_own";
    alone(&format!("certain_hangs::{name}"), || {
        for (ranks, each) in [(2, 1), (3, 1), (3, 2)] {
            let begin = Instant::now();
            let config = with_own_workers(common::config(ranks, 1), each);
            let result = exec(config, move |ctx| put_to_first(ctx, SyncMode::msg(ranks)));
            let took = begin.elapsed();
            let Err(Error::Runtime(talpf_runtime::Error::Hang(report))) = result else {
                panic!("{ranks} ranks: {result:?}");
            };
            assert!(report.contains(&format!("expects {ranks} operations")), "{report}");
            assert!(took < AT_ONCE, "{ranks} ranks, {each} workers each: {took:?}");
        }
    });
}

#[test]
fn a_collective_call_that_a_rank_does_not_make_is_reported_at_once() {
    alone("certain_hangs::a_collective_call_that_a_rank_does_not_make_is_reported_at_once", || {
        let begin = Instant::now();
        let result = exec(common::config(2, 2), async |ctx: Context| {
            if ctx.rank() == Rank(0) {
                ctx.sync(SyncMode::DEFAULT).await?;
            }
            Ok::<_, Error>(())
        });
        let took = begin.elapsed();
        assert!(result.is_err() && took < AT_ONCE, "{took:?}: {result:?}");
    });
}

#[test]
fn a_superstep_that_a_rank_does_not_end_is_reported_at_once() {
    alone("certain_hangs::a_superstep_that_a_rank_does_not_end_is_reported_at_once", || {
        let begin = Instant::now();
        let result = exec(common::config(3, 2), async |ctx: Context| {
            let mut bsp = ctx.bsp();
            bsp.sync().await?;
            if ctx.rank() == Rank(1) {
                return Ok::<_, Error>(());
            }
            bsp.sync().await
        });
        let took = begin.elapsed();
        let error = result.map(drop).unwrap_err().to_string();
        for rank in [0, 2] {
            let says = format!("rank {rank}: waits to end superstep 1, rank 1 has not ended it");
            assert!(error.contains(&says), "{error}");
        }
        assert!(took < AT_ONCE, "{took:?}");
    });
}

/// Rank 1 puts what a thread of its own has computed; its wait seems one for its own run.
#[test]
fn an_operation_that_a_thread_brings_later_is_waited_for() {
    alone("certain_hangs::an_operation_that_a_thread_brings_later_is_waited_for", || {
        let begin = Instant::now();
        let result = exec(common::config(2, 2), async |ctx: Context| {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let mut mode = SyncMode::msg(1);
            if ctx.rank() == Rank(1) {
                let computed = Gate::default();
                let compute = computed.clone();
                thread::spawn(move || {
                    thread::sleep(LATER);
                    compute.open();
                });
                computed.passed().await;
                let one = common::array(&ctx, vec![7u64])?;
                ctx.put(&one.all(), slot.at(Rank(0), 0))?;
                mode = SyncMode::msg(0);
            }
            ctx.sync(mode).window(&inbox.all()).await
        });
        let took = begin.elapsed();
        assert!(result.is_ok() && took >= LATER, "{took:?}: {result:?}");
    });
}
