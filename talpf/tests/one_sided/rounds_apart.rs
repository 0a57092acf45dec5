//! Ranks whose rounds are too far apart get an error with both rounds.

use std::future::Future;

use crate::common;
use talpf::{Context, Error, Rank, SyncMode};

/// Rounds that may be between two ranks of one process.
const LIMIT: u64 = 1 << 16;

/// Ends `rounds` rounds of a lane, in which nothing is sent.
async fn go_on(ctx: &Context, rounds: u64) -> Result<(), Error> {
    for _ in 0..rounds {
        ctx.sync(SyncMode::msg(0)).await?;
    }
    Ok(())
}

/// Runs two ranks of which the first ends `rounds` rounds before it calls `then`, and the second
/// ends none.
fn apart<F>(rounds: u64, then: fn(Context) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let ends = common::run(common::unwatched(2, 2), move |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 2])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            go_on(&ctx, rounds).await?;
            ctx.round().put_copy(&[1], slot.at(Rank(1), 0)).await?;
            then(ctx).await
        } else {
            ctx.lane(1)?.sync(SyncMode::DEFAULT).await
        }
    });
    ends.map(drop)
}

/// Asserts an error that rank 0 is `ahead` in the lane, and rank 1 at its beginning.
fn is_too_far_ahead(error: &Error, ahead: u64) {
    let says = format!("rank 0 is in round {ahead} of lane 0 and rank 1 in round 0");
    common::says(error, &[&says, "at most 65536 "]);
    assert!(matches!(error, Error::TooFarAhead { .. }), "{error:?}");
}

#[test]
fn a_put_to_a_rank_that_is_too_far_behind() {
    for beyond in [0, 7, 1 << 18] {
        let error =
            apart(LIMIT + beyond, |ctx| async move { ctx.lane(1)?.sync(SyncMode::DEFAULT).await });
        is_too_far_ahead(&error.unwrap_err(), LIMIT + beyond);
    }
}

/// A put that is one round less ahead is parked until the target is there.
#[test]
fn a_put_that_is_as_far_ahead_as_may_be() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 2])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            go_on(&ctx, LIMIT - 1).await?;
            ctx.round().put_copy(&[9], slot.at(Rank(1), 1)).await?;
            ctx.lane(1)?.sync(SyncMode::DEFAULT).await?;
            ctx.sync(SyncMode::DEFAULT).await?;
        } else {
            ctx.lane(1)?.sync(SyncMode::DEFAULT).await?;
            go_on(&ctx, LIMIT - 1).await?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        }
        Ok(ctx.group().task("read").input(&inbox.all()).run(|inbox| inbox.to_vec())?.await?)
    });
    assert_eq!(ends.unwrap()[1], [0, 9]);
}

/// The messages of a sync have their exact round, however far ahead.
#[test]
fn a_barrier_that_the_other_rank_is_too_far_behind_for() {
    for (mode, ahead) in [
        (SyncMode::DEFAULT, [LIMIT, (1 << 18) + 3]),
        (SyncMode::msg(0).with_barrier(), [LIMIT, 1 << 18]),
    ] {
        for ahead in ahead {
            let ends = common::run(common::unwatched(2, 2), move |ctx| async move {
                if ctx.rank() == Rank(0) {
                    go_on(&ctx, ahead).await?;
                }
                ctx.sync(mode).await
            });
            is_too_far_ahead(&ends.unwrap_err(), ahead);
        }
    }
}

/// Syncs that nobody awaits are bounded, too.
#[test]
fn syncs_that_have_not_ended() {
    for more in [0, 1] {
        let ends = common::run(common::unwatched(2, 2), move |ctx| async move {
            if ctx.rank() == Rank(0) {
                // None of them ends before the other rank has come to it.
                for _ in 0..LIMIT + more {
                    ctx.sync(SyncMode::DEFAULT).spawn()?;
                }
                return ctx.lane(1)?.sync(SyncMode::DEFAULT).await;
            }
            ctx.lane(1)?.sync(SyncMode::DEFAULT).await?;
            for _ in 0..LIMIT + more {
                ctx.sync(SyncMode::DEFAULT).await?;
            }
            Ok(())
        });
        if more == 0 {
            ends.unwrap();
        } else {
            let says =
                "number of syncs of a lane that have not ended is 65537, expected at most 65536";
            common::says(&ends.unwrap_err(), &[says]);
        }
    }
}
