//! Mistakes of first programs have errors that say what to do about them.

use std::future::Future;

use crate::common;
use talpf::{Context, Error, Rank, SyncMode};

/// Returns the error of a run of two ranks that fails.
fn error_of<F: Future<Output = Result<(), Error>> + Send + 'static>(
    program: impl Fn(Context) -> F,
) -> Error {
    common::run(common::watched(2, 2), program).unwrap_err()
}

#[test]
fn a_put_without_a_window() {
    let error = error_of(|ctx| async move {
        let (mine, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&mine.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::DEFAULT).await
    });
    common::says(
        &error,
        &[
            " reaches elements 0..1 of slot ",
            "outside every window",
            "an operation that puts needs a `window`",
        ],
    );
}

#[test]
fn a_get_from_a_rank_that_exposes_nothing() {
    let error = error_of(|ctx| async move {
        let (all, copy) = (common::array(&ctx, vec![1u64; 4])?, common::array(&ctx, vec![0u64])?);
        let slot = ctx.register_global(&all).await?;
        ctx.register_local(&copy)?;
        ctx.get(slot.at(Rank(1 - ctx.rank().0), 2), &copy.all())?;
        // A window is for what is put.
        ctx.sync(SyncMode::DEFAULT).window(&all.all()).await
    });
    common::says(
        &error,
        &[
            " reaches elements 2..3 of slot ",
            "outside every window",
            "an operation that gets needs an `expose`",
        ],
    );
}

#[test]
fn elements_of_another_type_at_another_rank() {
    let error = error_of(|ctx| async move {
        if ctx.rank() == Rank(0) {
            ctx.register_global(&common::array(&ctx, vec![0u32; 4])?).await?;
        } else {
            ctx.register_global(&common::array(&ctx, vec![0f64; 4])?).await?;
        }
        Ok(())
    });
    common::says(&error, &["element size is", "4 bytes", "8 bytes", "rank"]);
}

#[test]
fn a_window_on_an_array_that_nobody_has_registered() {
    let result = common::run(common::watched(1, 1), |ctx| async move {
        let (mine, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&mine.all()).await
    });
    common::says(&result.unwrap_err(), &["array ", "is not registered"]);
}

#[test]
fn a_rank_with_one_sync_less_than_the_others() {
    let error = error_of(|ctx| async move {
        for _ in 0..if ctx.rank() == Rank(1) { 2 } else { 3 } {
            ctx.sync(SyncMode::DEFAULT).await?;
        }
        Ok(())
    });
    common::says(
        &error,
        &["rank 0: sync(default) of lane 0 round 2 waits for the count of rank 1, which has not"],
    );
}

#[test]
fn a_round_under_the_cached_mode_with_other_puts_than_the_first() {
    let error = error_of(|ctx| async move {
        let (mine, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
        let slot = ctx.register_global(&inbox).await?;
        for round in 0..2 {
            if round == 0 {
                ctx.put(&mine.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
            }
            ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
        }
        Ok(())
    });
    common::says(&error, &["0 operations to rank", "has 1", "need `SyncMode::DEFAULT`"]);
}
