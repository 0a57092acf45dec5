//! Cost of supersteps of plain BSP: with one put of 8 bytes each way, and for each of a thousand.

use std::time::Instant;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

pub(super) fn measure(report: &mut Report) -> Result<()> {
    for (name, unit, puts, steps) in
        [("bsp.put_8B_us", "us", 1, 2_000), ("bsp.put_8B_of_1000_ns", "ns", 1_000, 20)]
    {
        if report.wants(name) {
            let samples = exec(config(2)?, async move |ctx| supersteps(ctx, puts, steps).await)?;
            let of_one = if unit == "us" { 1e6 } else { 1e9 / puts as f64 };
            let samples = samples.into_iter().next().unwrap_or_default();
            report.add(name, unit, samples.iter().map(|step| step * of_one).collect());
        }
    }
    Ok(())
}

/// Measures supersteps in which both ranks put `puts` numbers to the other one, in seconds.
async fn supersteps(ctx: Context, puts: usize, steps: usize) -> Result<Vec<f64>, Error> {
    let mine = Array::new(ctx.group(), vec![7u64; puts], puts)?;
    let inbox = Array::new(ctx.group(), vec![0u64; puts], puts)?;
    let slot = ctx.register_global(&inbox).await?;
    let there = Rank(1 - ctx.rank().0);
    ctx.resize_message_queue(puts)?;
    let mut bsp = ctx.bsp();
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..steps {
            for index in 0..puts {
                bsp.put(&mine.region(index..=index), slot.at(there, index))?;
            }
            bsp.sync().await?;
        }
        samples.push(start.elapsed().as_secs_f64() / steps as f64);
    }
    samples.remove(0);
    Ok(samples)
}
