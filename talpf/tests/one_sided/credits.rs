//! A source that runs out of credit keeps its operations, and goes on when they are parked no more.

use crate::common::{self, Gate};
use talpf::{Config, Error, Rank, SyncMode};

/// Puts `puts` values of `len` words from ranks 1.. to rank 0 before it opens its window.
fn many(credits: usize, ranks: u32, puts: usize, len: usize, workers: usize) {
    let gate = Gate::default();
    let config = Config { credits, ..common::config(ranks, workers) };
    let ends = common::run(config, |ctx| {
        let gate = gate.clone();
        async move {
            let (me, others) = (ctx.rank().0 as usize, ctx.size() as usize - 1);
            let inbox = common::array(&ctx, vec![0u64; others * puts * len])?;
            let slot = ctx.register_global(&inbox).await?;
            if me > 0 {
                let values = (0..puts * len).map(|index| (me * puts * len + index) as u64);
                let values = talpf_runtime::Array::new(ctx.group(), values.collect(), len)?;
                ctx.register_local(&values)?;
                for put in 0..puts {
                    let at = ((me - 1) * puts + put) * len;
                    ctx.put(&values.tile(put), slot.at(Rank(0), at))?;
                }
            }
            let sync = if me == 0 {
                ctx.register_global(&inbox).await?;
                gate.passed().await;
                let sync = ctx.sync(SyncMode::msg((others * puts) as u32));
                sync.window(&inbox.all()).spawn()?
            } else {
                ctx.register_global(&inbox).await?;
                gate.open();
                ctx.sync(SyncMode::msg(0)).spawn()?
            };
            sync.await?;
            ctx.group().wait().await?;
            common::read(&ctx, &inbox).await
        }
    });
    let size = (ranks as usize - 1) * puts * len;
    let expected: Vec<u64> = (0..size).map(|index| (puts * len + index) as u64).collect();
    assert_eq!(ends.unwrap()[0], expected, "{credits} credits, {puts} x {len}");
}

#[test]
fn one_credit_and_two_operations() {
    many(1, 2, 2, 1, 2);
}

#[test]
fn few_credits_and_many_operations() {
    for credits in [1, 2, 3] {
        for len in [1, 40] {
            for workers in [1, 2] {
                many(credits, 2, 100, len, workers);
            }
        }
    }
}

#[test]
fn credits_are_counted_by_source() {
    many(2, 5, 50, 1, 2);
    many(2, 5, 50, 64, 2);
}

#[test]
fn exactly_as_many_credits_as_operations_and_one_less() {
    many(64, 2, 64, 1, 2);
    many(64, 2, 65, 1, 2);
    many(64, 2, 2_000, 1, 2);
}

/// Credits that run out in one round come back for the next.
#[test]
fn rounds_ahead_share_the_credits() {
    for (credits, rounds) in [(1, 50), (2, 50), (7, 200)] {
        let gate = Gate::default();
        let config = Config { credits, ..common::config(2, 2) };
        let ends = common::run(config, |ctx| {
            let gate = gate.clone();
            async move {
                let one = common::array(&ctx, vec![1u64])?;
                let inbox = common::array(&ctx, vec![0u64])?;
                let slot = ctx.register_global(&inbox).await?;
                if ctx.rank() == Rank(0) {
                    for _ in 0..rounds {
                        ctx.put(&one.all(), slot.at(Rank(1), 0))?;
                        ctx.sync(SyncMode::msg(0)).spawn()?;
                    }
                    gate.open();
                    ctx.group().wait().await?;
                    return Ok(0);
                }
                gate.passed().await;
                let sum = common::array(&ctx, vec![0u64])?;
                for _ in 0..rounds {
                    ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
                    let task = ctx.group().task("add").inout(&inbox.all());
                    task.inout(&sum.all()).spawn(|mut inbox, mut sum| {
                        sum[0] += std::mem::take(&mut inbox[0]);
                    })?;
                }
                Ok::<_, Error>(common::read(&ctx, &sum).await?[0])
            }
        });
        assert_eq!(ends.unwrap()[1], rounds, "{credits} credits");
    }
}

/// The only credit is taken by a put of round 1, which cannot land before round 0 has ended; the
/// put of round 0 waits at its rank, whose polling task is asleep when the window opens.
#[test]
fn an_operation_of_an_early_round_gets_past_later_ones_that_are_parked() {
    let gate = Gate::default();
    let config = Config { credits: 1, ..common::config(2, 2) };
    let ends = common::run(config, |ctx| {
        let gate = gate.clone();
        async move {
            let values = talpf_runtime::Array::new(ctx.group(), vec![1u64, 2], 1)?;
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                let first = ctx.round();
                ctx.sync(SyncMode::msg(0)).spawn()?;
                ctx.put(&values.tile(1), slot.at(Rank(1), 0))?;
                let put = ctx.group().task("put").input(&values.tile(0));
                put.spawn(move |one| drop(first.put(one, slot.at(Rank(1), 0))))?;
                ctx.sync(SyncMode::msg(0)).spawn()?;
                gate.open();
                ctx.group().wait().await?;
                return Ok(vec![]);
            }
            gate.passed().await;
            // Longer than any polling task polls without success.
            ctx.group().wait_for(std::time::Duration::from_millis(300)).await;
            let mut seen = Vec::new();
            for _ in 0..2 {
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                seen.extend(common::read(&ctx, &inbox).await?);
            }
            Ok::<_, Error>(seen)
        }
    });
    assert_eq!(ends.unwrap()[1], [1, 2]);
}
