//! A main that returns well does not hide a round that was not ended as it should be.

use crate::common;
use talpf::{Error, Rank, SyncMode};

/// The round stays open, for another sync.
#[test]
fn a_sync_that_is_dropped_closes_no_round() {
    for ranks in [1, 2] {
        let ends = common::run(common::unwatched(ranks, 1), |ctx| async move {
            drop(ctx.sync(SyncMode::DEFAULT));
            let handle = ctx.sync(SyncMode::DEFAULT).spawn()?;
            let round = handle.round();
            handle.await?;
            Ok(round.0)
        });
        assert_eq!(ends.unwrap(), vec![0; ranks as usize]);
    }
}

#[test]
fn a_put_whose_sync_is_dropped_fails_the_run() {
    let ends = common::run(common::unwatched(2, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all());
        ctx.put(&common::array(&ctx, vec![7u64])?.all(), slot.at(Rank(0), 0))?;
        drop(sync);
        Ok(())
    });
    let error = ends.unwrap_err();
    assert!(matches!(error, Error::NotClosed { operations: 1, .. }), "{error}");
}

#[test]
fn a_put_of_a_round_that_no_sync_closes_fails_the_run() {
    for ranks in [1, 2] {
        let ends = common::run(common::unwatched(ranks, 1), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                let value = common::array(&ctx, vec![7u64])?;
                ctx.put(&value.all(), slot.at(Rank(ctx.size() - 1), 0))?;
            }
            Ok(())
        });
        let error = ends.unwrap_err();
        assert!(matches!(error, Error::NotClosed { operations: 1, .. }), "{error}");
        common::says(&error, &["lane 0 round 0", "no sync has closed"]);
    }
}
