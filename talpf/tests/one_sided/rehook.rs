//! Libraries that a program calls on its ranks: what is theirs, what is not, and how they fail.

use crate::common;
use talpf::{Context, Error, LaneNumber, MemorySlot, Rank, Round, SyncMode};

/// Passes the number of every rank on to the next one, in a superstep of `ctx`.
async fn rotated(ctx: &Context, number: u64) -> Result<u64, Error> {
    let own = common::array(ctx, vec![number])?;
    let inbox = common::array(ctx, vec![0; 1])?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.put(&own.all(), slot.at((ctx.rank().0 + 1) % ctx.size(), 0))?;
    ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
    ctx.deregister(slot)?;
    Ok(common::read(ctx, &inbox).await?[0])
}

/// Returns the number of the rank before that of `ctx`.
fn before(ctx: &Context) -> u64 {
    u64::from((ctx.rank().0 + ctx.size() - 1) % ctx.size())
}

#[test]
fn a_library_has_slots_lanes_and_rounds_of_its_own() {
    common::run(common::config(3, 2), |mut ctx| async move {
        let me = u64::from(ctx.rank().0);
        ctx.resize_memory_register(1)?;
        ctx.resize_message_queue(1)?;
        let numbers = common::array(&ctx, vec![me; 4])?;
        let slot = ctx.register_global(&numbers).await?;
        let lane = ctx.lane(5)?;
        for _ in 0..3 {
            lane.sync(SyncMode::DEFAULT).await?;
            ctx.sync(SyncMode::DEFAULT).await?;
        }
        for _ in 0..2 {
            let library = async |ctx: Context| {
                let lane = ctx.lane(5)?;
                assert_eq!((lane.round().number(), ctx.round().number()), (Round(0), Round(0)));
                // Other limits, and other arrays under the numbers of the caller's slots.
                let inbox = common::array(&ctx, vec![0; 4])?;
                let first = ctx.register_global(&inbox).await?;
                let _second = ctx.register_local(&inbox)?;
                let peer = (ctx.rank().0 + 1) % ctx.size();
                for half in [0..2, 2..4] {
                    lane.put(&numbers.region(half.clone()), first.at(peer, half.start))?;
                }
                lane.sync(SyncMode::msg(2)).window(&inbox.all()).await?;
                assert_eq!(common::read(&ctx, &inbox).await?, [before(&ctx); 4]);
                rotated(&ctx, me).await
            };
            assert_eq!(ctx.rehook(library).await?, before(&ctx));
        }
        // All is as it was.
        assert_eq!((lane.lane_number(), lane.round().number()), (LaneNumber(5), Round(3)));
        assert!(matches!(ctx.lane(5), Err(Error::LaneRefused { .. })));
        assert!(matches!(ctx.register_local(&numbers), Err(Error::Limit { limit: 1, .. })));
        let peer = (ctx.rank().0 + 1) % ctx.size();
        let one = common::array(&ctx, vec![me + 10])?;
        lane.put(&one.all(), slot.at(peer, 3))?;
        lane.sync(SyncMode::DEFAULT).window(&numbers.region(3..)).await?;
        assert_eq!(common::read(&ctx, &numbers).await?, [me, me, me, before(&ctx) + 10]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn libraries_call_libraries() {
    let sums = common::run(common::config(4, 2), |mut ctx| async move {
        let outer = async |mut ctx: Context| {
            let inner = async |ctx: Context| {
                let number = rotated(&ctx, u64::from(ctx.rank().0)).await?;
                rotated(&ctx, number).await
            };
            let number = ctx.rehook(inner).await?;
            let number = rotated(&ctx, number).await?;
            assert_eq!(ctx.rehook(async |ctx| rotated(&ctx, 7).await).await?, 7);
            Ok::<_, Error>(number)
        };
        let number = ctx.rehook(outer).await?;
        rotated(&ctx, number).await
    });
    assert_eq!(sums.unwrap(), [0, 1, 2, 3]);
}

#[test]
fn plain_bsp_runs_in_a_library() {
    common::run(common::config(3, 2), |mut ctx| async move {
        let numbers = common::array(&ctx, vec![u64::from(ctx.rank().0); 1000])?;
        let _slot = ctx.register_global(&numbers).await?;
        let library = async |ctx: Context| {
            let slot = ctx.register_global(&numbers).await?;
            let mut bsp = ctx.bsp();
            bsp.put(&numbers.all(), slot.at((ctx.rank().0 + 1) % ctx.size(), 0))?;
            bsp.sync().await
        };
        ctx.rehook(library).await?;
        assert_eq!(common::read(&ctx, &numbers).await?, [before(&ctx); 1000]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Puts the number of the slot's only element to the rank itself.
async fn put_to_itself(ctx: &Context, slot: &MemorySlot<u64>) -> Result<(), Error> {
    let one = common::array(ctx, vec![1u64])?;
    ctx.put(&one.all(), slot.at(ctx.rank(), 0))?;
    ctx.sync(SyncMode::DEFAULT).await
}

#[test]
fn slots_of_the_caller_are_refused_in_a_library_and_those_of_a_library_after_it() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let refused = ctx.rehook(async |ctx| put_to_itself(&ctx, &slot).await).await;
        let error = refused.expect_err("a slot of the caller").to_string();
        assert!(error.contains("belongs to another run"), "{error}");
        let kept = ctx.rehook(async |ctx| ctx.register_global(&inbox).await).await?;
        let refused = ctx.deregister(kept);
        assert!(matches!(refused, Err(Error::SlotOfOtherRun { .. })), "{refused:?}");
        assert_eq!(rotated(&ctx, u64::from(ctx.rank().0)).await?, before(&ctx));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_rank_that_fails_in_a_library_fails_it_at_all_ranks_and_the_caller_goes_on() {
    common::run(common::unwatched(3, 2), |mut ctx| async move {
        for _ in 0..3 {
            let library = async |ctx: Context| {
                if ctx.rank() == Rank(1) {
                    return Err(Error::NoSuchRank { rank: Rank(77), ranks: 3 });
                }
                ctx.sync(SyncMode::DEFAULT).await
            };
            let error = ctx.rehook(library).await.expect_err("rank 1 has failed");
            assert!(error.to_string().contains("rank 77 does not exist"), "{error}");
            let is_own = matches!(error, Error::NoSuchRank { .. });
            assert_eq!(is_own, ctx.rank() == Rank(1), "{error}");
            assert_eq!(rotated(&ctx, u64::from(ctx.rank().0)).await?, before(&ctx));
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn ranks_that_have_returned_from_a_library_report_the_failure_of_another_one() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        let library = async |ctx: Context| match ctx.rank() {
            Rank(0) => Ok(()),
            rank => Err(Error::NoSuchRank { rank, ranks: 1 }),
        };
        let error = ctx.rehook(library).await.expect_err("rank 1 has failed");
        let is_own = matches!(error, Error::NoSuchRank { .. });
        assert_eq!(is_own, ctx.rank() == Rank(1), "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_task_that_fails_in_a_library_fails_the_library() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        let number = common::array(&ctx, vec![1u64])?;
        let library = async |ctx: Context| {
            let slot = ctx.register_global(&number).await?;
            if ctx.rank() == Rank(1) {
                let task = ctx.group().task("unlucky").inout(&number.all());
                task.spawn(|_number| panic!("that was it"))?;
                ctx.put(&number.all(), slot.at(Rank(0), 0))?;
            }
            ctx.sync(SyncMode::DEFAULT).spawn()?;
            Ok::<_, Error>(())
        };
        ctx.rehook(library).await.expect_err("a task of rank 1 has failed");
        assert_eq!(common::read(&ctx, &number).await?, [1]);
        assert_eq!(rotated(&ctx, u64::from(ctx.rank().0)).await?, before(&ctx));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_round_that_a_library_leaves_open_is_an_error() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        let library = async |ctx: Context| {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let lane = ctx.lane(3)?;
            if ctx.rank() == Rank(0) {
                lane.put(&inbox.all(), slot.at(Rank(1), 0))?;
            }
            Ok::<_, Error>(())
        };
        let error = ctx.rehook(library).await.expect_err("no sync");
        let expected = matches!(
            (ctx.rank(), &error),
            (Rank(0), Error::NotClosed { lane: LaneNumber(3), operations: 1, .. })
                | (Rank(1), Error::PeerFailed { rank: Rank(0), .. })
        );
        assert!(expected, "{error}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_task_of_the_caller_that_has_failed_keeps_all_ranks_out_of_the_library() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        if ctx.rank() == Rank(1) {
            ctx.group().task("unlucky").spawn(|| panic!("that was it"))?;
        }
        let entered = ctx.rehook(async |_ctx| Ok::<_, Error>(())).await;
        let error = entered.expect_err("a task has failed").to_string();
        assert!(error.contains("unlucky"), "{error}");
        assert_eq!(ctx.rehook(async |ctx| rotated(&ctx, 3).await).await?, 3);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_program_that_panics_in_a_library_ends_the_run() {
    for waits in [true, false] {
        let ended = common::run(common::unwatched(3, 2), move |mut ctx| async move {
            let library = async |ctx: Context| {
                assert!(ctx.rank() != Rank(2), "that was it");
                match waits {
                    true => ctx.sync(SyncMode::DEFAULT).await,
                    false => Ok(()),
                }
            };
            ctx.rehook(library).await
        });
        let error = ended.expect_err("a main has panicked").to_string();
        assert!(error.contains("that was it"), "{error}");
    }
}

#[test]
fn a_rank_that_calls_no_library_is_named() {
    common::run(common::unwatched(2, 2), |mut ctx| async move {
        let error = match ctx.rank() {
            Rank(0) => ctx.rehook(async |_ctx| Ok::<_, Error>(())).await.unwrap_err(),
            _ => ctx.register_global(&common::array(&ctx, vec![0u8])?).await.unwrap_err(),
        };
        let expected = match ctx.rank() {
            Rank(0) => "this rank calls rehook where rank 1 calls register_global",
            _ => "this rank calls register_global where rank 0 calls rehook",
        };
        assert_eq!(error.to_string(), expected);
        Ok::<_, Error>(())
    })
    .unwrap();
}
