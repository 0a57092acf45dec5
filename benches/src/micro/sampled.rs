//! Time from a written value of 8 bytes to the reader that awaits it, and of a write that nobody reads.

use std::time::Instant;

use futures::StreamExt;
use talpf::{Context, Error, Rank, SyncMode, exec};

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

const HOPS: u64 = 5_000;
const WRITES: u64 = 100_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if report.wants("sampled.to_reader_8B_ns") {
        let samples = exec(config(2)?, to_reader)?;
        report.add("sampled.to_reader_8B_ns", "ns", samples.concat());
    }
    if report.wants("sampled.write_8B_ns") {
        let samples = exec(config(2)?, write)?;
        report.add("sampled.write_8B_ns", "ns", samples.concat());
    }
    Ok(())
}

/// Measures half of the round trip of a value between two ranks, each of which reads that of the other.
async fn to_reader(ctx: Context) -> Result<Vec<f64>, Error> {
    let (mut first, mut second) =
        (ctx.sampled_value(0, [1], 0u64).await?, ctx.sampled_value(1, [0], 0u64).await?);
    let is_first = ctx.rank() == Rank(0);
    let own = if is_first { &mut first } else { &mut second };
    let mut writer = own.take_writer()?;
    let other = if is_first { &mut second } else { &mut first };
    let mut reader = other.take_reader()?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for hop in 0..HOPS {
            if is_first {
                writer.write(hop)?;
            }
            // The writer is open.
            reader.next().await.unwrap_or(Err(Error::RunEnded))?;
            if !is_first {
                writer.write(hop)?;
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / (2 * HOPS) as f64);
    }
    samples.remove(0);
    Ok(if is_first { samples } else { Vec::new() })
}

/// Measures a write while the reader waits for something else.
async fn write(ctx: Context) -> Result<Vec<f64>, Error> {
    let mut value = ctx.sampled_value(0, [1], 0u64).await?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        if let Some(writer) = &mut value.writer {
            let start = Instant::now();
            for number in 0..WRITES {
                writer.write(number)?;
            }
            samples.push(start.elapsed().as_nanos() as f64 / WRITES as f64);
        }
        ctx.sync(SyncMode::DEFAULT).await?;
    }
    samples.drain(..1.min(samples.len()));
    Ok(samples)
}
