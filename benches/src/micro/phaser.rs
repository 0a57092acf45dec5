//! Time of a phase of a phaser, of two ranks that both signal and wait.

use std::time::Instant;

use talpf::{Context, Error, Rank, SyncMode, exec};

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

const PHASES: u32 = 10_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if report.wants("phaser.phase_ns") {
        let samples = exec(config(2)?, phases)?;
        report.add("phaser.phase_ns", "ns", samples.concat());
    }
    Ok(())
}

async fn phases(ctx: Context) -> Result<Vec<f64>, Error> {
    let mut phaser = ctx.phaser(0..ctx.size(), 0..ctx.size()).await?;
    let (mut signaller, mut waiter) = (phaser.take_signaller()?, phaser.take_waiter()?);
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..PHASES {
            signaller.signal().await?;
            waiter.wait().await?;
        }
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(PHASES));
    }
    samples.remove(0);
    Ok(if ctx.rank() == Rank(0) { samples } else { Vec::new() })
}
