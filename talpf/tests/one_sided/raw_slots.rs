//! Raw slots: no windows, the program keeps things apart itself.
#![allow(unsafe_code, reason = "what is tested is unsafe")]

use crate::common;
use talpf::{Error, Rank, SyncMode};
use talpf_runtime::Array;

/// Two alternating buffers, and acknowledgements: a neighbour is at most one round ahead.
#[test]
fn double_buffers_and_acknowledgements_keep_rounds_apart() {
    for (len, workers) in [(1, 1), (30, 2), (5_000, 2), (5_000, 4)] {
        for mode in [
            SyncMode::CACHED.with_ack(),
            SyncMode::CACHED.with_barrier(),
            SyncMode::msg(1).with_ack(),
            SyncMode::DEFAULT,
        ] {
            common::run(common::config(2, workers), move |ctx| async move {
                let inboxes = Array::new(ctx.group(), vec![0u64; 2 * len], len)?;
                // SAFETY: a put of round n goes to buffer n % 2, which the target reads in round n
                // only, and with these modes no rank is two rounds ahead of what it puts to.
                let slot = unsafe { ctx.register_raw(&inboxes).await? };
                let values = common::array(&ctx, vec![0u64; len])?;
                ctx.register_local(&values)?;
                let peer = Rank(1 - ctx.rank().0);
                for round in 0..40 {
                    let buffer = round % 2;
                    let make = ctx.group().task("make").output(&values.all());
                    make.spawn(move |mut values| values.fill(round as u64))?;
                    ctx.put(&values.all(), slot.at(peer, buffer * len))?;
                    ctx.sync(mode).await?;
                    let check = ctx.group().task("check").input(&inboxes.tile(buffer));
                    let checked = check.run(move |inbox| inbox[..] == vec![round as u64; len])?;
                    assert!(checked.await?, "round {round} of {mode}");
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    }
}

#[test]
fn short_puts_that_travel_together_need_no_window() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 200])?;
        // SAFETY: nobody holds a guard of `inbox` before the end of the round.
        let slot = unsafe { ctx.register_raw(&inbox) }.await?;
        if ctx.rank() == Rank(0) {
            let round = ctx.round();
            for at in 0..200 {
                round.put_copy(&[at as u64], slot.at(Rank(1), at)).await?;
            }
        }
        ctx.sync(SyncMode::DEFAULT).await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap()[1], (0..200).collect::<Vec<u64>>());
}

#[test]
fn gets_and_atomics_need_no_window() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let shown = common::array(&ctx, vec![u64::from(ctx.rank().0) + 1; 64])?;
        let counter = common::array(&ctx, vec![0u64])?;
        // SAFETY: nobody writes `shown`.
        let from = unsafe { ctx.register_raw(&shown) }.await?;
        // SAFETY: nobody holds a guard of `counter` before the end.
        let counters = unsafe { ctx.register_raw(&counter) }.await?;
        let got = Array::new(ctx.group(), vec![0u64; 65], 64)?;
        ctx.register_local(&got)?;
        ctx.get(from.at(Rank((ctx.rank().0 + 1) % 3), 0), &got.tile(0))?;
        ctx.fetch_and_add(counters.at(Rank(1), 0), 10, &got.tile(1))?;
        ctx.sync(SyncMode::DEFAULT).await?;
        let mut seen = common::read(&ctx, &got).await?;
        seen.drain(1..64);
        seen.extend(common::read(&ctx, &counter).await?);
        Ok::<_, Error>(seen)
    });
    let ends = ends.unwrap();
    assert_eq!(ends.iter().map(|end| end[0]).collect::<Vec<_>>(), [2, 3, 1]);
    let mut olds: Vec<u64> = ends.iter().map(|end| end[1]).collect();
    olds.sort_unstable();
    assert_eq!(olds, [0, 10, 20]);
    assert_eq!(ends.iter().map(|end| end[2]).collect::<Vec<_>>(), [0, 30, 0]);
}

#[test]
fn a_raw_slot_has_no_windows() {
    let result = common::run(common::unwatched(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 3])?;
        // SAFETY: nothing is put.
        unsafe { ctx.register_raw(&inbox).await? };
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
    });
    common::says(&result.unwrap_err(), &["raw slots have none"]);
}

#[test]
fn a_raw_put_that_comes_after_its_round_is_an_error() {
    let gate = common::Gate::default();
    let result = common::run(common::unwatched(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            // SAFETY: nobody holds a guard of it.
            let slot = unsafe { ctx.register_raw(&inbox).await? };
            if ctx.rank() == Rank(0) {
                let one = common::array(&ctx, vec![1u64])?;
                gate.passed().await;
                ctx.put(&one.all(), slot.at(Rank(1), 0))?;
                return ctx.sync(SyncMode::msg(0)).await;
            }
            ctx.sync(SyncMode::msg(0)).await?;
            gate.open();
            ctx.sync(SyncMode::msg(1)).await
        }
    });
    let error = result.unwrap_err();
    common::says(&error, &["lane 0 round 0", "from rank 0, 0 expected"]);
}

/// Rank 1 reads after it was notified, and rank 0 writes once.
#[test]
fn a_put_to_a_raw_slot_needs_no_inbox() {
    for len in [1, 33, 5_000] {
        let ends = common::run(common::config(2, 2), move |ctx| async move {
            let values = common::array(&ctx, vec![u64::from(ctx.rank().0); len])?;
            // SAFETY: rank 1 reads after it was notified, and rank 0 writes once.
            let slot = unsafe { ctx.register_raw(&values).await? };
            if ctx.rank() == Rank(0) {
                ctx.put_notify(&values.all(), slot.at(1, 0), 3, 0)?;
                return Ok(0);
            }
            ctx.notifications().wait(3).await?;
            Ok(common::read(&ctx, &values).await?.iter().sum())
        });
        assert_eq!(ends.unwrap()[1], 0);
    }
}
