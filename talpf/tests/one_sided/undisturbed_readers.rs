//! Readers of a round are not disturbed, however far the neighbours run ahead.

use std::time::Duration;

use crate::common::{self, Gate};
use proptest::prelude::*;
use talpf::{Error, Rank, SyncMode};

/// Fills a slice with numbers that show whether they are of one write.
fn fill(values: &mut [u64], round: u64) {
    let last = values.len() - 1;
    let mut sum = 0u64;
    for (at, value) in values[..last].iter_mut().enumerate() {
        *value = round.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64);
        sum = sum.wrapping_add(*value);
    }
    values[last] = sum;
}

fn check(values: &[u64], round: u64) {
    let last = values.len() - 1;
    let sum = values[..last].iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
    assert_eq!(values[last], sum, "a torn write in round {round}");
    assert_eq!(values[0], round.wrapping_mul(0x9e37_79b9_7f4a_7c15), "not of round {round}");
}

/// Runs rank 0 ahead of rank 1, whose readers are slow.
fn run(len: usize, rounds: u64, readers: usize, slow_us: u64, workers: usize, mode: u32) {
    let gate = Gate::default();
    common::run(common::config(2, workers), |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            let values = common::array(&ctx, vec![0u64; len])?;
            ctx.register_local(&values)?;
            if ctx.rank() == Rank(0) {
                for round in 0..rounds {
                    let make = ctx.group().task("make").output(&values.all());
                    make.spawn(move |mut values| fill(&mut values, round))?;
                    ctx.put(&values.all(), slot.at(Rank(1), 0))?;
                    let mode = if mode == 0 { SyncMode::msg(0) } else { SyncMode::CACHED };
                    ctx.sync(mode).spawn()?;
                }
                gate.open();
                ctx.group().wait().await?;
                return Ok(());
            }
            for round in 0..rounds {
                let mode = if mode == 0 { SyncMode::msg(1) } else { SyncMode::CACHED };
                ctx.sync(mode).window(&inbox.all()).spawn()?;
                for _ in 0..readers {
                    let read = ctx.group().task("check").input(&inbox.all());
                    read.spawn(move |inbox| {
                        check(&inbox, round);
                        common::spin(Duration::from_micros(slow_us));
                        check(&inbox, round);
                    })?;
                }
            }
            ctx.group().wait().await?;
            Ok::<_, Error>(())
        }
    })
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_the_sizes_and_speeds(
        len in prop_oneof![2usize..33, 33usize..5_000],
        rounds in 1u64..30, readers in 1usize..4, slow_us in 0u64..300,
        workers in 1usize..4, mode in 0u32..2,
    ) {
        run(len, rounds, readers, slow_us, workers, mode);
    }
}
