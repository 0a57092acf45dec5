//! Handles that are kept beyond the end of their run, and used afterwards or in another run.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};

use crate::common;
use talpf::{Context, Error, Link, MemorySlot, OpenRound, Rank, SyncMode};
use talpf_runtime::Array;

/// Handles that one rank keeps of its run.
struct Kept {
    ctx: Context,
    inbox: Array<u64>,
    slot: MemorySlot<u64>,
    round: OpenRound,
}

/// Runs one rank to its end, and returns what it has kept.
fn kept() -> Kept {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 4])?;
        let slot = ctx.register_global(&inbox).await?;
        let round = ctx.lane(1)?.round();
        Ok(Kept { ctx, inbox, slot, round })
    });
    ends.unwrap().remove(0)
}

/// Returns the result of a future that is ready.
fn now<F: IntoFuture>(future: F) -> F::Output {
    let mut context = TaskContext::from_waker(Waker::noop());
    match pin!(future.into_future()).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future of a run that has ended waits"),
    }
}

fn run_ended<T>(result: Result<T, Error>) {
    let error = result.err().expect("the run has ended");
    let shut_down = matches!(error, Error::Runtime(talpf_runtime::Error::ShutDown));
    assert!(matches!(error, Error::RunEnded) || shut_down, "{error:?}");
}

#[test]
fn a_slot_of_another_run_is_refused_by_name() {
    let old = kept();
    for way in 0..4 {
        let slot = old.slot.clone();
        let ends = common::run(common::unwatched(1, 1), move |ctx| {
            let slot = slot.clone();
            async move {
                let inbox = common::array(&ctx, vec![0u64; 4])?;
                ctx.register_global(&inbox).await?;
                let one = common::array(&ctx, vec![1u64])?;
                match way {
                    0 => ctx.put(&one.all(), slot.at(Rank(0), 0))?,
                    1 => ctx.get(slot.at(Rank(0), 0), &one.all())?,
                    2 => ctx.round().put_copy(&[1], slot.at(Rank(0), 0)).await?,
                    _ => ctx.deregister(slot)?,
                }
                ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
            }
        });
        let error = ends.unwrap_err();
        assert!(matches!(error, Error::SlotOfOtherRun { .. }), "way {way}: {error:?}");
        common::says(&error, &["slot ", "belongs to another run"]);
    }
    assert_eq!(now(async { old.inbox.len() }), 4);
}

#[test]
fn a_region_of_another_run_opens_no_window() {
    let old = kept();
    let inbox = old.inbox.clone();
    let ends = common::run(common::unwatched(1, 1), move |ctx| {
        let inbox = inbox.clone();
        async move { ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await }
    });
    assert!(matches!(ends.unwrap_err(), Error::NotRegistered { .. }));
    let inbox = old.inbox.clone();
    let ends = common::run(common::unwatched(1, 1), move |ctx| {
        let inbox = inbox.clone();
        async move {
            ctx.register_global(&inbox).await?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        }
    });
    common::says(&ends.unwrap_err(), &["another runtime"]);
}

/// Outside every run, as of a program that has kept them in a `static`.
#[test]
fn what_is_asked_of_a_run_that_has_ended_is_an_error_at_once() {
    let Kept { ctx, inbox, slot, round } = kept();
    let one = || slot.at(Rank(0), 0);
    run_ended(now(round.put_copy(&[7], one())));
    run_ended(now(ctx.round().put_copy(&[7], one())));
    run_ended(ctx.put(&inbox.region(..1), one()));
    run_ended(now(ctx.sync(SyncMode::DEFAULT)));
    run_ended(now(ctx.sync(SyncMode::DEFAULT).window(&inbox.all())));
    run_ended(now(ctx.register_global(&inbox)));
    run_ended(ctx.register_local(&inbox));
}

/// A run that ends well has no channel left: its group waits for the buffers. One that fails may.
#[test]
fn a_channel_of_a_run_that_has_failed_is_of_no_more_use() {
    let kept = Arc::new(Mutex::new(None));
    let ends = common::run(common::unwatched(1, 1), |ctx| {
        let kept = Arc::clone(&kept);
        async move {
            let buffers = common::array(&ctx, vec![0u64; 3])?;
            ctx.register_global(&buffers).await?;
            let at = [buffers.region(..1), buffers.region(1..2)];
            let channel = ctx
                .double_buffered_channel(ctx.lane(3)?, &[Link { peer: Rank(0), buffers: at }])
                .await?;
            *kept.lock().unwrap() = Some((channel, buffers));
            Err::<(), Error>(ctx.peer(1).unwrap_err())
        }
    });
    assert!(matches!(ends.unwrap_err(), Error::NoSuchRank { .. }));
    let (mut channel, buffers) = kept.lock().unwrap().take().unwrap();
    let put = channel.put(0, &buffers.region(2..), &buffers.region(1..2));
    assert!(put.is_err());
    assert!(channel.sync().is_err());
    drop(channel);
}

/// The same from the main of another run, which goes on.
#[test]
fn another_run_goes_on_with_its_own() {
    let old = Mutex::new(Some(kept()));
    let ends = common::run(common::config(1, 1), |ctx| {
        let old = old.lock().unwrap().take().unwrap();
        async move {
            let inbox = common::array(&ctx, vec![0u64; 4])?;
            ctx.register_global(&inbox).await?;
            run_ended(old.round.put_copy(&[7], old.slot.at(Rank(0), 0)).await);
            run_ended(old.ctx.sync(SyncMode::DEFAULT).await);
            run_ended(old.ctx.register_global(&inbox).await);
            drop(old);
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            Ok(ctx.group().task("read").input(&inbox.all()).run(|inbox| inbox.to_vec())?.await?)
        }
    });
    assert_eq!(ends.unwrap()[0], [0; 4]);
}
