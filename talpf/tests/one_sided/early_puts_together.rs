//! Short puts to elements side by side that come before their window are parked as one operation.

use crate::common::{self, Gate};
use crate::short_puts_together::{inbox, numbers};
use talpf::{Rank, SyncMode};

/// Puts come before the windows are known, of which some are narrower than what is parked as one.
#[test]
fn those_side_by_side_land_in_the_windows_that_cover_each() {
    for cuts in [&[][..], &[1], &[2], &[7, 8], &[1, 2, 3, 4, 5, 40], &[99]] {
        for workers in [1, 2] {
            let gate = Gate::default();
            let ends = common::run(common::config(2, workers), |ctx| {
                let gate = gate.clone();
                async move {
                    let (inbox, slot) = inbox(&ctx, 100).await?;
                    if ctx.rank() == Rank(0) {
                        numbers(&ctx, &slot, 100).await?;
                        gate.open();
                    } else {
                        gate.passed().await;
                    }
                    let mut sync = ctx.sync(SyncMode::DEFAULT);
                    let ends = cuts.iter().copied().chain([100]);
                    for (start, end) in [0].into_iter().chain(cuts.iter().copied()).zip(ends) {
                        sync = sync.window(&inbox.region(start..end));
                    }
                    sync.await?;
                    common::read(&ctx, &inbox).await
                }
            });
            let expected: Vec<u64> = (1..=100).collect();
            assert_eq!(ends.unwrap()[1], expected, "{cuts:?}, {workers} workers");
        }
    }
}

/// Puts of which no window covers one fail the run, whether the others that are parked with it lie in one or not.
#[test]
fn those_side_by_side_of_which_one_falls_outside_fail_the_run() {
    for windows in [&[(0, 60)][..], &[(0, 60), (61, 100)], &[(0, 30), (30, 60), (61, 100)]] {
        let gate = Gate::default();
        let error = common::run(common::unwatched(2, 2), |ctx| {
            let gate = gate.clone();
            async move {
                let (inbox, slot) = inbox(&ctx, 100).await?;
                if ctx.rank() == Rank(0) {
                    numbers(&ctx, &slot, 61).await?;
                    gate.open();
                    return ctx.sync(SyncMode::DEFAULT).await;
                }
                gate.passed().await;
                let mut sync = ctx.sync(SyncMode::DEFAULT);
                for &(start, end) in windows {
                    sync = sync.window(&inbox.region(start..end));
                }
                sync.await
            }
        });
        let slot = common::FIRST_SLOT;
        let text = format!("reaches elements 60..61 of slot {slot} at rank 1");
        common::says(&error.unwrap_err(), &[&text]);
    }
}

/// The region of the window is never free. One worker, as a polling task beside it might post some of them early.
#[test]
fn those_side_by_side_are_parked_as_one_operation() {
    let result = common::run(common::watched(2, 1), |ctx| async move {
        let (inbox, slot) = inbox(&ctx, 40).await?;
        let task = ctx.group().task("keep").input(&inbox.all());
        let kept = task.run(|inbox| inbox)?.await?;
        if ctx.rank() == Rank(0) {
            numbers(&ctx, &slot, 40).await?;
        }
        let ended = ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await;
        drop(kept);
        ended
    });
    common::says(&result.unwrap_err(), &["rank 1: keeps 2 operations of rank 0 parked"]);
}
