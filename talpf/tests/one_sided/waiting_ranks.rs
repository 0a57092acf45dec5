//! Tasks that wait for syncs are carried on by those who put, not by polling tasks.

use std::time::Duration;

use crate::common;
use talpf::{Config, Error, PollingFrequency, Rank, SyncMode};

const ROUNDS: u64 = 1_000;
/// With this period of the polling tasks the rounds would take longer than a run may.
const RARELY: Duration = Duration::from_millis(500);

/// Runs supersteps in which every rank puts to its neighbours, `together` puts each, and awaits
/// every sync.
fn supersteps(workers: usize, mode: impl Fn(u32) -> SyncMode, together: usize) {
    const RANKS: u32 = 4;
    let mode = mode(2 * together as u32);
    let config =
        Config { polling: PollingFrequency::Every(RARELY), ..common::config(RANKS, workers) };
    let what = format!("{mode}, {workers} workers, {together} puts");
    let ends = common::run_case(&what, config, move |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 2 * together])?;
        let slot = ctx.register_global(&inbox).await?;
        let me = ctx.rank().0;
        for number in 1..=ROUNDS {
            let round = ctx.round();
            let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
            for (side, peer) in [me + 1, me + RANKS - 1].into_iter().enumerate() {
                for place in 0..together {
                    let at = slot.at(Rank(peer % RANKS), side * together + place);
                    round.put_copy(&[number], at).await?;
                }
            }
            drop(round);
            sync.await?;
        }
        let inbox = common::read(&ctx, &inbox).await?;
        assert!(inbox.iter().all(|&value| value == ROUNDS), "{inbox:?}");
        Ok::<_, Error>(())
    });
    if let Err(error) = ends {
        panic!("{what}: {error}");
    }
}

#[test]
fn a_put_carries_on_the_sync_of_a_rank_that_waits() {
    for workers in [1, 2] {
        supersteps(workers, SyncMode::msg, 1);
        supersteps(workers, |_| SyncMode::CACHED, 1);
    }
}

#[test]
fn puts_that_travel_together_carry_it_on_too() {
    for workers in [1, 2] {
        supersteps(workers, SyncMode::msg, 5);
    }
}

#[test]
fn so_do_counts_barriers_and_acknowledgements() {
    for workers in [1, 2] {
        supersteps(workers, |_| SyncMode::DEFAULT, 1);
        supersteps(workers, |_| SyncMode::CACHED.with_barrier(), 1);
        supersteps(workers, |_| SyncMode::CACHED.with_ack(), 1);
    }
}
