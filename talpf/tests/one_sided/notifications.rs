//! Notifications: counted, in order, with a put or without, for bodies that await them.

use talpf::{Config, Context, Error, Rank};
use talpf_runtime::Array;

use crate::common::{self, COPIED, Gate};

/// Numbers of elements of short and long puts.
const SIZES: [usize; 4] = [1, COPIED, COPIED + 1, 5000];

/// Returns the inbox of this rank, the guard of which a task has handed out.
async fn guard_of(ctx: &Context, inbox: &Array<u64>) -> Result<talpf_runtime::InOut<u64>, Error> {
    Ok(ctx.group().task("guard").inout(&inbox.all()).run(|inbox| inbox)?.await?)
}

#[test]
fn notifications_of_an_id_come_in_order_and_none_is_lost() {
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let notifications = ctx.notifications();
            let mut values = Vec::new();
            for value in 0..3000 {
                match ctx.rank() {
                    Rank(0) => notifications.notify(1, 7, value).await?,
                    _ => values.push(notifications.wait(7).await?.value),
                }
            }
            Ok(values)
        });
        assert!(ends.unwrap()[1].iter().copied().eq(0..3000), "{workers} workers");
    }
}

#[test]
fn ids_are_independent_and_of_the_receiver() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let notifications = ctx.notifications();
        let me = ctx.rank().0;
        for id in [65_535, 3, 0] {
            for rank in 0..3 {
                notifications.notify(rank, id, 10 * me + id % 10).await?;
            }
        }
        let mut all = Vec::new();
        for id in [0, 3, 65_535] {
            let mut of_id = Vec::new();
            for _ in 0..3 {
                let notification = notifications.wait(id).await?;
                assert_eq!((notification.id, notification.value / 10), (id, notification.source.0));
                of_id.push(notification.value);
            }
            of_id.sort_unstable();
            all.push(of_id);
        }
        Ok(all)
    });
    assert!(ends.unwrap().iter().all(|all| *all == [[0, 10, 20], [3, 13, 23], [5, 15, 25]]));
}

#[test]
fn a_rank_notifies_itself() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 3])?;
        let slot = ctx.register_global(&inbox).await?;
        let notifications = ctx.notifications();
        notifications.put_copy(&[1, 2], slot.at(0, 1), 4, 40).await?;
        notifications.notify(0, 5, 50).await?;
        let guard = guard_of(&ctx, &inbox).await?;
        let (guard, put) = notifications.receive(guard, 4).await?;
        let alone = notifications.wait(5).await?;
        Ok((guard.to_vec(), put.value, alone.value))
    });
    assert_eq!(ends.unwrap(), [(vec![0, 1, 2], 40, 50)]);
}

#[test]
fn a_wait_for_any_takes_one_and_a_wait_for_all_takes_one_of_each() {
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                for id in [12, 10, 11, 12, 13, 12] {
                    notifications.notify(1, id, id).await?;
                }
                return Ok((Vec::new(), Vec::new()));
            }
            let all = notifications.wait_all([12, 10]).await?;
            let all = all.iter().map(|notification| notification.id).collect();
            let mut any = Vec::new();
            for _ in 0..4 {
                any.push(notifications.wait_any(10..14).await?.id);
            }
            any.sort_unstable();
            Ok((all, any))
        });
        assert_eq!(ends.unwrap()[1], (vec![12, 10], vec![11, 12, 12, 13]));
    }
}

#[test]
fn a_wait_that_is_dropped_takes_nothing() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let notifications = ctx.notifications();
        if ctx.rank() == Rank(0) {
            notifications.wait(0).await?;
            for value in 0..4 {
                notifications.notify(1, 9, value).await?;
            }
            notifications.notify(1, 8, 0).await?;
            return Ok(Vec::new());
        }
        let mut waits = Vec::from_iter((0..3).map(|_| Box::pin(notifications.wait(9))));
        waits.push(Box::pin(notifications.wait_any(9..10)));
        let mut all = Box::pin(notifications.wait_all([9, 77]));
        let pending = std::future::poll_fn(|cx| {
            let mut pending = waits.iter_mut().map(|wait| wait.as_mut().poll(cx).is_pending());
            let is_pending = pending.all(|pending| pending);
            std::task::Poll::Ready(is_pending && all.as_mut().poll(cx).is_pending())
        });
        assert!(pending.await);
        drop(waits.remove(1));
        notifications.notify(0, 0, 0).await?;
        notifications.wait(8).await?;
        // Some have ended, and were not taken.
        drop(waits);
        drop(all);
        let mut values = Vec::new();
        for _ in 0..4 {
            values.push(notifications.wait(9).await?.value);
        }
        values.sort_unstable();
        Ok(values)
    });
    assert_eq!(ends.unwrap()[1], [0, 1, 2, 3]);
}

#[test]
fn a_put_lands_in_the_inbox_of_the_wait_and_at_no_other_time() {
    for (len, workers) in SIZES.into_iter().flat_map(|len| [(len, 1), (len, 2)]) {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                let values = common::array(&ctx, vec![0u64; len])?;
                for round in 1..=20u64 {
                    let fill = ctx.group().task("fill").output(&values.all());
                    fill.spawn(move |mut values| values.fill(round))?;
                    ctx.put_notify(&values.all(), slot.at(1, 0), 0, round as u32)?;
                }
                return Ok(());
            }
            for round in 1..=20u64 {
                let guard = guard_of(&ctx, &inbox).await?;
                assert!(guard.iter().all(|value| *value == round - 1), "landed too early");
                let (guard, notification) = notifications.receive(guard, 0).await?;
                assert_eq!(notification.value, round as u32);
                assert!(guard.iter().all(|value| *value == round), "has not landed");
            }
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn a_rectangle_lands_in_a_rectangle() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let tiling = talpf_runtime::Tiling::new(4, 4);
        let matrix = talpf_runtime::Matrix::new(ctx.group(), vec![ctx.rank().0; 16], 4, tiling)?;
        let slot = ctx.register_global(&matrix).await?;
        let (part, id) = (matrix.region(1..3, 1..4), 6);
        if ctx.rank() == Rank(1) {
            ctx.put_notify(&part, slot.region(0, 1..3, 0..3), id, 0)?;
            return Ok(Vec::new());
        }
        let part = matrix.region(0..4, 0..3);
        let guard = ctx.group().task("guard").inout(&part).run(|guard| guard)?.await?;
        drop(ctx.notifications().receive(guard, id).await?);
        let read = ctx.group().task("read").input(&matrix.all());
        Ok(read.run(|all| all.view().iter().copied().collect::<Vec<_>>())?.await?)
    });
    assert_eq!(ends.unwrap()[0], [0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn sources_without_credit_wait_and_none_starves() {
    const PUTS: u32 = 50;
    for workers in [1, 2] {
        let config = Config { credits: 2, ..common::config(4, workers) };
        let ends = common::run(config, |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            if ctx.rank() != Rank(0) {
                for value in 0..PUTS {
                    let values = [u64::from(value)];
                    notifications.put_copy(&values, slot.at(0, 0), 1, value).await?;
                }
                return Ok(());
            }
            let mut next = [0; 4];
            for _ in 0..3 * PUTS {
                let guard = guard_of(&ctx, &inbox).await?;
                let (guard, notification) = notifications.receive(guard, 1).await?;
                let next = &mut next[notification.source.0 as usize];
                assert_eq!((notification.value, guard[0]), (*next, u64::from(*next)));
                *next += 1;
            }
            assert_eq!(next, [0, PUTS, PUTS, PUTS]);
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn notifications_that_nobody_waits_for_yet_hold_their_source_up() {
    const MANY: u32 = 5000;
    let config = Config { credits: 2, ..common::config(2, 2) };
    let waits = Gate::default();
    let ends = common::run(config, |ctx| {
        let waits = waits.clone();
        async move {
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                let sending = notifications.clone();
                let send = ctx.group().task("send").run_async(move || async move {
                    for value in 0..MANY {
                        sending.notify(1, 2, value).await?;
                    }
                    Ok::<_, Error>(())
                })?;
                notifications.wait(0).await?;
                waits.open();
                return send.await?;
            }
            notifications.notify(0, 0, 0).await?;
            waits.passed().await;
            for value in 0..MANY {
                assert_eq!(notifications.wait(2).await?.value, value);
            }
            Ok(())
        }
    });
    ends.unwrap();
}
