//! Syncs, handles, operations and guards of rounds that are forgotten, dropped, cancelled or fail.

use std::mem::forget;

use talpf::{Arrivals, Context, Error, MemorySlot, Rank, SyncMode, exec};
use talpf_runtime::{Array, PendingEvent};

use super::{EpisodeError, Rng, panic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundMisuse {
    Nothing,
    ForgetsSync,
    ForgetsHandle,
    ForgetsOperation,
    ForgetsRound,
    ForgetsGuard,
    ForgetsEvent,
    DropsSync,
    PanicsBeforePut,
    PanicsInMain,
    ReturnsAnError,
    ReturnsEarly,
    Cancels,
    PutsOutside,
    PutsTwice,
    WindowTwice,
    PutsFarAhead,
    RunsInside,
    ForgetsMainsFuture,
}

use RoundMisuse::{
    Cancels, DropsSync, ForgetsEvent, ForgetsGuard, ForgetsHandle, ForgetsMainsFuture,
    ForgetsOperation, ForgetsRound, ForgetsSync, Nothing, PanicsBeforePut, PanicsInMain,
    PutsFarAhead, PutsOutside, PutsTwice, ReturnsAnError, ReturnsEarly, RunsInside, WindowTwice,
};

const ALL: [(u32, RoundMisuse); 19] = [
    (24, Nothing),
    (1, ForgetsSync),
    (1, ForgetsHandle),
    (1, ForgetsOperation),
    (1, ForgetsRound),
    (1, ForgetsGuard),
    (1, ForgetsEvent),
    (1, DropsSync),
    (1, PanicsBeforePut),
    (1, PanicsInMain),
    (1, ReturnsAnError),
    (1, ReturnsEarly),
    (1, Cancels),
    (1, PutsOutside),
    (1, PutsTwice),
    (1, WindowTwice),
    (1, PutsFarAhead),
    (1, RunsInside),
    (1, ForgetsMainsFuture),
];

/// Kinds of misuse that do not affect the run.
const HARMLESS: [RoundMisuse; 4] = [Nothing, ForgetsHandle, PutsTwice, RunsInside];

#[derive(Clone, Debug)]
struct Program {
    mode: SyncMode,
    /// Actions by round and rank.
    rounds: Vec<Vec<RoundMisuse>>,
}

const WRONG: &str = "a round delivered wrong data";

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let ranks = 1 + rng.below(4);
    let mode = SyncMode {
        arrivals: rng.pick(&[Arrivals::Default, Arrivals::Cached, Arrivals::Msg(1)]),
        barrier: rng.one_in(3),
        ack: rng.one_in(3),
    };
    let round = |rng: &mut Rng| (0..ranks).map(|_| *rng.pick_weighted(&ALL)).collect::<Vec<_>>();
    let program = Program { mode, rounds: (0..1 + rng.below(5)).map(|_| round(rng)).collect() };
    let config = talpf::Config {
        ranks: ranks as u32,
        credits: rng.pick(&[1, 64]),
        runtime: super::runtime(rng),
        ..talpf::Config::default()
    };
    super::show(&program);
    let is_harmless = program.rounds.iter().flatten().all(|what| HARMLESS.contains(what));
    // A sync that is declared and not spawned closes no round: its rank is a round behind from then
    // on.
    let declares_only = |what: &RoundMisuse| matches!(what, ForgetsSync | DropsSync);
    let shifts = program.rounds.iter().flatten().any(declares_only);
    let count = program.rounds.len() as u64;
    match exec(config, |ctx| run(ctx, program.clone())) {
        Err(error) if !shifts && error.to_string().contains(WRONG) => Err(error.into()),
        Err(error) if is_harmless => Err(error.into()),
        _ => Ok(count),
    }
}

async fn run(ctx: Context, program: Program) -> Result<(), Error> {
    let (rank, ranks) = (ctx.rank().0, ctx.size());
    let inbox = Array::new(ctx.group(), vec![0u64; 8], 8)?;
    let slot = ctx.register_global(&inbox).await?;
    let mine = Array::new(ctx.group(), vec![0u64; 8], 8)?;
    ctx.register_local(&mine)?;
    let peer = Rank((rank + 1) % ranks);
    for (number, round) in program.rounds.iter().enumerate() {
        let value = |rank: u32| (number as u64) << 32 | u64::from(rank);
        let from = u64::from((rank + ranks - 1) % ranks);
        let own = value(rank);
        let make = ctx.group().task("make").output(&mine.all());
        make.spawn(move |mut all| all.fill(own))?;
        let what = round[rank as usize];
        before(&ctx, what, &mine, &slot, peer)?;
        match what {
            ReturnsAnError => return Err(Error::NoSuchRank { rank: Rank(77), ranks }),
            ReturnsEarly => return Ok(()),
            PanicsInMain => panic(),
            ForgetsMainsFuture => {
                forget(Box::pin(ctx.group().wait()));
                forget(PendingEvent::of_group(ctx.group(), "forgotten"));
            }
            _ => {}
        }
        ctx.put(&mine.all(), slot.at(peer, 0))?;
        if what == PutsTwice && program.mode.arrivals == Arrivals::Default {
            ctx.put(&mine.all(), slot.at(peer, 0))?;
        }
        let sync = ctx.sync(program.mode).window(&inbox.all());
        match what {
            ForgetsSync => forget(sync),
            DropsSync => drop(sync),
            WindowTwice => drop(sync.window(&inbox.region(1..2)).spawn()?),
            ForgetsHandle => forget(sync.spawn()?),
            _ => drop(sync.spawn()?),
        }
        let expected = (number as u64) << 32 | from;
        ctx.group().task("check").input(&inbox.all()).spawn(move |all| {
            assert!(all.iter().all(|element| *element == expected), "{WRONG}");
        })?;
    }
    ctx.group().wait().await?;
    Ok(())
}

/// Performs the action of a rank before its put.
fn before(
    ctx: &Context,
    what: RoundMisuse,
    mine: &Array<u64>,
    slot: &MemorySlot<u64>,
    peer: Rank,
) -> Result<(), Error> {
    let task = ctx.group().task("hostile");
    match what {
        ForgetsOperation => {
            let (round, slot) = (ctx.round(), slot.clone());
            task.input(&mine.all()).spawn(move |all| forget(round.put(all, slot.at(peer, 0))))?;
        }
        ForgetsRound => forget(ctx.round()),
        ForgetsGuard => task.inout(&mine.all()).spawn(forget)?,
        ForgetsEvent => task.spawn(|| forget(PendingEvent::of_current_task()))?,
        PanicsBeforePut => task.inout(&mine.all()).spawn(|_| panic())?,
        Cancels => {
            let group = ctx.group().clone();
            task.spawn(move || group.cancel("planned to fail"))?;
        }
        PutsOutside => ctx.put(&mine.region(..2), slot.at(peer, 7))?,
        PutsFarAhead => {
            for _ in 0..40 {
                drop(ctx.lane(3)?.sync(SyncMode::msg(0)).spawn()?);
            }
            ctx.lane(3)?.put(&mine.all(), slot.at(peer, 0))?;
            drop(ctx.lane(3)?.sync(SyncMode::msg(0)).spawn()?);
        }
        RunsInside => task.spawn(|| {
            let ended = exec(talpf::Config::default(), async |_ctx| Ok::<(), Error>(()));
            assert!(ended.is_err(), "{WRONG}");
        })?,
        _ => {}
    }
    Ok(())
}
