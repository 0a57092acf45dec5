//! Long puts end as soon as whoever issues them has carried them out.

use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};

/// From one that is not copied to one that is long to every cache.
const LENGTHS: [usize; 4] = [33, 1_000, 10_000, 300_000];

#[test]
fn a_put_into_an_open_window_returns_its_guard_at_once() {
    for len in LENGTHS {
        let ends = common::run(common::config(2, 2), move |ctx| async move {
            let values = common::array(&ctx, (0..len as u64).collect())?;
            ctx.register_local(&values)?;
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).spawn()?;
            let source = ctx.group().task("source").input(&values.all());
            let guard = source.run(|values| values)?.await?;
            // Both windows are open.
            ctx.lane(1)?.sync(SyncMode::msg(0).with_barrier()).await?;
            let mut put = pin!(round.put(guard, slot.at(Rank(1 - ctx.rank().0), 0)));
            let polled = put.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))), "{len} words");
            drop((polled, round));
            sync.await?;
            assert_eq!(common::read(&ctx, &inbox).await?, Vec::from_iter(0..len as u64));
            Ok::<_, Error>(())
        });
        ends.unwrap();
    }
}

/// The window opens when the put has waited for longer than its issuer polls.
#[test]
fn a_put_that_comes_long_before_its_window_lands_when_that_opens() {
    for len in LENGTHS {
        let gate = Gate::default();
        let ends = common::run(common::config(2, 2), |ctx| {
            let gate = gate.clone();
            async move {
                let values = common::array(&ctx, vec![7u64; len])?;
                ctx.register_local(&values)?;
                let inbox = common::array(&ctx, vec![0u64; len])?;
                let slot = ctx.register_global(&inbox).await?;
                let round = ctx.round();
                if ctx.rank() == Rank(0) {
                    let source = ctx.group().task("source").inout(&values.all());
                    let guard = source.run(|values| values)?.await?;
                    let mut put = pin!(round.put(guard, slot.at(Rank(1), 0)));
                    let polled = put.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
                    assert!(polled.is_pending(), "{len} words");
                    gate.open();
                    put.await?.fill(8);
                } else {
                    gate.passed().await;
                }
                drop(round);
                ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
                common::read(&ctx, &inbox).await
            }
        });
        assert_eq!(ends.unwrap(), [vec![0; len], vec![7; len]], "{len} words");
    }
}
