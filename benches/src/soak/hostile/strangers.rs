//! Slots, regions, rounds and exchanges of an earlier run, used in another run.

use std::sync::{Arc, Mutex};

use clap::ValueEnum;
use talpf::{Context, Error, MemorySlot, OpenRound, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{EpisodeError, Rng};

const LEN: usize = 64;

/// Objects of the earlier run.
#[derive(Clone)]
struct Left {
    ctx: Context,
    slot: MemorySlot<u64>,
    array: Array<u64>,
    round: Arc<Mutex<Option<OpenRound>>>,
}

/// Object of the earlier run that is used, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StaleUse {
    Nothing,
    Slot,
    SlotOfGet,
    SlotToFetch,
    Array,
    Window,
    Context,
    Round,
    Group,
    Deregistered,
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let ranks = 1 + rng.below(3);
    let registers = rng.below(3);
    let lefts = exec(config(rng, ranks), move |ctx| async move {
        for _ in 0..registers {
            let array = Array::new(ctx.group(), vec![0u64; 3], 3)?;
            ctx.register_global(&array).await?;
        }
        let array = Array::new(ctx.group(), vec![1u64; LEN], 16)?;
        let slot = ctx.register_global(&array).await?;
        let round = Arc::new(Mutex::new(Some(ctx.lane(7)?.round())));
        Ok::<_, Error>(Left { ctx, slot, array, round })
    });
    // A round that is kept and never closed may fail its own run.
    let Ok(lefts) = lefts else { return Ok(0) };
    let what = rng.pick(StaleUse::value_variants());
    super::show(&what);
    let (who, index, registers) = (rng.below(ranks), rng.below(LEN), rng.below(4));
    let ended = exec(config(rng, ranks), |ctx| {
        let left = lefts[ctx.rank().0 as usize].clone();
        let uses = if ctx.rank().0 as usize == who { what } else { StaleUse::Nothing };
        async move { run(&ctx, left, uses, index, registers).await }
    });
    match (ended, what) {
        (Ok(found), _) if found.iter().all(|read| *read == 0) => Ok(1),
        (Ok(_), _) => {
            Err(EpisodeError(format!("a reader was disturbed by {what:?} of another run")))
        }
        (Err(Error::Runtime(talpf_runtime::Error::TaskFailed(failure))), _)
            if failure.to_string().contains(DISTURBED) =>
        {
            Err(EpisodeError(format!("{what:?} of another run: {failure}")))
        }
        (Err(error), StaleUse::Nothing) => Err(error.into()),
        (Err(_), _) => Ok(1),
    }
}

const DISTURBED: &str = "data changed under a guard";

fn config(rng: &mut Rng, ranks: usize) -> talpf::Config {
    let runtime = super::runtime(rng);
    talpf::Config { ranks: ranks as u32, runtime, ..talpf::Config::default() }
}

/// Runs a rank that exposes an array nobody puts to, and opens windows on another one.
async fn run(
    ctx: &Context,
    left: Left,
    what: StaleUse,
    index: usize,
    registers: usize,
) -> Result<u64, Error> {
    let shown = Array::new(ctx.group(), vec![0u64; 4 * LEN], 16)?;
    ctx.register_global(&shown).await?;
    for _ in 0..registers {
        let array = Array::new(ctx.group(), vec![0u64; 5], 3)?;
        ctx.register_global(&array).await?;
    }
    let inbox = Array::new(ctx.group(), vec![0u64; LEN], 16)?;
    let slot = ctx.register_global(&inbox).await?;
    let mine = Array::new(ctx.group(), vec![u64::MAX; LEN], 16)?;
    ctx.register_local(&mine)?;
    let reader = ctx.group().task("reader").input(&shown.all());
    let ends = ctx.group().clone();
    reader.spawn_async(move |shown| async move {
        for _ in 0..20 {
            ends.wait_for(std::time::Duration::from_micros(20)).await;
            assert!(shown.iter().all(|element| *element == 0), "{DISTURBED}");
        }
    })?;
    let peer = Rank((ctx.rank().0 + 1) % ctx.size());
    let (one, to) = (mine.region(..1), slot.at(peer, index));
    let old = left.slot.at(peer, index);
    match what {
        StaleUse::Nothing => ctx.put(&one, to)?,
        StaleUse::Slot => ctx.put(&one, old)?,
        StaleUse::SlotOfGet => ctx.get(old, &one)?,
        StaleUse::SlotToFetch => ctx.fetch_and_add(old, 1, &one)?,
        StaleUse::Array => ctx.put(&left.array.region(..1), to)?,
        StaleUse::Window => ctx.put(&one, to)?,
        StaleUse::Context => {
            left.ctx.put(&one, old)?;
            left.ctx.sync(SyncMode::DEFAULT).window(&left.array.all()).spawn()?;
            left.ctx.register_global(&inbox).await?;
        }
        StaleUse::Round => {
            let round = left.round.lock().ok().and_then(|mut round| round.take());
            if let Some(round) = round {
                round.put_copy(&[u64::MAX], to).await?;
            }
        }
        StaleUse::Group => left.ctx.group().task("late").inout(&mine.all()).spawn(|_| ())?,
        StaleUse::Deregistered => {
            left.ctx.deregister(left.slot.clone())?;
            ctx.deregister(left.slot.clone())?;
        }
    }
    let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all());
    let sync = if what == StaleUse::Window { sync.window(&left.array.all()) } else { sync };
    sync.await?;
    let read = ctx.group().task("read").input(&shown.all());
    let sum = read.run(|shown| shown.iter().sum::<u64>())?.await?;
    ctx.group().wait().await?;
    Ok(sum)
}
