//! Whatever the polling tasks are set to, the same comes out.

use std::time::Duration;

use crate::common;
use talpf::{Config, Error, PollingFrequency, Rank, SyncMode};
use talpf_runtime::IdlePolicy;

const FREQUENCIES: [PollingFrequency; 5] = [
    PollingFrequency::Adaptive,
    PollingFrequency::Every(Duration::ZERO),
    PollingFrequency::Every(Duration::from_nanos(100)),
    PollingFrequency::Every(Duration::from_micros(500)),
    PollingFrequency::Every(Duration::from_millis(5)),
];

/// Runs `rounds` in which every rank puts to all, gets from its neighbour and adds to rank 0.
fn work(config: Config, mode: SyncMode, rounds: u64) {
    let ranks = u64::from(config.ranks);
    let what = format!("{:?}, {mode}", config.polling);
    let ends = common::run_case(&what, config, move |ctx| async move {
        let me = ctx.rank().0 as usize;
        let inbox = common::array(&ctx, vec![0u64; ranks as usize])?;
        let slot = ctx.register_global(&inbox).await?;
        let shown = common::array(&ctx, vec![me as u64; 40])?;
        let shown_slot = ctx.register_global(&shown).await?;
        let counter = common::array(&ctx, vec![0u64])?;
        let counters = ctx.register_global(&counter).await?;
        let got = talpf_runtime::Array::new(ctx.group(), vec![0u64; 41], 40)?;
        ctx.register_local(&got)?;
        let next = Rank((ctx.rank().0 + 1) % ctx.size());
        for round in 1..=rounds {
            let task = ctx.group().task("make").inout(&shown.all());
            task.spawn(|mut shown| shown.iter_mut().for_each(|value| *value += 1))?;
            for peer in 0..ctx.size() {
                ctx.put(&shown.region(..1), slot.at(Rank(peer), me))?;
            }
            ctx.get(shown_slot.at(next, 0), &got.tile(0))?;
            ctx.fetch_and_add(counters.at(Rank(0), 0), 1, &got.tile(1))?;
            let sync = ctx.sync(mode).window(&inbox.all()).expose(&shown.all());
            if me == 0 {
                sync.window(&counter.all()).spawn()?
            } else {
                sync.spawn()?
            };
            let check = ctx.group().task("check").input(&inbox.all()).input(&got.tile(0));
            check.spawn(move |inbox, got| {
                assert!(
                    inbox.iter().enumerate().all(|(rank, &value)| value == rank as u64 + round)
                );
                assert_eq!(got[..], [u64::from(next.0) + round; 40]);
            })?;
        }
        ctx.group().wait().await?;
        Ok::<_, Error>(common::read(&ctx, &counter).await?[0])
    });
    match ends {
        Ok(ends) => assert_eq!(ends[0], ranks * rounds, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
}

fn config(ranks: u32, workers: usize, polling: PollingFrequency) -> Config {
    Config { polling, ..common::config(ranks, workers) }
}

#[test]
fn every_frequency() {
    for polling in FREQUENCIES {
        for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::CACHED.with_ack()] {
            work(config(3, 2, polling), mode, 10);
        }
    }
}

#[test]
fn one_completion_at_a_time() {
    for polling in FREQUENCIES {
        for (poll_batch, max_polling) in [(1, 1), (1, 128), (8, 1), (1024, 1 << 20)] {
            let config = Config { poll_batch, max_polling, ..config(4, 2, polling) };
            work(config, SyncMode::CACHED, 5);
        }
    }
}

#[test]
fn one_worker() {
    for polling in FREQUENCIES {
        work(config(4, 1, polling), SyncMode::DEFAULT, 5);
        work(config(1, 1, polling), SyncMode::DEFAULT, 5);
    }
}

#[test]
fn thirty_two_ranks_on_one_worker() {
    for polling in [FREQUENCIES[0], FREQUENCIES[1], FREQUENCIES[3]] {
        for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::CACHED.with_barrier()] {
            work(config(32, 1, polling), mode, 3);
        }
    }
}

#[test]
fn more_workers_than_cores_and_every_idle_policy() {
    let spin = Duration::from_micros(50);
    for idle in [IdlePolicy::Spin, IdlePolicy::Adaptive { spin }, IdlePolicy::Park] {
        for workers in [1, 2, 8] {
            let mut config = config(3, workers, PollingFrequency::Adaptive);
            config.runtime.idle = idle;
            work(config, SyncMode::CACHED, 10);
        }
    }
}

/// No task polls while nothing is in flight; an arrival after a long pause is seen nevertheless.
#[test]
fn a_rank_that_has_been_idle_for_long() {
    for polling in FREQUENCIES {
        common::run(config(2, 2, polling), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            for round in 0..3 {
                if ctx.rank() == Rank(0) {
                    // Longer than any polling task polls without success.
                    ctx.group().wait_for(Duration::from_millis(100)).await;
                    let value = common::array(&ctx, vec![round])?;
                    ctx.put(&value.all(), slot.at(Rank(1), 0))?;
                    ctx.sync(SyncMode::msg(0)).await?;
                } else {
                    ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                    assert_eq!(common::read(&ctx, &inbox).await?, [round]);
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
