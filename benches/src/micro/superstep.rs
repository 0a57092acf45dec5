//! Cost of supersteps in which two ranks put a thousand numbers each way, or 64 KiB, compared with copies
//! of the same size by two bare threads; and in which each of four ranks puts a hundred numbers to the next one.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::{Array, cores, spawn_on_other_core};

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

/// Puts of a sample, in all its supersteps.
const PUTS: usize = 200_000;
const BYTES: usize = 64 << 10;
const STEPS_OF_BYTES: usize = 2_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    for (name, ranks, count) in
        [("superstep.puts_1000_us", 2, 1_000), ("superstep.puts_100_4_us", 4, 100)]
    {
        if report.wants(name) {
            let samples = exec(config(ranks)?, |ctx| puts(ctx, count))?;
            report.add(name, "us", samples.into_iter().next().unwrap_or_default());
        }
    }
    let names =
        ["superstep.put_64KiB_us", "superstep.bare_64KiB_us", "superstep.put_64KiB_of_bare"];
    if names.iter().any(|name| report.wants(name)) {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        // Alternately, so that a disturbance of the machine affects both.
        for _ in 0..=REPETITIONS {
            ours.extend(exec(config(2)?, bytes)?.into_iter().next());
            bare.push(bare_threads());
        }
        ours.remove(0);
        bare.remove(0);
        let ratios = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
        for (name, (unit, samples)) in
            names.into_iter().zip([("us", ours), ("us", bare), ("x", ratios)])
        {
            report.add(name, unit, samples);
        }
    }
    Ok(())
}

/// Returns the rank after that of a context, in a ring: of two, the other one.
fn next(ctx: &Context) -> Rank {
    Rank((ctx.rank().0 + 1) % ctx.size())
}

/// Measures supersteps in which each rank puts `count` numbers one by one to the next rank.
async fn puts(ctx: Context, count: usize) -> Result<Vec<f64>, Error> {
    let inbox = Array::new(ctx.group(), vec![0u64; count], count)?;
    let slot = ctx.register_global(&inbox).await?;
    let (next, steps) = (next(&ctx), PUTS / count);
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..steps {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            for index in 0..count {
                round.put_copy(&[7], slot.at(next, index)).await?;
            }
            drop(round);
            sync.await?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / steps as f64);
    }
    samples.remove(0);
    Ok(samples)
}

/// Measures supersteps in which both ranks put [`BYTES`] to the other one, after a warm-up.
async fn bytes(ctx: Context) -> Result<f64, Error> {
    let mine = Array::new(ctx.group(), vec![7u8; BYTES], BYTES)?;
    let inbox = Array::new(ctx.group(), vec![0u8; BYTES], BYTES)?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.register_local(&mine)?;
    let mut from = ctx.group().task("source").input(&mine.all()).run(|mine| mine)?.await?;
    let mut step = 0.0;
    for _ in 0..2 {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..STEPS_OF_BYTES {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            from = round.put(from, slot.at(next(&ctx), 0)).await?;
            drop(round);
            sync.await?;
        }
        step = start.elapsed().as_secs_f64() * 1e6 / STEPS_OF_BYTES as f64;
    }
    Ok(step)
}

/// Counter of steps on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct StepCounter(AtomicUsize);

/// Measures steps in which each of two threads copies [`BYTES`] to memory of its own and waits for
/// the other one. Returns NaN if the machine has only one core.
fn bare_threads() -> f64 {
    if cores() < 2 {
        return f64::NAN;
    }
    let steps = [StepCounter::default(), StepCounter::default()];
    let [mut here, mut there] = [0; 2].map(|_| vec![0u8; BYTES]);
    let copy = |of: usize, into: &mut [u8]| {
        let from = vec![7u8; BYTES];
        let mut step = 0.0;
        for pass in 0..2 {
            let start = Instant::now();
            for done in pass * STEPS_OF_BYTES..(pass + 1) * STEPS_OF_BYTES {
                into.copy_from_slice(black_box(&from));
                black_box(&mut *into);
                steps[of].0.store(done + 1, Ordering::Release);
                while steps[1 - of].0.load(Ordering::Acquire) <= done {
                    spin_loop();
                }
            }
            step = start.elapsed().as_secs_f64() * 1e6 / STEPS_OF_BYTES as f64;
        }
        step
    };
    std::thread::scope(|scope| match spawn_on_other_core(scope, || copy(1, &mut there)) {
        Ok(_) => copy(0, &mut here),
        Err(_) => f64::NAN,
    })
}
