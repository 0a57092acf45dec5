//! Exchanges that are dropped or forgotten half-way, with puts that are missing or wrong.

use std::mem::forget;

use talpf::{Context, Error, Link, Rank, exec};
use talpf_runtime::Array;

use super::{EpisodeError, Rng, panic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangeMisuse {
    Nothing,
    Drops,
    Forgets,
    DropsBetweenPutAndSync,
    OmitsThePut,
    PutsTwice,
    WrongPlace,
    KeepsThePlace,
    ForgetsThePlace,
    Panics,
    Cancels,
    ForgetsTheHandle,
}

use ExchangeMisuse::{
    Cancels, Drops, DropsBetweenPutAndSync, Forgets, ForgetsTheHandle, ForgetsThePlace,
    KeepsThePlace, Nothing, OmitsThePut, Panics, PutsTwice, WrongPlace,
};

const ALL: [(u32, ExchangeMisuse); 12] = [
    (20, Nothing),
    (1, Drops),
    (1, Forgets),
    (1, DropsBetweenPutAndSync),
    (1, OmitsThePut),
    (1, PutsTwice),
    (1, WrongPlace),
    (1, KeepsThePlace),
    (1, ForgetsThePlace),
    (1, Panics),
    (1, Cancels),
    (2, ForgetsTheHandle),
];

const HARMLESS: [ExchangeMisuse; 5] =
    [Nothing, PutsTwice, WrongPlace, KeepsThePlace, ForgetsTheHandle];

const WRONG: &str = "an exchange delivered wrong data";

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let ranks = 1 + rng.below(4);
    let round = |rng: &mut Rng| (0..ranks).map(|_| *rng.pick_weighted(&ALL)).collect::<Vec<_>>();
    let rounds: Vec<_> = (0..1 + rng.below(8)).map(|_| round(rng)).collect();
    let config = talpf::Config {
        ranks: ranks as u32,
        runtime: super::runtime(rng),
        ..talpf::Config::default()
    };
    super::show(&rounds);
    let is_harmless = rounds.iter().flatten().all(|what| HARMLESS.contains(what));
    match exec(config, |ctx| run(ctx, rounds.clone())) {
        Err(error) if error.to_string().contains(WRONG) => Err(error.into()),
        Err(error) if is_harmless => Err(error.into()),
        _ => Ok(rounds.len() as u64),
    }
}

/// Runs a ring in which every rank puts to the next one, which puts back.
async fn run(ctx: Context, rounds: Vec<Vec<ExchangeMisuse>>) -> Result<(), Error> {
    let (rank, ranks) = (ctx.rank().0, ctx.size());
    let values = Array::new(ctx.group(), vec![0u64; 8], 4)?;
    ctx.register_local(&values)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 16], 4)?;
    ctx.register_global(&inbox).await?;
    let peers = [Rank((rank + ranks - 1) % ranks), Rank((rank + 1) % ranks)];
    let places = |link: usize| [inbox.tile(2 * link), inbox.tile(2 * link + 1)];
    let links = [0, 1].map(|link| Link { peer: peers[link], buffers: places(link) });
    let mut exchange = ctx.double_buffered_channel(ctx.lane(2)?, &links).await?;
    for (number, round) in rounds.iter().enumerate() {
        let what = round[rank as usize];
        // With one or two ranks both links lead to the same peer, and match in order.
        let value = move |rank: Rank, link: usize| {
            (number as u64) << 32 | u64::from(rank.0) << 1 | link as u64
        };
        match what {
            Drops => return Ok(()),
            Forgets => {
                forget(exchange);
                return Ok(());
            }
            Panics => panic(),
            Cancels => {
                let group = ctx.group().clone();
                ctx.group().task("cancels").spawn(move || group.cancel("planned to fail"))?;
            }
            ForgetsThePlace => ctx.group().task("forgets").input(&inbox.all()).spawn(forget)?,
            _ => {}
        }
        for link in 0..2 {
            let own = value(Rank(rank), link);
            let make = ctx.group().task("make").output(&values.tile(link));
            make.spawn(move |mut all| all.fill(own))?;
            let next = inbox.tile(2 * link + (number + 1) % 2);
            if what == WrongPlace {
                let wrong = inbox.tile(2 * link + number % 2);
                let put = exchange.put(link, &values.tile(link), &wrong);
                assert!(put.is_err(), "{WRONG}");
            }
            if what != OmitsThePut || link == 0 {
                exchange.put(link, &values.tile(link), &next)?;
            }
            if what == PutsTwice {
                assert!(exchange.put(link, &values.tile(link), &next).is_err(), "{WRONG}");
            }
        }
        match what {
            DropsBetweenPutAndSync => return Ok(()),
            ForgetsTheHandle => forget(exchange.sync()?),
            _ => drop(exchange.sync()?),
        }
        for (link, &peer) in peers.iter().enumerate() {
            let back = if ranks <= 2 { link } else { 1 - link };
            let expected = value(peer, back);
            let check = ctx.group().task("check").input(&inbox.tile(2 * link + number % 2));
            let slow = what == KeepsThePlace;
            let waits = ctx.group().clone();
            check.spawn_async(move |place| async move {
                if slow {
                    waits.wait_for(std::time::Duration::from_micros(100)).await;
                }
                assert!(place.iter().all(|element| *element == expected), "{WRONG}");
            })?;
        }
    }
    drop(exchange);
    ctx.group().wait().await?;
    Ok(())
}
