//! A put that comes before its window is open is parked, and lands when it opens.

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};

/// Puts `len` words from rank 0 in each of several rounds before rank 1 begins, which adds them up.
fn ahead(len: usize, rounds: u64) {
    let gate = Gate::default();
    let sums = common::run(common::config(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![u64::MAX; len])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                for round in 0..rounds {
                    let values = common::array(&ctx, vec![round; len])?;
                    ctx.register_local(&values)?;
                    ctx.put(&values.all(), slot.at(Rank(1), 0))?;
                    ctx.sync(SyncMode::msg(0)).await?;
                }
                gate.open();
                ctx.group().wait().await?;
                return Ok(0);
            }
            gate.passed().await;
            // Nothing has landed: there was no window.
            assert_eq!(common::read(&ctx, &inbox).await?, vec![u64::MAX; len]);
            let sum = common::array(&ctx, vec![0u64])?;
            for round in 0..rounds {
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
                let task = ctx.group().task("add").input(&inbox.all());
                task.inout(&sum.all()).spawn(move |inbox, mut sum| {
                    assert_eq!(inbox[..], vec![round; inbox.len()]);
                    sum[0] += inbox[0];
                })?;
            }
            Ok(common::read(&ctx, &sum).await?[0])
        }
    });
    assert_eq!(sums.unwrap(), [0, rounds * (rounds - 1) / 2]);
}

#[test]
fn short_ones_are_copied() {
    ahead(1, 30);
    ahead(32, 30);
}

#[test]
fn long_ones_hold_their_source() {
    ahead(common::COPIED + 1, 30);
    ahead(100_000, 5);
}

/// The source of a long put is in use until the put has landed; that of a short one is free.
#[test]
fn the_source_of_a_parked_put_is_held_if_it_is_long() {
    for (len, held) in [(common::COPIED, false), (common::COPIED + 1, true)] {
        let gate = Gate::default();
        common::run(common::config(2, 2), |ctx| {
            let gate = gate.clone();
            async move {
                let inbox = common::array(&ctx, vec![0u64; len])?;
                let slot = ctx.register_global(&inbox).await?;
                if ctx.rank() == Rank(1) {
                    gate.passed().await;
                    ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                    assert_eq!(common::read(&ctx, &inbox).await?, vec![7; len]);
                    return Ok(());
                }
                let values = common::array(&ctx, vec![7u64; len])?;
                ctx.register_local(&values)?;
                ctx.put(&values.all(), slot.at(Rank(1), 0))?;
                ctx.sync(SyncMode::msg(0)).await?;
                let opened = gate.clone();
                let change = ctx.group().task("change").output(&values.all());
                let seen = change.run(move |mut values| {
                    values.fill(8);
                    opened.is_open()
                })?;
                if held {
                    gate.open();
                }
                assert_eq!(seen.await?, held, "{len} words");
                gate.open();
                Ok::<_, Error>(())
            }
        })
        .unwrap();
    }
}

/// Puts that come before any window of their round is declared find the right one later.
#[test]
fn early_puts_find_the_window_that_covers_them() {
    let gate = Gate::default();
    let ends = common::run(common::config(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let inboxes =
                [common::array(&ctx, vec![0u32; 8])?, common::array(&ctx, vec![0u32; 8])?];
            let slots =
                [ctx.register_global(&inboxes[0]).await?, ctx.register_global(&inboxes[1]).await?];
            if ctx.rank() == Rank(0) {
                for (at, value) in [(7, 1u32), (0, 2), (4, 3)] {
                    for (nth, slot) in slots.iter().enumerate() {
                        let value = common::array(&ctx, vec![value + 10 * nth as u32])?;
                        ctx.put(&value.all(), slot.at(Rank(1), at))?;
                    }
                }
                ctx.sync(SyncMode::msg(0)).await?;
                gate.open();
                return Ok(vec![]);
            }
            gate.passed().await;
            let sync = ctx.sync(SyncMode::msg(6));
            let sync = sync.window(&inboxes[1].region(..4)).window(&inboxes[0].region(4..));
            let sync = sync.window(&inboxes[0].region(..4)).window(&inboxes[1].region(4..));
            sync.await?;
            let mut all = common::read(&ctx, &inboxes[0]).await?;
            all.extend(common::read(&ctx, &inboxes[1]).await?);
            Ok::<_, Error>(all)
        }
    });
    let expected = [2, 0, 0, 0, 3, 0, 0, 1, 12, 0, 0, 0, 13, 0, 0, 11];
    assert_eq!(ends.unwrap()[1], expected);
}
