//! Time from a notified put of 8 bytes to the start of the task that waits for it, and from there to
//! that of the next one, which ends a task, releases its region and begins the next wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use talpf::{Context, Error, NotifiedTask, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

const HOPS: usize = 5_000;
/// Tasks of a rank that wait at a time.
const WAITING: usize = 250;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if report.wants("notify.put_to_task_8B_ns") || report.wants("notify.task_to_task_8B_ns") {
        let origin = Instant::now();
        let samples = exec(config(2)?, async move |ctx| put_to_task(ctx, origin).await)?;
        let [to_task, hops] = samples.into_iter().next().unwrap_or_default();
        report.add("notify.put_to_task_8B_ns", "ns", to_task);
        report.add("notify.task_to_task_8B_ns", "ns", hops);
    }
    if report.wants("notify.to_await_ns") {
        let samples = exec(config(2)?, to_await)?;
        report.add("notify.to_await_ns", "ns", samples.concat());
    }
    Ok(())
}

fn other(ctx: &Context) -> Rank {
    Rank(1 - ctx.rank().0)
}

/// Measures hops of a number between two ranks: each has tasks with one inbox, of which every one runs
/// once the number has come, and puts the next one back. A number is the time of its put.
async fn put_to_task(ctx: Context, origin: Instant) -> Result<[Vec<f64>; 2], Error> {
    let number = Array::new(ctx.group(), vec![0u64], 1)?;
    let slot = ctx.register_global(&number).await?;
    let notifications = ctx.notifications();
    let inbox = notifications.inbox(&number.all(), 0)?;
    let (is_first, there) = (ctx.rank() == Rank(0), other(&ctx));
    let now = move || origin.elapsed().as_nanos() as u64;
    let [mut to_task, mut hops] = [const { Vec::new() }; 2];
    for _ in 0..=REPETITIONS {
        let (waited_ns, mut took) = (Arc::new(AtomicU64::new(0)), Duration::ZERO);
        for _ in 0..HOPS / WAITING {
            for hop in 0..WAITING {
                let (notifications, slot) = (notifications.clone(), slot.clone());
                let waited_ns = Arc::clone(&waited_ns);
                let ends = is_first && hop == WAITING - 1;
                let task = ctx.group().task("hop").unthrottled().inbox(&inbox);
                task.spawn(move |number| {
                    waited_ns.fetch_add(now().saturating_sub(number[0]), Ordering::Relaxed);
                    drop(number);
                    if !ends {
                        drop(notifications.put_copy(&[now()], slot.at(there, 0), 0, 0));
                    }
                })?;
            }
            ctx.sync(SyncMode::DEFAULT).await?;
            let start = Instant::now();
            if is_first {
                notifications.put_copy(&[now()], slot.at(there, 0), 0, 0).await?;
            }
            ctx.group().wait().await?;
            took += start.elapsed();
        }
        hops.push(took.as_nanos() as f64 / (2 * HOPS) as f64);
        to_task.push(waited_ns.load(Ordering::Relaxed) as f64 / HOPS as f64);
    }
    to_task.remove(0);
    hops.remove(0);
    Ok(if is_first { [to_task, hops] } else { [const { Vec::new() }; 2] })
}

/// Measures half of the round trip of a notification without a put, between mains that await it.
async fn to_await(ctx: Context) -> Result<Vec<f64>, Error> {
    let notifications = ctx.notifications();
    let (is_first, there) = (ctx.rank() == Rank(0), other(&ctx));
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for value in 0..HOPS as u32 {
            if is_first {
                notifications.notify(there, 0, value).await?;
            }
            notifications.wait(0).await?;
            if !is_first {
                notifications.notify(there, 0, value).await?;
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / (2 * HOPS) as f64);
    }
    samples.remove(0);
    Ok(if is_first { samples } else { Vec::new() })
}
