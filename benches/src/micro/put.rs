//! Cost of a put - latency, rate, bandwidth - and of an atomic.

use std::time::Instant;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

const HOPS: u32 = 20_000;
const PUTS: usize = 100_000;
const MIB: usize = 1 << 20;
const LARGE_PUTS: usize = 32;
const ATOMICS: usize = 5_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if report.wants("put.latency_8B_ns") {
        let samples = exec(config(2)?, latency)?;
        report.add("put.latency_8B_ns", "ns", samples.concat());
    }
    if report.wants("put.rate_8B_mops") {
        let samples = exec(config(2)?, |ctx| rate(ctx, false))?;
        report.add("put.rate_8B_mops", "M/s", samples.concat());
    }
    if report.wants("put.rate_of_guard_8B_mops") {
        let samples = exec(config(2)?, |ctx| rate(ctx, true))?;
        report.add("put.rate_of_guard_8B_mops", "M/s", samples.concat());
    }
    if report.wants("put.bandwidth_1MiB_gbs") || report.wants("memcpy.bandwidth_1MiB_gbs") {
        let (put, copy) = exec(config(2)?, bandwidth)?.concat().into_iter().unzip();
        report.add("put.bandwidth_1MiB_gbs", "GB/s", put);
        report.add("memcpy.bandwidth_1MiB_gbs", "GB/s", copy);
    }
    if report.wants("fetch_add.latency_ns") {
        let samples = exec(config(2)?, fetch_add)?;
        report.add("fetch_add.latency_ns", "ns", samples.concat());
    }
    Ok(())
}

fn other(ctx: &Context) -> Rank {
    Rank(1 - ctx.rank().0)
}

/// Measures half of the round trip of a number between two ranks on two cores: each waits in a body
/// until the number has landed and been counted, and puts it back.
async fn latency(ctx: Context) -> Result<Vec<f64>, Error> {
    let mine = Array::new(ctx.group(), vec![7u64; 1], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let mut from = ctx.group().task("source").input(&mine.all()).run(|mine| mine)?.await?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let round = ctx.round();
        let sync = ctx.sync(SyncMode::msg(HOPS)).window(&inbox.all()).spawn()?;
        let start = Instant::now();
        for hop in 0..HOPS {
            if ctx.rank().0 == 0 {
                from = round.put(from, slot.at(other(&ctx), 0)).await?;
            }
            while ctx.arrivals() <= hop {
                std::hint::spin_loop();
            }
            if ctx.rank().0 == 1 {
                from = round.put(from, slot.at(other(&ctx), 0)).await?;
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(2 * HOPS));
        drop(round);
        sync.await?;
    }
    samples.remove(0);
    Ok(if ctx.rank().0 == 0 { samples } else { Vec::new() })
}

/// Measures 8-byte puts of rank 0 in sequence, either of copies or of a guard that moves into each
/// put and back. The round ends when all have arrived.
async fn rate(ctx: Context, of_guard: bool) -> Result<Vec<f64>, Error> {
    let mine = Array::new(ctx.group(), vec![7u64; 1], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 64], 64)?;
    let slot = ctx.register_global(&inbox).await?;
    let mut from = ctx.group().task("source").input(&mine.all()).run(|mine| mine)?.await?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        let round = ctx.round();
        let arrivals = if ctx.rank().0 == 1 { PUTS as u32 } else { 0 };
        let sync = ctx.sync(SyncMode::msg(arrivals).with_barrier()).window(&inbox.all()).spawn()?;
        let start = Instant::now();
        let puts = if ctx.rank().0 == 0 { PUTS } else { 0 };
        if of_guard {
            for number in 0..puts {
                from = round.put(from, slot.at(Rank(1), number % 64)).await?;
            }
        } else {
            for number in 0..puts {
                round.put_copy(&from, slot.at(Rank(1), number % 64)).await?;
            }
        }
        drop(round);
        sync.await?;
        samples.push(PUTS as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    samples.remove(0);
    Ok(if ctx.rank().0 == 0 { samples } else { Vec::new() })
}

/// Measures 1 MiB puts of rank 0 in sequence, and copies of the same size between the same kinds of
/// memory. Rank 1 is idle meanwhile.
async fn bandwidth(ctx: Context) -> Result<Vec<(f64, f64)>, Error> {
    let mine = Array::new(ctx.group(), vec![7u8; MIB], MIB)?;
    let inbox = Array::new(ctx.group(), vec![0u8; MIB], MIB)?;
    let copy = Array::new(ctx.group(), vec![0u8; MIB], MIB)?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.register_local(&mine)?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        let mut from = ctx.group().task("source").input(&mine.all()).run(|mine| mine)?.await?;
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        let round = ctx.round();
        let arrivals = if ctx.rank().0 == 1 { LARGE_PUTS as u32 } else { 0 };
        let sync = ctx.sync(SyncMode::msg(arrivals).with_barrier()).window(&inbox.all()).spawn()?;
        let start = Instant::now();
        if ctx.rank().0 == 0 {
            for _ in 0..LARGE_PUTS {
                from = round.put(from, slot.at(Rank(1), 0)).await?;
            }
        }
        drop(round);
        sync.await?;
        let put = start.elapsed();
        drop(from);
        if ctx.rank().0 != 0 {
            continue;
        }
        let copied = ctx.group().task("copy").input(&mine.all()).output(&copy.all());
        let copied = copied.run(|mine, mut copy| {
            let start = Instant::now();
            for _ in 0..LARGE_PUTS {
                copy.copy_from_slice(std::hint::black_box(&mine));
                std::hint::black_box(&mut *copy);
            }
            start.elapsed()
        })?;
        let copied = copied.await?;
        let rate = |time: std::time::Duration| (MIB * LARGE_PUTS) as f64 / time.as_secs_f64() / 1e9;
        samples.push((rate(put), rate(copied)));
    }
    // The first samples warm up the caches.
    Ok(samples.into_iter().skip(1).collect())
}

/// Measures a fetch-and-add of rank 0 on a number of rank 1, including the wait for its result.
async fn fetch_add(ctx: Context) -> Result<Vec<f64>, Error> {
    let counter = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let before = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let slot = ctx.register_global(&counter).await?;
    ctx.register_local(&before)?;
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        let mut result =
            ctx.group().task("result").inout(&before.all()).run(|result| result)?.await?;
        let round = ctx.round();
        let arrivals = if ctx.rank().0 == 1 { ATOMICS as u32 } else { 0 };
        let sync =
            ctx.sync(SyncMode::msg(arrivals).with_barrier()).window(&counter.all()).spawn()?;
        let start = Instant::now();
        if ctx.rank().0 == 0 {
            for _ in 0..ATOMICS {
                result = round.fetch_and_add(slot.at(Rank(1), 0), 1, result).await?;
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / ATOMICS as f64);
        drop((round, result));
        sync.await?;
    }
    samples.remove(0);
    Ok(if ctx.rank().0 == 0 { samples } else { Vec::new() })
}
