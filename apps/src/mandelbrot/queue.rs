//! A master at rank 0 that gives out pieces over remote queues, and workers at all ranks.
//!
//! Each worker has a queue of its own for pieces, and all send their counts into one queue of the master. A
//! count is also the wish for another piece, so a worker whose pieces are short does more of them. A
//! worker has a piece more at a time than it computes, so that it never waits for the master.

use std::sync::Arc;
use std::thread;

use futures::channel::oneshot;
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt, select_biased};
use talpf::{Context, QueueReceiver, QueueSender};

use super::tasks::Known;
use super::{Problem, WORK};
use crate::Error;
use crate::run::{Part, Problem as _, RankContext, RankSpeed, RunInput, spawn_once_on};

const MASTER: u32 = 0;

/// Number of a piece among those of all steps, and its count.
type Counted = [u64; 2];

/// Runs the program of a rank.
pub(super) async fn rank(
    ctx: RankContext,
    one_sided: Context,
    input: Arc<RunInput<Problem>>,
    known: Arc<Known>,
) -> Result<Part, Error> {
    let ranks = one_sided.size();
    // The workers of a process may compute for any of its ranks, unless each has its own.
    let ahead = input.machine.cores_of_rank() + 1;
    let counts = one_sided.remote_queue::<Counted>(MASTER, 0..ranks, ahead).await?;
    let (mut senders, mut receiver) = (Vec::new(), None);
    for worker in 0..ranks {
        let pieces = one_sided.remote_queue::<u64>(worker, [MASTER], ahead).await?;
        senders.extend(pieces.sender);
        receiver = receiver.or(pieces.receiver);
    }
    let (problem, speed) = (input.problem, RankSpeed::of(&ctx, &input));
    let worker = Worker { ctx: &ctx, problem, known: &known, speed };

    ctx.barrier().await?;
    let started = ctx.now();
    let work = async {
        match (receiver, counts.sender) {
            (Some(pieces), Some(counts)) => worker.run(pieces, counts).await,
            _ => Ok(()),
        }
    };
    let give_out = async {
        match counts.receiver {
            Some(counts) => give_out(&input, senders, counts, ahead).await,
            None => Ok(vec![0.0; input.problem.pieces()]),
        }
    };
    let (worked, result) = futures::join!(work, give_out);
    worked?;
    let result = result?;
    ctx.barrier().await?;
    Ok(Part { result, started, ended: ctx.now() })
}

/// Gives out all pieces, and adds up their counts. A worker has at most `ahead` of them.
async fn give_out(
    input: &RunInput<Problem>,
    mut workers: Vec<QueueSender<u64>>,
    mut counted: QueueReceiver<Counted>,
    ahead: usize,
) -> Result<Vec<f64>, Error> {
    let (steps, pieces) = (input.problem.steps(), input.problem.pieces());
    let (mut counts, mut left) = (vec![0.0; pieces], vec![pieces; steps]);
    let mut numbers = 0..(steps * pieces) as u64;
    for _ in 0..ahead {
        for (worker, number) in workers.iter_mut().zip(&mut numbers) {
            worker.send(number).await?;
        }
    }
    for _ in 0..steps * pieces {
        // A worker that is gone has failed the run.
        let [number, count] = counted.next().await.unwrap_or(Err(talpf::Error::RunEnded))?;
        if let (Some(worker), Some(number)) = (counted.source(), numbers.next()) {
            workers[worker.0 as usize].send(number).await?;
        }
        let (step, piece) = input.problem.piece(number);
        counts[piece] += count as f64;
        left[step] -= 1;
        if left[step] == 0 {
            input.observer.progress.advance();
        }
    }
    Ok(counts)
}

/// The worker of a rank.
struct Worker<'w> {
    ctx: &'w RankContext,
    problem: Problem,
    known: &'w Known,
    speed: RankSpeed,
}

impl Worker<'_> {
    /// Computes pieces side by side until there are no more.
    async fn run(
        &self,
        pieces: QueueReceiver<u64>,
        mut counts: QueueSender<Counted>,
    ) -> Result<(), Error> {
        let (mut pieces, mut running) =
            (pieces.fuse(), FuturesUnordered::<oneshot::Receiver<Counted>>::new());
        loop {
            select_biased! {
                counted = running.select_next_some() => {
                    // Otherwise the task has failed, and so has the run.
                    let counted = counted.map_err(|_canceled| talpf::Error::RunEnded)?;
                    counts.send(counted).await?;
                }
                piece = pieces.next() => {
                    if let Some(piece) = piece {
                        running.push(self.spawn(piece?)?);
                    }
                }
                complete => return Ok(()),
            }
        }
    }

    /// Spawns the task that counts a piece. Returns its count once the rank, which may be slow, has it.
    fn spawn(&self, number: u64) -> Result<oneshot::Receiver<Counted>, Error> {
        let (problem, core) = (self.problem, self.speed.core());
        let (step, piece) = problem.piece(number);
        let (sender, receiver) = oneshot::channel();
        let answer = Answer { counted: [number, 0], sender: Some(sender) };
        let task = self.ctx.group().task("rows").work(WORK, self.known.work(step, piece));
        spawn_once_on!(core, task, move || {
            core.compute(answer, |answer| answer.counted[1] = problem.count(step, piece));
        })?;
        Ok(receiver)
    }
}

/// The count of a piece, which is sent when it is dropped.
struct Answer {
    counted: Counted,
    sender: Option<oneshot::Sender<Counted>>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take().filter(|_| !thread::panicking()) {
            // The worker is gone if the run has failed.
            let _ = sender.send(self.counted);
        }
    }
}
