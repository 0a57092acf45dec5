//! A master that gives out work of uneven size, and workers that ask for it: two kinds of remote
//! queues.
//!
//! Every worker has a queue of its own, in which the master leaves pieces of work, and all workers
//! send their results into one queue of the master. A result is also the wish for another piece, so
//! a worker with short pieces does more of them. Each has two pieces at first: it works on one while the
//! next is under way. The master ends by dropping its senders, a worker by the end of its stream.
//! Run it with `cargo run -p talpf --example master_worker`.

use futures::{SinkExt, StreamExt};
use talpf::{Config, Context, Error, exec};

/// The master and four workers.
const RANKS: u32 = 5;
const MASTER: u32 = 0;
const PIECES: u64 = 200;
/// Pieces that a worker has at a time.
const AHEAD: usize = 2;

pub(crate) fn main() -> Result<(), Error> {
    let ends = exec(Config { ranks: RANKS, ..Config::default() }, rank)?;
    let (sum, done): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    assert_eq!(sum[MASTER as usize], (0..PIECES).map(work).sum());
    assert_eq!(done.iter().sum::<u64>(), PIECES);
    println!("the workers have done {:?} pieces", &done[1..]);
    Ok(())
}

/// Returns the number of steps of the Collatz sequence of some numbers: more of them in a later piece.
fn work(piece: u64) -> u64 {
    let next = |number: &u64| match number % 2 {
        _ if *number == 1 => None,
        0 => Some(number / 2),
        _ => Some(3 * number + 1),
    };
    let steps = |number| std::iter::successors(Some(number), next).count() as u64;
    (1..=piece * piece / 20 + 1).map(steps).sum()
}

/// Returns the sum of the results, at the master, and the number of pieces that this rank has done.
async fn rank(ctx: Context) -> Result<(u64, u64), Error> {
    let results = ctx.remote_queue::<u64>(MASTER, 1..RANKS, AHEAD).await?;
    let mut pieces = Vec::new();
    for worker in 1..RANKS {
        pieces.push(ctx.remote_queue::<u64>(worker, [MASTER], AHEAD).await?);
    }
    if let Some(mut results) = results.receiver {
        let mut workers: Vec<_> = pieces.into_iter().filter_map(|queue| queue.sender).collect();
        let (mut left, mut sum) = (0..PIECES, 0);
        for _ in 0..AHEAD {
            for (worker, piece) in workers.iter_mut().zip(&mut left) {
                worker.send(piece).await?;
            }
        }
        for _ in 0..PIECES {
            let Some(result) = results.next().await else { break };
            sum += result?;
            if let (Some(worker), Some(piece)) = (results.source(), left.next()) {
                workers[worker.0 as usize - 1].send(piece).await?;
            }
        }
        return Ok((sum, 0));
    }
    let mut done = 0;
    if let Some(mut results) = results.sender
        && let Some(mut pieces) = pieces.into_iter().find_map(|queue| queue.receiver)
    {
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            let result = ctx.group().task("work").run(move || work(piece))?.await?;
            results.send(result).await?;
            done += 1;
        }
    }
    Ok((0, done))
}
