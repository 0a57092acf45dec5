//! A round is open until its sync is spawned or awaited, however early the sync was declared.

use crate::common;
use talpf::{Context, Error, Rank, SyncMode};

const STEPS: u64 = 20;

/// Runs steps in which each rank puts to all ranks and adds up the arrivals. The sync is declared
/// first, and gets a window beside each put.
async fn windows_beside_puts(ctx: Context, lane: u8, mode: SyncMode) -> Result<u64, Error> {
    let lane = ctx.lane(lane)?;
    let ranks = ctx.size() as usize;
    let mine = common::array(&ctx, vec![1 + u64::from(ctx.rank().0)])?;
    let (inbox, sum) = (common::array(&ctx, vec![0u64; ranks])?, common::array(&ctx, vec![0u64])?);
    let slot = ctx.register_global(&inbox).await?;
    for step in 0..STEPS {
        let mut sync = lane.sync(mode);
        for peer in 0..ranks {
            sync = sync.window(&inbox.region(peer..peer + 1));
            let own_place = slot.at(Rank(peer as u32), ctx.rank().0 as usize);
            lane.put(&mine.all(), own_place)?;
        }
        let handle = sync.spawn()?;
        assert_eq!(handle.round().0, step);
        let add = ctx.group().task("add").inout(&inbox.all()).inout(&sum.all());
        add.spawn(|mut inbox, mut sum| {
            sum[0] += inbox.iter().sum::<u64>();
            inbox.fill(0);
        })?;
        if step % 3 == 0 {
            handle.await?;
        }
    }
    Ok(common::read(&ctx, &sum).await?[0])
}

#[test]
fn puts_after_the_declaration_are_of_its_round() {
    for ranks in [1, 2, 3] {
        for mode in common::modes(ranks) {
            for (workers, lane) in [(1, 0), (2, 3)] {
                let ends = common::run(common::config(ranks, workers), move |ctx| {
                    windows_beside_puts(ctx, lane, mode)
                });
                let each = STEPS * u64::from(ranks * (ranks + 1) / 2);
                assert_eq!(ends.unwrap(), vec![each; ranks as usize], "{mode}");
            }
        }
    }
}

/// Of two syncs that are being declared, each closes the round that is open when it is spawned.
#[test]
fn rounds_are_numbered_in_the_order_of_spawns() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let first = ctx.sync(SyncMode::DEFAULT);
        let second = ctx.sync(SyncMode::DEFAULT);
        let second = second.spawn()?;
        let first = first.spawn()?;
        let rounds = [second.round().0, first.round().0];
        second.await?;
        first.await?;
        Ok(rounds)
    });
    assert_eq!(ends.unwrap(), [[0, 1], [0, 1]]);
}

/// A window that comes after the put in the program waits for what the put reads.
#[test]
fn a_window_may_be_what_a_put_of_its_round_reads() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let value = common::array(&ctx, vec![ctx.rank().0])?;
        let slot = ctx.register_global(&value).await?;
        for _ in 0..4 {
            let sync = ctx.sync(SyncMode::CACHED).window(&value.all());
            ctx.put(&value.all(), slot.at(Rank((ctx.rank().0 + 1) % 3), 0))?;
            sync.spawn()?;
        }
        Ok(common::read(&ctx, &value).await?[0])
    });
    assert_eq!(ends.unwrap(), [2, 0, 1]);
}
