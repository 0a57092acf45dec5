//! Cost of a superstep: one 8-byte put to each neighbour in a ring, sync included.

use std::time::Instant;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

const STEPS: usize = 5_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    for ranks in [2, 4] {
        let neighbours = if ranks == 2 { 1 } else { 2 };
        let modes = [
            ("default", SyncMode::DEFAULT),
            ("cached", SyncMode::CACHED),
            ("msg", SyncMode::msg(neighbours)),
            ("cached_barrier", SyncMode::CACHED.with_barrier()),
            ("cached_ack", SyncMode::CACHED.with_ack()),
        ];
        for (name, mode) in modes {
            let suffix = if ranks == 2 { String::new() } else { format!("_{ranks}") };
            let name = format!("sync.{name}{suffix}_us");
            if !report.wants(&name) {
                continue;
            }
            let samples = exec(config(ranks)?, move |ctx| supersteps(ctx, mode))?;
            let of_first = samples.into_iter().next().unwrap_or_default();
            report.add(&name, "us", of_first);
        }
    }
    Ok(())
}

async fn supersteps(ctx: Context, mode: SyncMode) -> Result<Vec<f64>, Error> {
    let (rank, ranks) = (ctx.rank().0, ctx.size());
    let mine = Array::new(ctx.group(), vec![u64::from(rank); 1], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 2], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let left = Rank((rank + ranks - 1) % ranks);
    let right = Rank((rank + 1) % ranks);
    let mut from = ctx.group().task("source").input(&mine.all()).run(|mine| mine)?.await?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..STEPS {
            let round = ctx.round();
            let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
            from = round.put(from, slot.at(right, 0)).await?;
            if left != right {
                from = round.put(from, slot.at(left, 1)).await?;
            }
            drop(round);
            sync.await?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64);
    }
    samples.remove(0);
    Ok(samples)
}
