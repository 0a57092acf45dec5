//! Registrations that fail at some of the ranks, or are made by two tasks at once, after which all
//! go on.

use std::time::Duration;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{Dice, Wrong};

/// Bytes that the device registers in one piece.
const MOST: usize = 1 << 16;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    /// Arrays by turn: the ranks at which each is too large for the device.
    turns: Vec<Vec<bool>>,
    at_once: bool,
    local_between: bool,
    rounds: usize,
}

const DISTURBED: &str = "somebody has written under a guard";

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let ranks = 1 + dice.below(4);
    let turn = |dice: &mut Dice| (0..ranks).map(|_| dice.one_in(4)).collect();
    let program = Program {
        ranks,
        turns: (0..1 + dice.below(4)).map(|_| turn(dice)).collect(),
        at_once: dice.one_in(3),
        local_between: dice.one_in(2),
        rounds: 1 + dice.below(3),
    };
    let mut config = talpf::Config {
        ranks: ranks as u32,
        runtime: super::runtime(dice),
        ..talpf::Config::default()
    };
    config.device.attributes.max_mr_size = MOST as u64;
    super::show(&program);
    let fails = program.turns.iter().flatten().any(|fails| *fails);
    let ended = exec(config, |ctx| run(ctx, program.clone()));
    match ended {
        Ok(_) => Ok(program.turns.len() as u64),
        Err(error) if error.to_string().contains(DISTURBED) => Err(error.into()),
        // Whoever registers from two tasks leaves it open which is first: that may be refused.
        Err(_) if fails || program.at_once => Ok(program.turns.len() as u64),
        Err(error) => Err(error.into()),
    }
}

async fn run(ctx: Context, program: Program) -> Result<(), Error> {
    let rank = ctx.rank().0 as usize;
    let mut slots = Vec::new();
    let arrays = program.turns.iter().map(|turn| {
        let bytes = if turn[rank] { 2 * MOST } else { MOST / 2 };
        Array::new(ctx.group(), vec![0u64; bytes / 8], 7)
    });
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    if program.at_once {
        let registering: Vec<_> = arrays
            .iter()
            .map(|array| {
                let (ctx, array) = (ctx.clone(), array.clone());
                let task = ctx.group().clone();
                task.task("registers")
                    .run_async(move || async move { ctx.register_global(&array).await })
            })
            .collect::<Result<_, _>>()?;
        for registered in registering {
            slots.push(registered.await?.ok());
        }
    } else {
        for array in &arrays {
            if program.local_between && rank.is_multiple_of(2) {
                let local = Array::new(ctx.group(), vec![0u64; 4], 4)?;
                ctx.register_local(&local)?;
            }
            // Whatever it says, the program goes on.
            slots.push(ctx.register_global(array).await.ok());
        }
    }
    let mine = Array::new(ctx.group(), vec![7777u64; 4], 4)?;
    for round in 0..program.rounds {
        let peer = Rank(((rank + 1 + round) % program.ranks) as u32);
        // A window on the last of them, readers on all others.
        for array in &arrays[..arrays.len() - 1] {
            let waits = ctx.group().clone();
            let reader = ctx.group().task("reader").input(&array.all());
            reader.spawn_async(move |all| async move {
                for _ in 0..10 {
                    waits.wait_for(Duration::from_micros(10)).await;
                    assert!(all.iter().all(|element| *element == 0), "{DISTURBED}");
                }
            })?;
        }
        if let Some(Some(slot)) = slots.last() {
            ctx.put(&mine.all(), slot.at(peer, 3))?;
        }
        let sync = ctx.sync(SyncMode::DEFAULT);
        let last = arrays.last().filter(|_| slots.last().is_some_and(Option::is_some));
        match last {
            Some(array) => sync.window(&array.all()).await?,
            None => sync.await?,
        }
    }
    ctx.group().wait().await?;
    Ok(())
}
