//! Messages whose requests are forgotten, dropped or cancelled, whose peers fail or never appear,
//! and collectives that differ between ranks or whose operators panic.

use std::mem::forget;

use talpf_runtime::Array;
use tampi_shim::{Communicator, Error, Protocols, Rank, Tag, exec, iwait};

use super::{EpisodeError, Rng, panic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestMisuse {
    Nothing,
    ForgetsSend,
    ForgetsReceive,
    DropsReceive,
    CancelsReceive,
    ForgetsGuard,
    SendsTooMuch,
    NobodyReceives,
    NobodySends,
    Panics,
    PanicsInTask,
    Cancels,
    ForgetsProbed,
    LeavesEarly,
}

use RequestMisuse::{
    Cancels, CancelsReceive, DropsReceive, ForgetsGuard, ForgetsProbed, ForgetsReceive,
    ForgetsSend, LeavesEarly, NobodyReceives, NobodySends, Nothing, Panics, PanicsInTask,
    SendsTooMuch,
};

const ALL: [(u32, RequestMisuse); 14] = [
    (24, Nothing),
    (1, ForgetsSend),
    (1, ForgetsReceive),
    (1, DropsReceive),
    (1, CancelsReceive),
    (1, ForgetsGuard),
    (1, SendsTooMuch),
    (1, NobodyReceives),
    (1, NobodySends),
    (1, Panics),
    (1, PanicsInTask),
    (1, Cancels),
    (1, ForgetsProbed),
    (1, LeavesEarly),
];

const WRONG: &str = "a message delivered wrong data";

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let ranks = 1 + rng.below(4);
    let round = |rng: &mut Rng| (0..ranks).map(|_| *rng.pick_weighted(&ALL)).collect::<Vec<_>>();
    let rounds: Vec<_> = (0..1 + rng.below(6)).map(|_| round(rng)).collect();
    let eager = rng.pick(&[64, 4_096]);
    let config = tampi_shim::Config {
        ranks: ranks as u32,
        runtime: super::runtime(rng),
        protocols: Some(Protocols { eager, lazy: eager * rng.pick(&[1, 4]), rtr: 2_000 }),
        ..tampi_shim::Config::default()
    };
    let len = rng.pick(&[1, 40, 700, 3_000]);
    super::show(&(&rounds, len));
    let is_harmless = rounds.iter().flatten().all(|what| *what == Nothing);
    match exec(config, |world| run(world, rounds.clone(), len)) {
        Err(error) if error.to_string().contains(WRONG) => Err(error.into()),
        Err(error) if is_harmless => Err(error.into()),
        _ => Ok(rounds.len() as u64),
    }
}

async fn run(
    world: Communicator,
    rounds: Vec<Vec<RequestMisuse>>,
    len: usize,
) -> Result<(), Error> {
    let (rank, ranks, group) = (world.rank().0, world.size(), world.group());
    let (next, before) = (Rank((rank + 1) % ranks), Rank((rank + ranks - 1) % ranks));
    let values = Array::new(group, vec![0u64; len], 100)?;
    let inbox = Array::new(group, vec![0u64; len], 100)?;
    for (number, round) in rounds.iter().enumerate() {
        let what = round[rank as usize];
        let tag = Tag(number as u32);
        let value = move |rank: Rank| (number as u64) << 32 | u64::from(rank.0);
        let own = value(Rank(rank));
        group.task("make").output(&values.all()).spawn(move |mut all| all.fill(own))?;
        match what {
            Panics => panic(),
            PanicsInTask => group.task("hostile").inout(&values.all()).spawn(|_| panic())?,
            Cancels => {
                let own = group.clone();
                group.task("hostile").spawn(move || own.cancel("planned to fail"))?;
            }
            ForgetsGuard => group.task("hostile").inout(&inbox.all()).spawn(forget)?,
            LeavesEarly => return Ok(()),
            ForgetsProbed => {
                let probes = world.clone();
                let probe = async move { probes.mprobe(before, tag).await.map(forget) };
                drop(group.spawn_main("probes", probe)?);
            }
            _ => {}
        }
        let sends = world.clone();
        group.task("send").input(&values.all()).spawn(move |all| match what {
            NobodySends => drop(all),
            ForgetsSend => forget(sends.isend(all, next, tag)),
            SendsTooMuch => drop(sends.isend(vec![7u64; 2 * all.len() + 1], next, tag)),
            NobodyReceives => {
                drop(sends.issend(vec![7u8], next, Tag(9_999)));
                drop(iwait(sends.isend(all, next, tag)));
            }
            _ => drop(iwait(sends.isend(all, next, tag))),
        })?;
        let receives = world.clone();
        group.task("receive").output(&inbox.all()).spawn(move |all| {
            let receive = receives.irecv(all, before, tag);
            match what {
                ForgetsReceive => forget(receive),
                DropsReceive => drop(receive),
                CancelsReceive => {
                    receive.cancel();
                    drop(iwait(receive));
                }
                _ => drop(iwait(receive)),
            }
        })?;
        let expected = value(before);
        let is_received = what != CancelsReceive;
        group.task("check").input(&inbox.all()).spawn(move |all| {
            let is_right = all.iter().all(|element| *element == expected);
            assert!(is_right || !is_received, "{WRONG}");
        })?;
    }
    group.wait().await?;
    Ok(())
}
