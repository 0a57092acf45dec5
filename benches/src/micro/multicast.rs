//! Time of a multicast of 8 bytes to three ranks, until all have answered it.

use std::time::Instant;

use talpf::{Context, Error, NotifiedTask, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

/// Number of ranks, of which the first one puts to the others.
const RANKS: u32 = 4;
const ROUNDS: u32 = 2_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if report.wants("multicast.to_3_and_back_8B_us") {
        let samples = exec(config(RANKS)?, multicast)?;
        report.add("multicast.to_3_and_back_8B_us", "us", samples.concat());
    }
    Ok(())
}

async fn multicast(ctx: Context) -> Result<Vec<f64>, Error> {
    let number = Array::new(ctx.group(), vec![0u64], 1)?;
    let slot = ctx.register_global(&number).await?;
    let notifications = ctx.notifications();
    let inbox = notifications.inbox(&number.all(), 0)?;
    let is_first = ctx.rank() == Rank(0);
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        for round in 0..ROUNDS {
            if !is_first {
                let notifications = notifications.clone();
                let answer = ctx.group().task("answer").unthrottled().inbox(&inbox);
                answer.spawn(move |number| {
                    drop(number);
                    drop(notifications.notify(0, 1, round));
                })?;
            }
        }
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        if is_first {
            for round in 0..ROUNDS {
                let to = (1..RANKS).map(|rank| slot.at(rank, 0));
                ctx.multicast_notify(&number.all(), to, 0, round)?;
                for _ in 1..RANKS {
                    notifications.wait(1).await?;
                }
            }
        }
        ctx.group().wait().await?;
        samples.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    }
    samples.remove(0);
    Ok(if is_first { samples } else { Vec::new() })
}
