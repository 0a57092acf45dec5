//! Ranks that put and get in supersteps, compared with running them one rank after another. They are in one process, or
//! in several that a rail joins.

use talpf::{Arrivals, Context, PollingFrequency, Rank, SyncMode};
use talpf_runtime::Array;

use super::episode_error::{EpisodeError, PLANNED, compare};
use super::rails::Fabric;
use super::rng::{Rng, mix};

/// Elements of every array of a program with short transfers.
const LEN: usize = 600;
/// Factor by which arrays, and the longest transfers, are longer in others: so long that every rail has its way for
/// long ones.
const LONG: usize = 40;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    mode: SyncMode,
    /// Factor of the lengths: 1, or [`LONG`].
    scale: usize,
    rounds: Vec<Vec<Operation>>,
    /// Rank of which a task fails, and the round of the failure.
    failure: Option<(usize, usize)>,
    awaits: bool,
}

/// Put or get whose destination no other operation of its round writes.
#[derive(Clone, Copy, Debug)]
struct Operation {
    verb: Verb,
    rank: usize,
    peer: usize,
    /// Start in `values` (put) or `shown` (get), and then in `inbox` or `got`.
    from: usize,
    to: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Put,
    Get,
}

const VERBS: [(u32, Verb); 2] = [(3, Verb::Put), (1, Verb::Get)];

/// Arrays of a rank.
#[derive(Clone)]
struct Memory {
    values: Vec<u64>,
    inbox: Vec<u64>,
    shown: Vec<u64>,
    got: Vec<u64>,
}

pub(super) fn episode_in_process(rng: &mut Rng) -> Result<u64, EpisodeError> {
    episode(rng, Fabric::InProcess)
}

pub(super) fn episode_over_shm(rng: &mut Rng) -> Result<u64, EpisodeError> {
    episode(rng, Fabric::Shm)
}

pub(super) fn episode_over_ofi(rng: &mut Rng) -> Result<u64, EpisodeError> {
    episode(rng, Fabric::Ofi)
}

fn episode(rng: &mut Rng, fabric: Fabric) -> Result<u64, EpisodeError> {
    let program = Program::draw(rng);
    let config = talpf::Config {
        ranks: program.ranks as u32,
        credits: rng.pick(&[1, 2, 64]),
        polling: *rng.pick_weighted(&[
            (4, PollingFrequency::Adaptive),
            (1, PollingFrequency::Every(std::time::Duration::from_micros(20))),
        ]),
        // With such a check, windows give no tickets ahead.
        check_conflicts: rng.one_in(3),
        runtime: super::runtime(rng),
        ..talpf::Config::default()
    };
    let processes = fabric.processes(rng, program.ranks);
    let ended = fabric.exec(processes, config, |ctx| run(ctx, program.clone()));
    let found = match (ended, program.failure) {
        (Ok(found), None) => found,
        (Ok(_), Some(_)) => {
            return Err(EpisodeError("a run with a failed task returned no error".to_owned()));
        }
        (Err(_), Some(_)) => return Ok(0),
        (Err(error), None) => return Err(error),
    };
    for (rank, (found, expected)) in found.iter().zip(program.serial()).enumerate() {
        compare(format_args!("values of rank {rank}"), &found.values, &expected.values)?;
        compare(format_args!("inbox of rank {rank}"), &found.inbox, &expected.inbox)?;
        compare(format_args!("got of rank {rank}"), &found.got, &expected.got)?;
    }
    Ok(program.rounds.iter().map(|round| round.len() as u64).sum())
}

impl Program {
    fn draw(rng: &mut Rng) -> Self {
        let ranks = 1 + rng.below(5);
        // The number of arrivals differs in every round, and is filled in there.
        let arrivals = rng.pick(&[Arrivals::Default, Arrivals::Cached, Arrivals::Msg(0)]);
        let (barrier, ack) = (rng.one_in(2), rng.one_in(2));
        let mode = SyncMode { arrivals, barrier, ack };
        let scale = if rng.one_in(4) { LONG } else { 1 };
        let first = Self::round(rng, ranks, scale);
        let mut rounds = vec![first.clone()];
        for _ in 0..rng.below(12) {
            let remembers = arrivals == Arrivals::Cached;
            rounds.push(if remembers { first.clone() } else { Self::round(rng, ranks, scale) });
        }
        let failure = rng.one_in(8).then(|| (rng.below(ranks), rng.below(rounds.len())));
        Program { ranks, mode, scale, rounds, failure, awaits: rng.one_in(3) }
    }

    fn round(rng: &mut Rng, ranks: usize, scale: usize) -> Vec<Operation> {
        let elements = LEN * scale;
        let mut used = vec![[0; 2]; ranks];
        let mut operations = Vec::new();
        for _ in 0..rng.below(8 * ranks) {
            let (verb, rank, peer) =
                (*rng.pick_weighted(&VERBS), rng.below(ranks), rng.below(ranks));
            let longest = rng.pick(&[1, 8, 32, elements / 2]);
            let (from, end) = rng.part(elements, longest);
            let written = if verb == Verb::Put { peer } else { rank };
            let used = &mut used[written][verb as usize];
            let (to, len) = (*used + rng.below(3), end - from);
            if to + len <= elements {
                *used = to + len;
                operations.push(Operation { verb, rank, peer, from, to, len });
            }
        }
        operations
    }

    fn mode_of(&self, round: &[Operation], rank: usize) -> SyncMode {
        let mut mode = self.mode;
        if let Arrivals::Msg(count) = &mut mode.arrivals {
            *count = round.iter().filter(|operation| operation.peer == rank).count() as u32;
        }
        mode
    }

    fn serial(&self) -> Vec<Memory> {
        let memory = |rank| Memory::new(rank, self.scale);
        let mut ranks: Vec<Memory> = (0..self.ranks).map(memory).collect();
        for round in &self.rounds {
            for &Operation { verb, rank, peer, from, to, len } in round {
                if verb == Verb::Put {
                    let values = ranks[rank].values[from..from + len].to_vec();
                    ranks[peer].inbox[to..to + len].copy_from_slice(&values);
                } else {
                    let values = ranks[peer].shown[from..from + len].to_vec();
                    ranks[rank].got[to..to + len].copy_from_slice(&values);
                }
            }
            for Memory { values, inbox, shown, got } in &mut ranks {
                compute(values, shown, inbox, got);
            }
        }
        ranks
    }
}

impl Memory {
    fn new(rank: usize, scale: usize) -> Self {
        let elements = (LEN * scale) as u64;
        let numbers = |salt: u64| (0..elements).map(move |at| mix(at, salt << 8 | rank as u64));
        let [values, inbox, shown, got] = [1, 2, 3, 4].map(|salt| numbers(salt).collect());
        Memory { values, inbox, shown, got }
    }
}

/// Mixes all arrays, so that every element depends on every other one.
fn compute(values: &mut [u64], shown: &mut [u64], inbox: &[u64], got: &[u64]) {
    for at in 0..values.len() {
        values[at] = mix(values[at], inbox[at] ^ got[got.len() - 1 - at]);
        shown[at] = mix(shown[at], values[at]);
    }
}

async fn run(ctx: Context, program: Program) -> Result<Memory, EpisodeError> {
    let rank = ctx.rank().0 as usize;
    let Memory { values, inbox, shown, got } = Memory::new(rank, program.scale);
    let array = |values, tile: usize| Array::new(ctx.group(), values, tile * program.scale);
    let (values, inbox) = (array(values, 37)?, array(inbox, 200)?);
    let (shown, got) = (array(shown, 600)?, array(got, 11)?);
    ctx.register_local(&values)?;
    ctx.register_local(&got)?;
    let inbox_slot = ctx.register_global(&inbox).await?;
    let shown_slot = ctx.register_global(&shown).await?;
    for (number, round) in program.rounds.iter().enumerate() {
        if program.failure == Some((rank, number)) {
            let task = ctx.group().task("broken").inout(&values.all());
            task.spawn(|_| std::panic::panic_any(PLANNED))?;
        }
        for operation in round.iter().filter(|operation| operation.rank == rank) {
            let &Operation { verb, peer, from, to, len, .. } = operation;
            let peer = Rank(peer as u32);
            match verb {
                Verb::Put => ctx.put(&values.region(from..from + len), inbox_slot.at(peer, to))?,
                Verb::Get => ctx.get(shown_slot.at(peer, from), &got.region(to..to + len))?,
            }
        }
        let sync = ctx.sync(program.mode_of(round, rank)).window(&inbox.all());
        let sync = sync.expose(&shown.all()).spawn()?;
        let task = ctx.group().task("compute").inout(&values.all()).inout(&shown.all());
        let task = task.input(&inbox.all()).input(&got.all());
        task.spawn(|mut values, mut shown, inbox, got| {
            compute(&mut values, &mut shown, &inbox, &got);
        })?;
        if program.awaits {
            sync.await?;
        }
    }
    ctx.group().wait().await?;
    let read = async |array: &Array<u64>| -> Result<Vec<u64>, EpisodeError> {
        let task = ctx.group().task("read").input(&array.all());
        Ok(task.run(|all| all.to_vec())?.await?)
    };
    let (values, inbox) = (read(&values).await?, read(&inbox).await?);
    Ok(Memory { values, inbox, shown: read(&shown).await?, got: read(&got).await? })
}
