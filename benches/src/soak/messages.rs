//! Ranks that send messages to each other from tasks, compared with copying them one after another.

use talpf_runtime::{Array, In, Out, fail_current_task};
use tampi_shim::{Buffer, Communicator, Protocols, Rank, Request, Tag, exec, iwait};

use super::episode_error::{EpisodeError, compare};
use super::rng::{Rng, mix};

/// Elements of every array, for messages of every protocol.
const LEN: usize = 3_000;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    rounds: Vec<Vec<Message>>,
}

/// Message from `values` of one rank to `inbox` of another.
#[derive(Clone, Copy, Debug)]
struct Message {
    source: usize,
    target: usize,
    from: usize,
    to: usize,
    len: usize,
    send: Wait,
    receive: Wait,
}

/// Method by which a task waits for its operation.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// The task completes with the operation.
    Bound,
    /// The task is suspended until the operation completes.
    Blocking,
}

const WAITS: [(u32, Wait); 2] = [(2, Wait::Bound), (1, Wait::Blocking)];

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let program = Program::draw(rng);
    let eager = rng.pick(&[64, 4_096]);
    let lazy = eager * rng.pick(&[1, 4]);
    let config = tampi_shim::Config {
        ranks: program.ranks as u32,
        runtime: super::runtime(rng),
        protocols: Some(Protocols { eager, lazy, rtr: 2_000 }),
        ..tampi_shim::Config::default()
    };
    let found = exec(config, |world| run(world, program.clone()))?;
    let expected = program.serial();
    for (rank, (found, expected)) in found.iter().zip(expected).enumerate() {
        compare(format_args!("values of rank {rank}"), found, &expected)?;
    }
    Ok(program.rounds.iter().map(|round| round.len() as u64).sum())
}

impl Program {
    fn draw(rng: &mut Rng) -> Self {
        let ranks = 1 + rng.below(5);
        let rounds = (0..1 + rng.below(12)).map(|_| Self::round(rng, ranks)).collect();
        Program { ranks, rounds }
    }

    fn round(rng: &mut Rng, ranks: usize) -> Vec<Message> {
        let mut used = vec![0; ranks];
        let mut messages = Vec::new();
        for _ in 0..rng.below(8 * ranks) {
            let (source, target) = (rng.below(ranks), rng.below(ranks));
            let longest = rng.pick(&[1, 8, 60, 2_000]);
            let (from, end) = rng.part(LEN, longest);
            let (to, len) = (used[target] + rng.below(3), end - from);
            if to + len <= LEN {
                used[target] = to + len;
                let (send, receive) = (*rng.pick_weighted(&WAITS), *rng.pick_weighted(&WAITS));
                messages.push(Message { source, target, from, to, len, send, receive });
            }
        }
        messages
    }

    fn serial(&self) -> Vec<Vec<u64>> {
        let mut values: Vec<_> = (0..self.ranks).map(initial).collect();
        let mut inboxes = vec![vec![0; LEN]; self.ranks];
        for round in &self.rounds {
            for &Message { source, target, from, to, len, .. } in round {
                inboxes[target][to..to + len].copy_from_slice(&values[source][from..from + len]);
            }
            values.iter_mut().zip(&inboxes).for_each(|(values, inbox)| compute(values, inbox));
        }
        values
    }
}

fn initial(rank: usize) -> Vec<u64> {
    (0..LEN as u64).map(|at| mix(at, rank as u64)).collect()
}

fn compute(values: &mut [u64], inbox: &[u64]) {
    values.iter_mut().zip(inbox.iter().rev()).for_each(|(value, come)| *value = mix(*value, *come));
}

async fn run(world: Communicator, program: Program) -> Result<Vec<u64>, EpisodeError> {
    let (rank, group) = (world.rank().0 as usize, world.group());
    let values = Array::new(group, initial(rank), 41)?;
    let inbox = Array::new(group, vec![0u64; LEN], 500)?;
    for (number, round) in program.rounds.iter().enumerate() {
        for (message, tag) in round.iter().zip((number as u32 % 7 * 100)..) {
            let &Message { source, target, from, to, len, send, receive } = message;
            let tag = Tag(tag);
            if source == rank {
                let task = group.task("send").input(&values.region(from..from + len));
                let (world, peer) = (world.clone(), Rank(target as u32));
                let start = move |values: In<u64>| world.isend(values, peer, tag);
                match send {
                    Wait::Bound => task.spawn(move |values| bind(start(values)))?,
                    Wait::Blocking => task.spawn_async(move |values| wait(start(values)))?,
                }
            }
            if target == rank {
                let task = group.task("receive").output(&inbox.region(to..to + len));
                let (world, peer) = (world.clone(), Rank(source as u32));
                let start = move |inbox: Out<u64>| world.irecv(inbox, peer, tag);
                match receive {
                    Wait::Bound => task.spawn(move |inbox| bind(start(inbox)))?,
                    Wait::Blocking => task.spawn_async(move |inbox| wait(start(inbox)))?,
                }
            }
        }
        let task = group.task("compute").inout(&values.all()).input(&inbox.all());
        task.spawn(|mut values, inbox| compute(&mut values, &inbox))?;
    }
    let read = group.task("read").input(&values.all()).run(|values| values.to_vec())?;
    Ok(read.await?)
}

fn bind<B: Buffer>(request: Request<B>) {
    if let Err(error) = iwait(request) {
        // Succeeds, since this runs in a task.
        let _ = fail_current_task(error.to_string());
    }
}

async fn wait<B: Buffer>(request: Request<B>) {
    if let Err(error) = request.await {
        let _ = fail_current_task(error.to_string());
    }
}
