//! Registrations that fail on some ranks, or are made by two tasks at once; all ranks continue.

use std::time::Duration;

use talpf::{Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

use super::{EpisodeError, Rng};

/// Largest number of bytes that the device registers.
const MOST: usize = 1 << 16;

#[derive(Clone, Debug)]
struct Program {
    ranks: usize,
    /// Flags by array and rank: `true` if the array is too large for the rank's device.
    too_large: Vec<Vec<bool>>,
    at_once: bool,
    local_between: bool,
    rounds: usize,
}

const DISTURBED: &str = "data changed under a guard";

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let ranks = 1 + rng.below(4);
    let too_large = |rng: &mut Rng| (0..ranks).map(|_| rng.one_in(4)).collect();
    let program = Program {
        ranks,
        too_large: (0..1 + rng.below(4)).map(|_| too_large(rng)).collect(),
        at_once: rng.one_in(3),
        local_between: rng.one_in(2),
        rounds: 1 + rng.below(3),
    };
    let mut config = talpf::Config {
        ranks: ranks as u32,
        runtime: super::runtime(rng),
        ..talpf::Config::default()
    };
    config.device.attributes.max_mr_size = MOST as u64;
    super::show(&program);
    let fails = program.too_large.iter().flatten().any(|fails| *fails);
    let ended = exec(config, |ctx| run(ctx, program.clone()));
    match ended {
        Ok(_) => Ok(program.too_large.len() as u64),
        Err(error) if error.to_string().contains(DISTURBED) => Err(error.into()),
        // Registrations from two tasks have no order, so they may be refused.
        Err(_) if fails || program.at_once => Ok(program.too_large.len() as u64),
        Err(error) => Err(error.into()),
    }
}

async fn run(ctx: Context, program: Program) -> Result<(), Error> {
    let rank = ctx.rank().0 as usize;
    let mut slots = Vec::new();
    let arrays = program.too_large.iter().map(|too_large| {
        let bytes = if too_large[rank] { 2 * MOST } else { MOST / 2 };
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
            // The program continues after a failure.
            slots.push(ctx.register_global(array).await.ok());
        }
    }
    let mine = Array::new(ctx.group(), vec![7777u64; 4], 4)?;
    for round in 0..program.rounds {
        let peer = Rank(((rank + 1 + round) % program.ranks) as u32);
        // A window on the last array, readers on all others.
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
