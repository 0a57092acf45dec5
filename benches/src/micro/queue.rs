//! Rate of items of 8 bytes from one rank, and from eight, through a remote queue; time of a call.

use std::time::Instant;

use futures::{SinkExt, StreamExt};
use talpf::{Context, Error, QueueReceiver, QueueSender, SyncMode, exec};

use super::{Result, config};
use crate::measure::{REPETITIONS, Report};

/// Number of items of all senders.
const ITEMS: u32 = 800_000;
const CALLS: u32 = 5_000;
/// Number of items of a sender that the queue has room for.
const CAPACITY: usize = 1024;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    for (name, senders, is_each_sent) in [
        ("queue.rate_8B_mops", 1, false),
        ("queue.rate_of_8_senders_8B_mops", 8, false),
        ("queue.rate_sent_singly_8B_mops", 1, true),
    ] {
        if report.wants(name) {
            let samples = exec(config(senders + 1)?, |ctx| rate(ctx, is_each_sent))?;
            report.add(name, "M/s", samples.concat());
        }
    }
    if report.wants("call.answer_8B_ns") {
        let samples = exec(config(2)?, call)?;
        report.add("call.answer_8B_ns", "ns", samples.concat());
    }
    Ok(())
}

/// Measures a request of 8 bytes and its answer.
async fn call(ctx: Context) -> Result<Vec<f64>, Error> {
    let calls = ctx.remote_calls::<u64, u64>(0, [1]).await?;
    let mut samples = Vec::new();
    if let Some(server) = calls.server {
        server.serve(|_, request| std::future::ready(request + 1)).await?;
    }
    if let Some(mut client) = calls.client {
        for _ in 0..=REPETITIONS {
            let start = Instant::now();
            for request in 0..CALLS {
                client.call(request.into()).await?;
            }
            samples.push(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
        }
        samples.remove(0);
    }
    Ok(samples)
}

/// Measures the time in which rank 0 takes the items of all others. Items are put together, or each
/// by itself if it is sent.
async fn rate(ctx: Context, is_each_sent: bool) -> Result<Vec<f64>, Error> {
    let mut queue = ctx.remote_queue::<u64>(0, 1..ctx.size(), CAPACITY).await?;
    let each = ITEMS / (ctx.size() - 1);
    let mut samples = Vec::new();
    for _ in 0..=REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        if let Some(sender) = &mut queue.sender {
            send(sender, each, is_each_sent).await?;
        }
        if let Some(receiver) = &mut queue.receiver {
            take(receiver).await?;
            samples.push(f64::from(ITEMS) / start.elapsed().as_secs_f64() / 1e6);
        }
    }
    samples.drain(..1.min(samples.len()));
    Ok(samples)
}

async fn send(sender: &mut QueueSender<u64>, items: u32, is_each_sent: bool) -> Result<(), Error> {
    for item in 0..u64::from(items) {
        match is_each_sent {
            true => sender.send(item).await?,
            false => sender.feed(item).await?,
        }
    }
    sender.flush().await
}

async fn take(receiver: &mut QueueReceiver<u64>) -> Result<(), Error> {
    let mut sum = 0;
    for _ in 0..ITEMS {
        // The senders are open.
        sum += receiver.next().await.unwrap_or(Err(Error::RunEnded))?;
    }
    std::hint::black_box(sum);
    Ok(())
}
