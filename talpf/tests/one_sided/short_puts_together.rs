//! Short puts of one body to one rank travel together, and are what they would be one by one.

use std::time::Duration;

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, MemorySlot, PollingFrequency, Rank, SyncMode};
use talpf_runtime::Array;

/// Makes an array that peers write to, with its slot.
pub(crate) async fn inbox(
    ctx: &Context,
    len: usize,
) -> Result<(Array<u64>, MemorySlot<u64>), Error> {
    let inbox = common::array(ctx, vec![0u64; len])?;
    let slot = ctx.register_global(&inbox).await?;
    Ok((inbox, slot))
}

/// Puts the numbers from 1 from rank 0 to rank 1.
pub(crate) async fn numbers(
    ctx: &Context,
    slot: &MemorySlot<u64>,
    puts: usize,
) -> Result<(), Error> {
    let round = ctx.round();
    for at in 0..puts {
        round.put_copy(&[at as u64 + 1], slot.at(Rank(1), at)).await?;
    }
    Ok(())
}

#[test]
fn a_sync_ends_with_the_last_of_them() {
    for puts in [1, 2, 3, 63, 64, 65, 66, 128, 1_000, 20_000] {
        for workers in [1, 2] {
            let arrivals = puts as u32;
            for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::msg(arrivals)] {
                let ends = common::run(common::config(2, workers), move |ctx| async move {
                    let (inbox, slot) = inbox(&ctx, puts).await?;
                    if ctx.rank() == Rank(0) {
                        numbers(&ctx, &slot, puts).await?;
                        ctx.sync(if mode == SyncMode::msg(arrivals) {
                            SyncMode::msg(0)
                        } else {
                            mode
                        })
                        .await?;
                    } else {
                        ctx.sync(mode).window(&inbox.all()).await?;
                    }
                    common::read(&ctx, &inbox).await
                });
                let expected: Vec<u64> = (1..=puts as u64).collect();
                assert_eq!(ends.unwrap()[1], expected, "{puts} puts, {mode}, {workers} workers");
            }
        }
    }
}

#[test]
fn guards_come_back_from_them() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let (inbox, slot) = inbox(&ctx, 300).await?;
        let values = common::array(&ctx, vec![7u64, 8, 9])?;
        if ctx.rank() == Rank(0) {
            let round = ctx.round();
            let task = ctx.group().task("values").input(&values.all());
            let mut from = task.run(|values| values)?.await?;
            for put in 0..100 {
                from = round.put(from, slot.at(Rank(1), 3 * put)).await?;
            }
        }
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap()[1], [7, 8, 9].repeat(100));
}

#[test]
fn they_may_have_any_length_up_to_256_bytes() {
    let lengths = [0, 1, 7, 8, 9, 255, 256, 0, 256, 256, 256, 256, 256, 256, 256, 256, 3];
    let ends = common::run(common::config(2, 2), move |ctx| async move {
        let inbox = common::array(&ctx, vec![0u8; 4096])?;
        let slot = ctx.register_global(&inbox).await?;
        let mut at = 0;
        if ctx.rank() == Rank(0) {
            let round = ctx.round();
            for (put, len) in lengths.into_iter().enumerate() {
                round.put_copy(&vec![put as u8 + 1; len], slot.at(Rank(1), at)).await?;
                at += len;
            }
        }
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        common::read(&ctx, &inbox).await
    });
    let each = lengths.iter().enumerate().map(|(put, &len)| vec![put as u8 + 1; len]);
    let mut expected = each.collect::<Vec<_>>().concat();
    expected.resize(4096, 0);
    assert_eq!(ends.unwrap()[1], expected);
}

#[test]
fn a_copy_of_more_than_256_bytes_is_an_error() {
    let error = common::run(common::unwatched(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u8; 300])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.round().put_copy(&[1; 256], slot.at(Rank(0), 0)).await?;
        ctx.round().put_copy(&[1; 257], slot.at(Rank(0), 0)).await
    });
    common::says(&error.unwrap_err(), &["bytes to copy into a put is 257, expected at most 256"]);
}

/// The operations of a body to one rank take effect in its order, once the window is open.
#[test]
fn other_operations_come_after_those_before_them() {
    let gate = Gate::default();
    // Programs cannot rely on it: puts and an update of one element are a conflict.
    let config = talpf::Config { check_conflicts: false, ..common::config(2, 2) };
    let ends = common::run(config, |ctx| {
        let gate = gate.clone();
        async move {
            let (inbox, slot) = inbox(&ctx, 100).await?;
            let long = common::array(&ctx, vec![3u64; 50])?;
            let old = common::array(&ctx, vec![0u64])?;
            ctx.register_local(&long)?;
            ctx.register_local(&old)?;
            if ctx.rank() == Rank(1) {
                let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).spawn()?;
                gate.open();
                sync.await?;
                return common::read(&ctx, &inbox).await;
            }
            gate.passed().await;
            let round = ctx.round();
            let task = ctx.group().task("guards").input(&long.all()).output(&old.all());
            let (long, old) = task.run(|long, old| (long, old))?.await?;
            for value in 0..10u64 {
                for at in [0, 1, 60] {
                    round.put_copy(&[value], slot.at(Rank(1), at)).await?;
                }
            }
            let old = round.fetch_and_add(slot.at(Rank(1), 60), 5, old).await?;
            assert_eq!(old[0], 9);
            let _ = round.put(long, slot.at(Rank(1), 0)).await?;
            round.put_copy(&[4], slot.at(Rank(1), 1)).await?;
            drop((round, old));
            ctx.sync(SyncMode::DEFAULT).await?;
            Ok::<_, Error>(vec![])
        }
    });
    let mut expected = vec![3; 50];
    expected[1] = 4;
    expected.resize(100, 0);
    expected[60] = 14;
    assert_eq!(ends.unwrap()[1], expected);
}

#[test]
fn one_that_falls_outside_every_window_is_named_at_both_ranks() {
    for bad in [0, 1, 5, 70] {
        let error = common::run(common::unwatched(2, 2), move |ctx| async move {
            let (inbox, slot) = inbox(&ctx, 100).await?;
            if ctx.rank() == Rank(0) {
                let round = ctx.round();
                for put in 0..80 {
                    let at = if put == bad { 95 } else { put };
                    round.put_copy(&[1], slot.at(Rank(1), at)).await?;
                }
                drop(round);
                let ended = ctx.sync(SyncMode::msg(0)).await;
                return ended.and(ctx.sync(SyncMode::DEFAULT).await);
            }
            ctx.sync(SyncMode::msg(80)).window(&inbox.region(..95)).await
        });
        let slot = common::FIRST_SLOT;
        let text =
            format!("rank 0 reaches elements 95..96 of slot {slot} at rank 1 in lane 0 round 0");
        common::says(&error.unwrap_err(), &[&text]);
    }
}

/// The sync of the target expects the first put only, and ends while the others are batched or
/// have just come: an error in any case, and nothing lands after the window.
#[test]
fn one_that_comes_after_its_window_has_closed_changes_nothing() {
    for _ in 0..20 {
        let gate = Gate::default();
        let result = common::run(common::unwatched(2, 2), |ctx| {
            let gate = gate.clone();
            async move {
                let (inbox, slot) = inbox(&ctx, 10).await?;
                if ctx.rank() == Rank(0) {
                    let round = ctx.round();
                    for at in 0..3 {
                        let _ = round.put_copy(&[1], slot.at(Rank(1), at)).await;
                    }
                    gate.passed().await;
                    for at in 3..6 {
                        let _ = round.put_copy(&[1], slot.at(Rank(1), at)).await;
                    }
                    drop(round);
                    return ctx.sync(SyncMode::DEFAULT).await;
                }
                let ended = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await;
                let after = common::read(&ctx, &inbox).await;
                gate.open();
                ended?;
                assert_eq!(after?, common::read(&ctx, &inbox).await?);
                ctx.sync(SyncMode::DEFAULT).await
            }
        });
        let error = result.unwrap_err();
        let known = matches!(
            error,
            Error::OutsideWindow { .. }
                | Error::UnexpectedArrivals { .. }
                | Error::PeerFailed { .. }
        );
        assert!(known, "{error}");
    }
}

#[test]
fn credits_that_run_out_among_them_come_back() {
    for credits in [1, 3, 63, 64, 1_000] {
        for workers in [1, 2] {
            let gate = Gate::default();
            let config = Config { credits, ..common::config(2, workers) };
            let ends = common::run(config, |ctx| {
                let gate = gate.clone();
                async move {
                    let (inbox, slot) = inbox(&ctx, 500).await?;
                    if ctx.rank() == Rank(1) {
                        gate.passed().await;
                        let (low, high) = (inbox.region(..250), inbox.region(250..));
                        let sync = ctx.sync(SyncMode::msg(500));
                        sync.window(&low).window(&high).await?;
                        return common::read(&ctx, &inbox).await;
                    }
                    let round = ctx.round();
                    let puts = ctx.group().task("puts").spawn_async(async move || {
                        for at in 0..500u64 {
                            // An error fails the sync too.
                            let _ = round.put_copy(&[at], slot.at(Rank(1), at as usize)).await;
                        }
                    });
                    puts?;
                    gate.open();
                    ctx.sync(SyncMode::msg(0)).await?;
                    Ok(vec![])
                }
            });
            assert_eq!(ends.unwrap()[1], (0..500).collect::<Vec<u64>>(), "{credits} credits");
        }
    }
}

#[test]
fn thirty_two_ranks_put_to_all() {
    for workers in [1, 2] {
        let ends = common::run(common::config(32, workers), |ctx| async move {
            let (me, ranks) = (ctx.rank().0 as usize, ctx.size() as usize);
            let (inbox, slot) = inbox(&ctx, 10 * ranks).await?;
            for step in 0..3u64 {
                let round = ctx.round();
                for peer in 0..ranks {
                    for put in 0..10 {
                        let to = slot.at(Rank(peer as u32), 10 * me + put);
                        round.put_copy(&[me as u64 + step], to).await?;
                    }
                }
                drop(round);
                ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
                let sum: u64 = common::read(&ctx, &inbox).await?.iter().sum();
                assert_eq!(sum, 10 * (0..32u64).map(|rank| rank + step).sum::<u64>());
            }
            Ok::<_, Error>(())
        });
        ends.unwrap();
    }
}

/// A body that keeps its handle and waits for what its puts bring about.
#[test]
fn they_leave_though_their_body_waits_with_the_round_open() {
    for (workers, asleep) in [(1, false), (2, false), (1, true), (2, true)] {
        for polling in
            [PollingFrequency::Adaptive, PollingFrequency::Every(Duration::from_micros(200))]
        {
            let gate = Gate::default();
            let config = Config { polling, ..common::config(2, workers) };
            let ran = common::run(config, |ctx| {
                let gate = gate.clone();
                async move {
                    let (inbox, slot) = inbox(&ctx, 3).await?;
                    if ctx.rank() == Rank(0) {
                        if asleep {
                            // Longer than any polling task polls without success.
                            ctx.group().wait_for(Duration::from_millis(50)).await;
                        }
                        let round = ctx.round();
                        for at in 0..3 {
                            round.put_copy(&[1], slot.at(Rank(1), at)).await?;
                        }
                        gate.passed().await;
                        drop(round);
                        return ctx.sync(SyncMode::msg(0)).await;
                    }
                    // Ends once all three have arrived, whatever rank 0 does.
                    let ended = ctx.sync(SyncMode::msg(3)).window(&inbox.all()).await;
                    gate.open();
                    ended
                }
            });
            ran.unwrap();
        }
    }
}

#[test]
fn they_count_in_the_pattern_of_a_cached_sync() {
    let error = common::run(common::unwatched(2, 2), |ctx| async move {
        let (inbox, slot) = inbox(&ctx, 5).await?;
        for puts in [5, 4] {
            if ctx.rank() == Rank(0) {
                numbers(&ctx, &slot, puts).await?;
            }
            ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
        }
        Ok(())
    });
    let error = error.unwrap_err();
    common::says(&error, &["4 operations to rank 1, the cached pattern has 5"]);
}

#[test]
fn they_count_in_the_operations_that_a_round_may_have() {
    for (limit, fails) in [(100, false), (99, true), (2, true), (1, true)] {
        let result = common::run(common::unwatched(2, 2), move |ctx| async move {
            ctx.resize_message_queue(limit)?;
            let (inbox, slot) = inbox(&ctx, 100).await?;
            if ctx.rank() == Rank(0) {
                numbers(&ctx, &slot, 100).await?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        });
        assert_eq!(result.is_err(), fails, "{limit}");
        if let Err(error) = result {
            common::says(
                &error,
                &["number of operations in a round", &format!("expected at most {limit}")],
            );
        }
    }
}

/// Whatever is lost is sent again, and the count of a chain comes once.
#[test]
fn a_link_that_loses_and_repeats_changes_nothing() {
    for seed in 0..4 {
        let mut config = common::unwatched(2, 2);
        config.device.fault = Some(ibverbs_sim::FaultPlan {
            seed,
            drop_request_ppm: 20_000,
            drop_response_ppm: 20_000,
            duplicate_ppm: 100_000,
            delay_ppm: 50_000,
            max_delay_ns: 20_000,
            ..ibverbs_sim::FaultPlan::default()
        });
        let ends = common::run(config, |ctx| async move {
            let (inbox, slot) = inbox(&ctx, 200).await?;
            if ctx.rank() == Rank(0) {
                numbers(&ctx, &slot, 200).await?;
                ctx.sync(SyncMode::msg(0)).await?;
            } else {
                ctx.sync(SyncMode::msg(200)).window(&inbox.all()).await?;
            }
            common::read(&ctx, &inbox).await
        });
        assert_eq!(ends.unwrap()[1], (1..=200).collect::<Vec<u64>>());
    }
}
