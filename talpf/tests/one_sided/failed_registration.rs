//! A registration that fails at one rank fails at all, changes nothing, and leaves the numbers of
//! slots the same at every rank.

use crate::common;
use talpf::{Config, Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::Array;

/// Elements that the device takes in one region.
const MOST: usize = 2000;

fn config(ranks: u32) -> Config {
    let mut config = common::unwatched(ranks, 2);
    config.device.attributes.max_mr_size = 8 * MOST as u64;
    config
}

/// Registers `array` after a call in which `failing` has tried to register an array too large.
async fn after_a_failure(
    ctx: &Context,
    failing: Rank,
    array: &Array<u64>,
) -> Result<MemorySlot<u64>, Error> {
    let large = common::array(ctx, vec![0u64; MOST + 1])?;
    let first = if ctx.rank() == failing { &large } else { array };
    match ctx.register_global(first).await {
        Ok(slot) => Ok(slot),
        Err(_) => ctx.register_global(array).await,
    }
}

/// The window of the round is open on one array, the put goes to the other one.
#[test]
fn a_put_after_a_failed_registration_stays_outside_open_guards() {
    for (failing, reached) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let result = common::run(config(2), |ctx| async move {
            let arrays = [(); 2].map(|()| common::array(&ctx, vec![0u64; 10]));
            let [first, second] = arrays;
            let (first, second) = (first?, second?);
            let slots = [
                after_a_failure(&ctx, Rank(failing), &first).await?,
                ctx.register_global(&second).await?,
            ];
            if ctx.rank() == Rank(0) {
                let value = common::array(&ctx, vec![7777u64])?;
                ctx.put(&value.all(), slots[reached].at(Rank(1), 3))?;
                return ctx.sync(SyncMode::DEFAULT).await;
            }
            let (open, other) = if reached == 0 { (&second, &first) } else { (&first, &second) };
            let reader = ctx.group().task("reader").input(&other.all());
            let sync = ctx.sync(SyncMode::DEFAULT).window(&open.all()).spawn()?;
            let ended = sync.clone();
            let read = reader.run_async(async move |other| {
                let _ = ended.await;
                other[3]
            })?;
            assert_eq!(read.await?, 0, "a put has landed under a guard");
            sync.await
        });
        let error = result.unwrap_err();
        if !matches!(error, Error::PeerFailed { .. }) {
            common::says(&error, &["elements 3..4 of slot", "at rank 1", "outside every window"]);
        }
    }
}

#[test]
fn all_ranks_learn_who_failed_and_why_and_may_go_on() {
    for failing in [0, 2] {
        let ends = common::run(config(3), |ctx| async move {
            let len = if ctx.rank() == Rank(failing) { MOST + 1 } else { MOST };
            let array = common::array(&ctx, vec![0u64; len])?;
            match ctx.register_global(&array).await.unwrap_err() {
                Error::CallFailed { call: "register_global", rank, reason } => {
                    assert_ne!(ctx.rank(), Rank(failing));
                    assert_eq!(rank, Rank(failing));
                    assert!(reason.contains("max_mr_size") && reason.contains("16008"), "{reason}");
                }
                own => {
                    assert_eq!(ctx.rank(), Rank(failing));
                    common::says(&own, &["max_mr_size", "16008", "16000"]);
                }
            }
            // The register is as before: there is room for as many as ever.
            let inbox = common::array(&ctx, vec![0u64; 3])?;
            ctx.resize_memory_register(1)?;
            let slot = ctx.register_global(&inbox).await?;
            let value = common::array(&ctx, vec![u64::from(ctx.rank().0) + 1])?;
            for rank in (0..3).map(Rank) {
                ctx.put(&value.all(), slot.at(rank, ctx.rank().0 as usize))?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            common::read(&ctx, &inbox).await
        });
        assert_eq!(ends.unwrap(), vec![vec![1, 2, 3]; 3]);
    }
}

/// The register of one rank is full.
#[test]
fn a_full_register_at_one_rank_fails_at_all() {
    common::run(config(2), |ctx| async move {
        let array = common::array(&ctx, vec![0u64])?;
        ctx.resize_memory_register(if ctx.rank() == Rank(1) { 0 } else { 1 })?;
        let error = ctx.register_global(&array).await.unwrap_err();
        common::says(&error, &["number of memory slots is 1, expected at most 0"]);
        assert_eq!(matches!(error, Error::CallFailed { .. }), ctx.rank() == Rank(0), "{error}");
        ctx.resize_memory_register(1)?;
        ctx.register_global(&array).await?;
        let error = ctx.register_global(&array).await.unwrap_err();
        common::says(&error, &["number of memory slots is 2, expected at most 1"]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn ranks_that_make_different_calls_learn_both() {
    common::run(common::unwatched(2, 2), |ctx| async move {
        let array = common::array(&ctx, vec![0u64])?;
        let differs = |error: Error, here: &str, there: &str| {
            let other = format!("rank {}", 1 - ctx.rank().0);
            common::says(&error, &["this rank calls", here, &other, there]);
            assert!(matches!(error, Error::CallsDiffer { .. }), "{error}");
        };
        if ctx.rank() == Rank(0) {
            let error = ctx.register_global(&array).await.unwrap_err();
            differs(error, "register_global", "probe");
        } else {
            differs(ctx.probe().await.unwrap_err(), "probe", "register_global");
        }
        ctx.register_global(&array).await.map(drop)
    })
    .unwrap();
}

/// Each of two tasks of a rank registers an array of its own, again and again.
#[test]
fn tasks_that_register_at_once_get_slots_of_the_same_numbers_everywhere() {
    const TIMES: u64 = 40;
    common::run(common::config(2, 4), |ctx| async move {
        ctx.resize_memory_register(2 * TIMES as usize)?;
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let (own, here) = (common::array(&ctx, vec![0u8])?, ctx.clone());
            let task = ctx.group().task("register").inout(&own.all());
            tasks.push(task.run_async(async move |_own| {
                let mut slots = Vec::new();
                for _ in 0..TIMES {
                    let array = common::array(&here, vec![0u64])?;
                    slots.push((here.register_global(&array).await?, array));
                }
                Ok::<_, Error>(slots)
            })?);
        }
        let mut slots = Vec::new();
        for task in tasks {
            slots.extend(task.await??);
        }
        // Every slot is a window of its own array at both ranks.
        let value = common::array(&ctx, vec![1u64])?;
        let peer = Rank(1 - ctx.rank().0);
        let mut sync = ctx.sync(SyncMode::DEFAULT);
        for (slot, array) in &slots {
            ctx.put(&value.all(), slot.at(peer, 0))?;
            sync = sync.window(&array.all());
        }
        sync.await?;
        for (_, array) in &slots {
            assert_eq!(common::read(&ctx, array).await?, [1]);
        }
        Ok(())
    })
    .unwrap();
}
