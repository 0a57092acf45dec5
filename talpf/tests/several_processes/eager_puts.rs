//! Puts that travel with their claims, of ranks whose programs end before they land.

use std::time::Duration;

use talpf::{Context, Error, Rank, SyncMode};

use crate::common;

/// Time in which the program of rank 1 ends.
const LONG: Duration = Duration::from_millis(300);

/// Puts one number to rank 0, whose window stays closed until the program of rank 1 has ended, and
/// which expects `expected` of them. Returns what rank 0 has got.
async fn put_and_end(ctx: Context, expected: u32) -> Result<u64, Error> {
    let inbox = common::array(&ctx, vec![0u64])?;
    let slot = ctx.register_global(&inbox).await?;
    if ctx.rank() == Rank(1) {
        let value = common::array(&ctx, vec![7u64])?;
        ctx.put(&value.all(), slot.at(Rank(0), 0))?;
        ctx.sync(SyncMode::msg(0)).await?;
        return Ok(0);
    }
    let group = ctx.group().clone();
    let keep = ctx.group().task("keep").inout(&inbox.all());
    keep.spawn_async(move |inbox| async move {
        group.wait_for(LONG).await;
        drop(inbox);
    })?;
    ctx.sync(SyncMode::msg(expected)).window(&inbox.all()).await?;
    Ok(common::read(&ctx, &inbox).await?[0])
}

#[test]
fn a_put_of_a_rank_that_has_ended_lands_as_its_window_opens() {
    let ends = common::run(common::config(2, 1), |ctx| put_and_end(ctx, 1));
    assert_eq!(ends.unwrap()[0], 7);
}

#[test]
fn a_sync_that_waits_for_more_puts_of_a_rank_that_has_ended_names_it() {
    let ends = common::run_all(common::config(2, 1), |ctx| put_and_end(ctx, 2));
    let error = ends[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("rank 1") && error.contains("has ended"), "{error}");
}

/// More puts than the receiver has receives and room in a queue pair for.
const MANY: usize = 4000;

#[test]
fn more_puts_than_there_is_room_for_land_after_their_rank_has_ended() {
    let config = talpf::Config { credits: MANY, ..common::config(2, 1) };
    let ends = common::run(config, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; MANY])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(1) {
            let round = ctx.round();
            for index in 0..MANY {
                round.put_copy(&[index as u64], slot.at(Rank(0), index)).await?;
            }
            drop(round);
            ctx.sync(SyncMode::msg(0)).await?;
            return Ok(vec![]);
        }
        let sync = ctx.sync(SyncMode::msg(MANY as u32)).window(&inbox.all()).spawn()?;
        // The only worker takes nothing in meanwhile.
        ctx.group().task("busy").run(|| std::thread::sleep(LONG))?.await?;
        sync.await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap()[0], Vec::from_iter(0..MANY as u64));
}
