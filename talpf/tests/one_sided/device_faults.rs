//! A device whose link loses, repeats or delays messages.

use std::time::Duration;

use crate::common;
use ibverbs_sim::FaultPlan;
use talpf::{Config, Error, Rank, SyncMode};

fn config(fault: FaultPlan) -> Config {
    let mut config = common::unwatched(3, 2);
    config.device.fault = Some(fault);
    config
}

/// Puts short and long ones round a ring, and adds at rank 0.
fn ring(config: Config, mode: SyncMode, rounds: u64) -> Result<(), Error> {
    let ends = common::run(config, move |ctx| async move {
        let values = common::array(&ctx, vec![0u64; 100])?;
        let inbox = common::array(&ctx, vec![0u64; 101])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.register_local(&values)?;
        let counter = common::array(&ctx, vec![0u64])?;
        let counters = ctx.register_global(&counter).await?;
        let old = common::array(&ctx, vec![0u64])?;
        ctx.register_local(&old)?;
        let next = Rank((ctx.rank().0 + 1) % ctx.size());
        for round in 0..rounds {
            let make = ctx.group().task("make").output(&values.all());
            make.spawn(move |mut values| values.fill(round))?;
            ctx.put(&values.all(), slot.at(next, 0))?;
            ctx.put(&values.region(..1), slot.at(next, 100))?;
            ctx.fetch_and_add(counters.at(Rank(0), 0), 1, &old.all())?;
            let sync = ctx.sync(mode).window(&inbox.all());
            sync.window(&counter.all()).await?;
            assert_eq!(common::read(&ctx, &inbox).await?, [round; 101]);
        }
        Ok::<_, Error>(common::read(&ctx, &counter).await?[0])
    })?;
    assert_eq!(ends, [3 * rounds, 0, 0]);
    Ok(())
}

#[test]
fn messages_that_arrive_twice_count_once() {
    for duplicate_ppm in [200_000, 1_000_000] {
        let fault = FaultPlan { seed: 11, duplicate_ppm, ..FaultPlan::default() };
        for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::CACHED.with_ack()] {
            ring(config(fault.clone()), mode, 20).unwrap();
        }
    }
}

/// Whatever is lost is sent again after a while.
#[test]
fn lost_and_late_messages_change_nothing() {
    let fault = FaultPlan {
        seed: 12,
        drop_request_ppm: 20_000,
        drop_response_ppm: 20_000,
        delay_ppm: 100_000,
        max_delay_ns: 100_000,
        reorder_ppm: 50_000,
        ..FaultPlan::default()
    };
    for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::CACHED.with_ack()] {
        ring(config(fault.clone()), mode, 20).unwrap();
    }
}

/// Nothing arrives: the work requests fail, and the error names the peer.
#[test]
fn a_link_that_loses_everything_is_an_error_of_the_device() {
    let fault = FaultPlan { seed: 13, drop_request_ppm: 1_000_000, ..FaultPlan::default() };
    let error = ring(config(fault), SyncMode::DEFAULT, 1).unwrap_err();
    common::says(&error, &["work request to rank ", "RetryExceeded"]);
}

/// The same under the hang watch.
#[test]
fn a_link_that_loses_everything_is_no_hang() {
    let fault = FaultPlan { seed: 13, drop_request_ppm: 1_000_000, ..FaultPlan::default() };
    let mut config = config(fault);
    config.runtime.hang_after = Duration::from_millis(300);
    assert!(ring(config, SyncMode::DEFAULT, 1).is_err());
}
