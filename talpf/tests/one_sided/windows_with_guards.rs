//! Windows that bodies open with guards they have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common;
use talpf::{Context, Error, Rank, SyncMode};
use talpf_runtime::{Array, Token, fail_current_task};

/// Short and long: copied at once, and held.
const LENGTHS: [usize; 2] = [4, 500];
const STEPS: u64 = 50;

/// Replays steps in which each of two ranks adds one to the number that the other has sent.
async fn pass_back_and_forth(ctx: Context, len: usize, gets: bool) -> Result<Vec<u64>, Error> {
    let (mine, come) = (common::array(&ctx, vec![0; len])?, common::array(&ctx, vec![0; len])?);
    let slots = [ctx.register_global(&mine).await?, ctx.register_global(&come).await?];
    let (order, peer) = (Token::new(ctx.group())?, Rank(1 - ctx.rank().0));
    ctx.group().iterate(STEPS as usize, |iteration| {
        let add = iteration.task("add").input(&come.all()).output(&mine.all());
        add.spawn(|come, mut mine| {
            mine.iter_mut().zip(&*come).for_each(|(mine, come)| *mine = come + 1);
        })?;
        let task = iteration.task("exchange").inout(&order.region());
        let (here, slots) = (ctx.clone(), slots.clone());
        let task = task.input(&mine.all()).inout(&come.all());
        task.spawn(move |_order, mine, come| {
            let (round, sync) = (here.round(), here.sync(SyncMode::msg(1)));
            let sync = if gets {
                drop(round.get(slots[0].at(peer, 0), come));
                sync.expose_with(mine)
            } else {
                drop(round.put(mine, slots[1].at(peer, 0)));
                sync.window_with(come)
            };
            drop(round);
            if let Err(error) = sync.spawn() {
                fail_current_task(error.to_string()).unwrap();
            }
        })
    })?;
    common::read(&ctx, &come).await
}

#[test]
fn replayed_puts_land_in_them() {
    for len in LENGTHS {
        for workers in [1, 2] {
            let ends = common::run(common::config(2, workers), move |ctx| {
                pass_back_and_forth(ctx, len, false)
            });
            assert_eq!(ends.unwrap(), [vec![STEPS; len], vec![STEPS; len]]);
        }
    }
}

#[test]
fn replayed_gets_read_what_is_exposed_with_them() {
    for len in LENGTHS {
        for workers in [1, 2] {
            let ends = common::run(common::config(2, workers), move |ctx| {
                pass_back_and_forth(ctx, len, true)
            });
            assert_eq!(ends.unwrap(), [vec![STEPS; len], vec![STEPS; len]]);
        }
    }
}

#[test]
fn a_guard_of_an_array_that_is_not_registered_is_refused() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let array: Array<u64> = common::array(&ctx, vec![0; 4])?;
        let here = ctx.clone();
        let task = ctx.group().task("open").inout(&array.all());
        task.run(move |guard| here.sync(SyncMode::msg(0)).window_with(guard).spawn().map(drop))?
            .await?
    });
    let (left, right) = (
        ends.unwrap_err(),
        common::run(common::config(1, 1), |ctx| async move {
            let array: Array<u64> = common::array(&ctx, vec![0; 4])?;
            ctx.sync(SyncMode::msg(0)).window(&array.all()).await
        }),
    );
    assert!(matches!(left, Error::NotRegistered { .. }), "{left}");
    assert!(matches!(right.unwrap_err(), Error::NotRegistered { .. }), "as with a region");
}

/// The puts to the window never come.
#[test]
fn nobody_reads_a_region_whose_guard_is_refused() {
    let ran = Arc::new(AtomicBool::new(false));
    let ends = common::run(common::config(1, 1), |ctx| {
        let ran = Arc::clone(&ran);
        async move {
            let array: Array<u64> = common::array(&ctx, vec![0; 4])?;
            let here = ctx.clone();
            let open = ctx.group().task("open").inout(&array.all());
            let open =
                open.run(move |guard| here.sync(SyncMode::msg(0)).window_with(guard).spawn())?;
            let read = ctx.group().task("read").input(&array.all());
            read.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
            open.await?.map(drop)
        }
    });
    common::says(&ends.unwrap_err(), &["is not registered"]);
    assert!(!ran.load(Ordering::SeqCst));
}
