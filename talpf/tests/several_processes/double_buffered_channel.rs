//! Exchanges whose puts are not checked at the target.

use crate::common;
use talpf::{DoubleBufferedChannel, Error, Link, Rank};
use talpf_runtime::Array;

/// Puts a number of every rank to the next one in every round, and checks the arrivals.
async fn rounds(ctx: &talpf::Context, len: usize, fails_in: Option<u64>) -> Result<(), Error> {
    let (rank, ranks) = (ctx.rank().0, ctx.size());
    let values = Array::new(ctx.group(), vec![0; 2 * len], len)?;
    ctx.register_local(&values)?;
    let inbox = Array::new(ctx.group(), vec![0; 4 * len], len)?;
    ctx.register_global(&inbox).await?;
    let buffers = |link: usize| [inbox.tile(2 * link), inbox.tile(2 * link + 1)];
    let peers = [Rank((rank + ranks - 1) % ranks), Rank((rank + 1) % ranks)];
    let links = [0, 1].map(|link| Link { peer: peers[link], buffers: buffers(link) });
    let mut channel: DoubleBufferedChannel<u64> =
        ctx.double_buffered_channel(ctx.lane(3)?, &links).await?;
    for round in 0..60u64 {
        if fails_in == Some(round) && rank == 1 {
            return Err(Error::NoSuchSlot { slot: 99 });
        }
        let (now, next) = ((round % 2) as usize, ((round + 1) % 2) as usize);
        for link in 0..2 {
            let make = ctx.group().task("make").output(&values.tile(link));
            let number = u64::from(rank) << 32 | (link as u64) << 16 | round;
            make.spawn(move |mut values| values.fill(number))?;
            channel.put(link, &values.tile(link), &buffers(link)[next])?;
        }
        channel.sync()?;
        for (link, peer) in peers.iter().enumerate() {
            // On two ranks both links are to the same one, and match in order.
            let back = if ranks == 2 { link } else { 1 - link };
            let number = u64::from(peer.0) << 32 | (back as u64) << 16 | round;
            let check = ctx.group().task("check").input(&buffers(link)[now]);
            check.spawn(move |come| assert!(come.iter().all(|value| *value == number)))?;
        }
    }
    drop(channel);
    Ok(ctx.group().wait().await?)
}

#[test]
fn data_arrives_and_readers_are_not_disturbed() {
    for ranks in [2, 3, 4] {
        for len in [1, 33, 5_000] {
            let ends = common::run(common::config(ranks, 1), move |ctx| async move {
                rounds(&ctx, len, None).await
            });
            ends.unwrap();
        }
    }
}

#[test]
fn a_rank_that_fails_fails_all() {
    for round in [0, 1, 20] {
        for len in [1, 5_000] {
            let ends = common::run_all(common::unwatched(3, 1), move |ctx| async move {
                rounds(&ctx, len, Some(round)).await
            });
            assert!(ends.iter().all(Result::is_err));
            assert!(matches!(ends[1], Err(Error::NoSuchSlot { slot: 99 })), "{:?}", ends[1]);
        }
    }
}
