//! Slots, regions, rounds and exchanges of runs that are over, used in another run.

use std::sync::{Arc, Mutex};

use clap::ValueEnum;
use talpf::{Context, Error, Lane, MemorySlot, OpenRound, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Dice, Wrong};

const LEN: usize = 64;

/// What the run before has left.
#[derive(Clone)]
struct Left {
    ctx: Context,
    slot: MemorySlot<u64>,
    array: Array<u64>,
    round: Arc<Mutex<Option<OpenRound>>>,
}

/// What of the run before is used, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
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

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let ranks = 1 + dice.below(3);
    let registers = dice.below(3);
    let lefts = exec(config(dice, ranks), move |ctx| async move {
        for _ in 0..registers {
            let array = Array::new(ctx.group(), vec![0u64; 3], 3)?;
            ctx.register_global(&array).await?;
        }
        let array = Array::new(ctx.group(), vec![1u64; LEN], 16)?;
        let slot = ctx.register_global(&array).await?;
        let round = Arc::new(Mutex::new(Some(ctx.round_of(Lane(7)))));
        Ok::<_, Error>(Left { ctx, slot, array, round })
    });
    // A round that is kept and never closed may fail the run that it is of.
    let Ok(lefts) = lefts else { return Ok(0) };
    let what = dice.pick(What::value_variants());
    super::show(&what);
    let (who, index, registers) = (dice.below(ranks), dice.below(LEN), dice.below(4));
    let ended = exec(config(dice, ranks), |ctx| {
        let left = lefts[ctx.rank().0 as usize].clone();
        let uses = if ctx.rank().0 as usize == who { what } else { What::Nothing };
        async move { run(&ctx, left, uses, index, registers).await }
    });
    match (ended, what) {
        (Ok(found), _) if found.iter().all(|read| *read == 0) => Ok(1),
        (Ok(_), _) => Err(Wrong(format!("a reader was disturbed by {what:?} of another run"))),
        (Err(Error::Runtime(talpf_runtime::Error::TaskFailed(failure))), _)
            if failure.to_string().contains(DISTURBED) =>
        {
            Err(Wrong(format!("{what:?} of another run: {failure}")))
        }
        (Err(error), What::Nothing) => Err(error.into()),
        (Err(_), _) => Ok(1),
    }
}

const DISTURBED: &str = "somebody has written under a guard";

fn config(dice: &mut Dice, ranks: usize) -> talpf::Config {
    let runtime = super::runtime(dice);
    talpf::Config { ranks: ranks as u32, runtime, ..talpf::Config::default() }
}

/// Every rank shows an array that nobody puts to, and has windows on another one.
async fn run(
    ctx: &Context,
    left: Left,
    what: What,
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
    let peer = Rank((ctx.rank().0 + 1) % ctx.ranks());
    let (one, to) = (mine.region(..1), slot.at(peer, index));
    let old = left.slot.at(peer, index);
    match what {
        What::Nothing => ctx.put(&one, to)?,
        What::Slot => ctx.put(&one, old)?,
        What::SlotOfGet => ctx.get(old, &one)?,
        What::SlotToFetch => ctx.fetch_and_add(old, 1, &one)?,
        What::Array => ctx.put(&left.array.region(..1), to)?,
        What::Window => ctx.put(&one, to)?,
        What::Context => {
            left.ctx.put(&one, old)?;
            left.ctx.sync(SyncMode::DEFAULT).window(&left.array.all()).spawn()?;
            left.ctx.register_global(&inbox).await?;
        }
        What::Round => {
            let round = left.round.lock().ok().and_then(|mut round| round.take());
            if let Some(round) = round {
                round.put_copy(&[u64::MAX], to).await?;
            }
        }
        What::Group => left.ctx.group().task("late").inout(&mine.all()).spawn(|_| ())?,
        What::Deregistered => {
            left.ctx.deregister(left.slot.clone())?;
            ctx.deregister(left.slot.clone())?;
        }
    }
    let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all());
    let sync = if what == What::Window { sync.window(&left.array.all()) } else { sync };
    sync.await?;
    let read = ctx.group().task("read").input(&shown.all());
    let sum = read.run(|shown| shown.iter().sum::<u64>())?.await?;
    ctx.group().wait().await?;
    Ok(sum)
}
