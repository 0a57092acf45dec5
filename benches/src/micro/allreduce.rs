//! Cost of a sum of one number over all ranks: one-sided, awaited or replayed, and by messages.

use std::time::Instant;

use talpf::{Allreduce, Context, Error, SyncMode, exec};
use talpf_runtime::Array;
use talpf_runtime::operator::Sum;
use tampi_shim::{Communicator, operator};

use super::{Result, WORKERS, config};
use crate::conditions;
use crate::error;
use crate::measure::{REPETITIONS, Report};

const STEPS: usize = 5_000;

pub(super) fn measure(report: &mut Report) -> Result<(), error::Error> {
    for ranks in [2, 4] {
        for (name, is_replayed) in [("awaited", false), ("replayed", true)] {
            let name = format!("allreduce.{name}_{ranks}_us");
            if report.wants(&name) {
                let program = move |ctx| one_sided(ctx, is_replayed);
                let samples = exec(config(ranks)?, program)?.into_iter().next();
                report.add(&name, "us", samples.unwrap_or_default());
            }
        }
        let name = format!("allreduce.messages_{ranks}_us");
        if report.wants(&name) {
            let runtime = conditions::runtime(WORKERS)?;
            let config = tampi_shim::Config { ranks, runtime, ..tampi_shim::Config::default() };
            let samples = tampi_shim::exec(config, messages)?.into_iter().next();
            report.add(&name, "us", samples.unwrap_or_default());
        }
    }
    Ok(())
}

/// Measures sums that replace their input. A step that is awaited ends before the next begins.
async fn one_sided(ctx: Context, is_replayed: bool) -> Result<Vec<f64>, Error> {
    let number = Array::new(ctx.group(), vec![1u64], 1)?;
    let sum = Allreduce::new(&ctx, ctx.lane(1)?, 1, Sum).await?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        if is_replayed {
            ctx.iterate(STEPS, |step| sum.run(step, &number.all(), &number.all()))?;
            ctx.group().wait().await?;
        } else {
            for _ in 0..STEPS {
                sum.run(&ctx, &number.all(), &number.all())?;
                ctx.group().task("read").inline().input(&number.all()).run(|_| ())?.await?;
            }
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64);
    }
    samples.remove(0);
    Ok(samples)
}

async fn messages(world: Communicator) -> Result<Vec<f64>, tampi_shim::Error> {
    let mut number = vec![1u64];
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        world.barrier().await?;
        let start = Instant::now();
        for _ in 0..STEPS {
            number = world.allreduce(number, operator::Sum).await?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / STEPS as f64);
    }
    samples.remove(0);
    Ok(samples)
}
