//! Windows of one round open one by one, as their regions become free.

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};

/// Numbers of a put that holds its guard until it has landed.
const HELD: usize = common::COPIED + 1;

/// The left half is free at once; the right half only after what was put into the left half has
/// been seen... by nobody but the device: the task that holds it ends when rank 1 says so.
#[test]
fn what_is_put_into_an_open_window_does_not_wait_for_a_closed_one() {
    let (left_done, release) = (Gate::default(), Gate::default());
    let ends = common::run(common::unwatched(2, 2), |ctx| {
        let (left_done, release) = (left_done.clone(), release.clone());
        async move {
            let inbox = talpf_runtime::Array::new(ctx.group(), vec![0u64; 2 * HELD], HELD)?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                let keep = ctx.group().task("keep").inout(&inbox.tile(1));
                keep.spawn_async(move |guard| async move {
                    release.passed().await;
                    drop(guard);
                })?;
                let sync = ctx.sync(SyncMode::msg(2));
                let sync = sync.window(&inbox.tile(0)).window(&inbox.tile(1));
                sync.await?;
                return common::read(&ctx, &inbox).await;
            }
            let values = common::array(&ctx, vec![1u64; HELD])?;
            ctx.register_local(&values)?;
            let round = ctx.round();
            let put = ctx.group().task("put").input(&values.all());
            let (left, right) = (slot.clone(), slot);
            put.spawn_async(move |values| async move {
                // Ends because the left window is open.
                let values = round.put(values, left.at(Rank(0), 0)).await.unwrap();
                left_done.open();
                // Waits until the right one is.
                let mut put = Box::pin(round.put(values, right.at(Rank(0), HELD)));
                let waits = futures_poll(put.as_mut()).await;
                assert!(waits.is_none());
                release.open();
                drop(put.await);
            })?;
            ctx.sync(SyncMode::msg(0)).await?;
            ctx.group().wait().await?;
            Ok::<_, Error>(vec![])
        }
    });
    assert_eq!(ends.unwrap()[0], [1; 2 * HELD]);
    assert!(left_done.is_open());
}

/// Polls a future once.
async fn futures_poll<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Windows that are free open together, beside some whose regions are held until something was put into all others.
#[test]
fn many_windows_of_one_sync_open_beside_those_that_are_held() {
    for windows in [8, 9, 127, 128, 129, 300] {
        for apart in [2, 3, windows] {
            let gate = Gate::default();
            let ends = common::run(common::unwatched(2, 2), |ctx| {
                let gate = gate.clone();
                async move {
                    let (group, held) = (ctx.group().clone(), (0..windows).step_by(apart));
                    let inbox =
                        talpf_runtime::Array::new(&group, vec![0u64; windows * HELD], HELD)?;
                    let slot = ctx.register_global(&inbox).await?;
                    if ctx.rank() == Rank(0) {
                        for tile in held {
                            let (hold, gate) = (group.task("hold"), gate.clone());
                            hold.inout(&inbox.tile(tile)).spawn_async(move |guard| async move {
                                gate.passed().await;
                                drop(guard);
                            })?;
                        }
                        let sync = ctx.sync(SyncMode::msg(windows as u32));
                        (0..windows).fold(sync, |sync, at| sync.window(&inbox.tile(at))).await?;
                        return common::read(&ctx, &inbox).await;
                    }
                    let values = common::array(&ctx, vec![1u64; HELD])?;
                    ctx.register_local(&values)?;
                    let round = ctx.round();
                    let put = group.task("put").input(&values.all());
                    put.spawn_async(move |mut values| async move {
                        // Each ends because its window is open.
                        for at in (0..windows).filter(|at| at % apart > 0) {
                            values = round.put(values, slot.at(Rank(0), at * HELD)).await.unwrap();
                        }
                        gate.open();
                        for at in held {
                            values = round.put(values, slot.at(Rank(0), at * HELD)).await.unwrap();
                        }
                    })?;
                    ctx.sync(SyncMode::msg(0)).await?;
                    group.wait().await?;
                    Ok::<_, Error>(vec![])
                }
            });
            let values = &ends.unwrap()[0];
            assert!(values.iter().all(|value| *value == 1), "{windows} windows, {apart} apart");
        }
    }
}

/// A round whose window never had to open: its region is busy until long after the round.
#[test]
fn a_round_ends_before_a_window_that_nobody_uses_opens() {
    let gate = Gate::default();
    common::run(common::unwatched(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![0u64; 4])?;
            ctx.register_global(&inbox).await?;
            let busy = ctx.group().task("busy").inout(&inbox.all());
            let release = gate.clone();
            busy.spawn_async(move |guard| async move {
                release.passed().await;
                drop(guard);
            })?;
            for _ in 0..3 {
                ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            }
            gate.open();
            ctx.group().wait().await?;
            Ok::<_, Error>(())
        }
    })
    .unwrap();
}
