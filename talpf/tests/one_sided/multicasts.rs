//! Puts of the same elements to several ranks, and puts without a notification.
#![allow(unsafe_code, reason = "quiet puts need raw slots")]

use futures::future::try_join_all;
use talpf::{Context, Error, NotifiedTask, Rank};
use talpf_runtime::{Array, In};

use crate::common::{self, COPIED, says};

/// Numbers of elements of short and long puts.
const SIZES: [usize; 4] = [1, COPIED, COPIED + 1, 5000];

async fn guard_of(ctx: &Context, values: &Array<u64>) -> Result<In<u64>, Error> {
    Ok(ctx.group().task("guard").input(&values.all()).run(|values| values)?.await?)
}

#[test]
fn every_rank_gets_the_elements_and_the_guard_comes_back() {
    for (len, ranks) in SIZES.into_iter().flat_map(|len| [(len, 1), (len, 3), (len, 5)]) {
        let ends = common::run(common::config(ranks, 2), |ctx| async move {
            let values = common::array(&ctx, vec![u64::from(ctx.rank().0) + 7; len])?;
            let halo = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&halo).await?;
            let notifications = ctx.notifications();
            for round in 0..5 {
                let inbox = notifications.inbox(&halo.all(), 3)?;
                ctx.group().task("receive").inbox(&inbox).spawn(|_| ())?;
                if ctx.rank() == Rank(ranks - 1) {
                    // To itself, too.
                    let to = (0..ranks).map(|rank| slot.at(rank, 0));
                    if round % 2 == 0 {
                        let guard = guard_of(&ctx, &values).await?;
                        let guard = notifications.multicast(guard, to, 3, round).await?;
                        assert_eq!(guard.len(), len);
                    } else {
                        ctx.multicast_notify(&values.all(), to, 3, round)?;
                    }
                }
            }
            common::read(&ctx, &halo).await
        });
        let expected = vec![u64::from(ranks) + 6; len];
        assert!(ends.unwrap().iter().all(|end| *end == expected), "{len} to {ranks}");
    }
}

#[test]
fn a_multicast_to_nobody_returns_its_guard() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let values = common::array(&ctx, vec![7u64; 9])?;
        let guard = guard_of(&ctx, &values).await?;
        Ok(ctx.notifications().multicast(guard, [], 0, 0).await?.to_vec())
    });
    assert_eq!(ends.unwrap()[0], [7; 9]);
}

#[test]
fn a_multicast_to_a_rank_that_does_not_exist_is_an_error() {
    let ended = common::run(common::config(2, 1), |ctx| async move {
        let values = common::array(&ctx, vec![7u64; 9])?;
        let slot = ctx.register_global(&values).await?;
        if ctx.rank() == Rank(0) {
            let guard = guard_of(&ctx, &values).await?;
            let to = [slot.at(5, 0)];
            let sent = ctx.notifications().multicast(guard, to, 0, 0).await;
            says(&sent.map(drop).unwrap_err(), &["rank 5", "2 ranks"]);
        }
        Ok(())
    });
    assert!(ended.is_err());
}

#[test]
fn quiet_puts_are_there_when_a_later_notification_comes() {
    for len in SIZES {
        let ends = common::run(common::config(2, 2), |ctx| async move {
            let values = common::array(&ctx, (0..len as u64).collect())?;
            let target = common::array(&ctx, vec![0u64; 3 * len])?;
            // SAFETY: rank 1 reads after the notification, and nobody puts then.
            let slot = unsafe { ctx.register_raw(&target) }.await?;
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                let guards = [
                    guard_of(&ctx, &values).await?,
                    guard_of(&ctx, &values).await?,
                    guard_of(&ctx, &values).await?,
                ];
                let puts = guards.into_iter().enumerate();
                let puts =
                    puts.map(|(at, guard)| notifications.put_quiet(guard, slot.at(1, at * len)));
                try_join_all(puts).await?;
                notifications.notify(1, 0, 0).await?;
                return Ok(Vec::new());
            }
            let arrived = notifications.wait(0).await?;
            assert_eq!(arrived.source, Rank(0));
            common::read(&ctx, &target).await
        });
        let expected: Vec<u64> = (0..len as u64).collect();
        assert_eq!(ends.unwrap()[1], expected.repeat(3), "{len}");
    }
}

#[test]
fn a_quiet_put_that_would_need_an_inbox_is_an_error() {
    let ended = common::run(common::config(1, 1), |ctx| async move {
        let values = common::array(&ctx, vec![7u64; 9])?;
        let slot = ctx.register_global(&values).await?;
        let guard = guard_of(&ctx, &values).await?;
        let sent = ctx.notifications().put_quiet(guard, slot.at(0, 0)).await;
        says(&sent.map(drop).unwrap_err(), &["register_raw", "inbox"]);
        Ok(())
    });
    says(&ended.unwrap_err(), &["register_raw"]);
}
