//! Syncs of one lane that are in flight together queue up.

use crate::common;
use talpf::{Error, Rank, SyncMode};

fn counted(mode: SyncMode, rounds: u64, workers: usize) {
    let sums = common::run(common::config(2, workers), move |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let sum = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let mut last = None;
        for round in 0..rounds {
            ctx.put(&one.all(), slot.at(peer, 0))?;
            let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
            assert_eq!(sync.round().0, round);
            last = Some(sync);
            let add = ctx.group().task("add").inout(&inbox.all());
            add.inout(&sum.all()).spawn(|mut inbox, mut sum| {
                sum[0] += std::mem::take(&mut inbox[0]);
            })?;
        }
        if let Some(last) = last {
            last.await?;
        }
        Ok::<_, Error>(common::read(&ctx, &sum).await?[0])
    });
    assert_eq!(sums.unwrap(), [rounds, rounds], "{mode}");
}

#[test]
fn two() {
    for mode in common::modes(1) {
        counted(mode, 2, 2);
    }
}

#[test]
fn hundreds() {
    for mode in common::modes(1) {
        for workers in [1, 2] {
            counted(mode, 200, workers);
        }
    }
}

/// Nothing but inline tasks, so nothing but the stack holds what goes on.
#[test]
fn hundreds_without_a_task_between_them() {
    for mode in common::modes(1) {
        let ends = common::run(common::config(2, 2), move |ctx| async move {
            let one = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            for _ in 0..200 {
                ctx.put(&one.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
                ctx.sync(mode).window(&inbox.all()).spawn()?;
            }
            Ok::<_, Error>(common::read(&ctx, &inbox).await?[0])
        });
        assert_eq!(ends.unwrap(), [1, 1], "{mode}");
    }
}

#[test]
fn a_sync_ends_in_the_order_of_its_round() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let round = ctx.round();
        let first = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
        ctx.put(&one.all(), slot.at(peer, 0))?;
        let second = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
        // The put of the first round is issued last.
        let put = ctx.group().task("put").input(&one.all());
        put.spawn(move |one| drop(round.put(one, slot.at(peer, 0))))?;
        second.await?;
        first.await?;
        Ok::<_, Error>(())
    });
    ends.unwrap();
}
