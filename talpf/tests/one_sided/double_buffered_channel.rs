//! Exchanges whose puts are not checked at the target: data arrives and readers are not disturbed.

mod failures;
mod misuse;

use std::time::Duration;

use crate::common;
use ibverbs_sim::FaultPlan;
use proptest::prelude::*;
use talpf::{Config, Context, DoubleBufferedChannel, Error, Link, Rank};
use talpf_runtime::{Array, Matrix, Region, Tiling};

const LANE: u8 = 3;

/// Arrays of a rank with a link to the rank before it and one to the rank after it, in a ring.
struct Ring {
    ranks: u32,
    here: u32,
    values: Array<u64>,
    /// Two buffers for each link.
    inbox: Array<u64>,
    channel: Option<DoubleBufferedChannel<u64>>,
}

impl Ring {
    /// Makes the arrays, whose buffers have `len` elements, without a channel.
    async fn arrays(ctx: &Context, len: usize) -> Result<Self, Error> {
        let values = Array::new(ctx.group(), vec![0; 2 * len], len)?;
        ctx.register_local(&values)?;
        let inbox = Array::new(ctx.group(), vec![0; 4 * len], len)?;
        ctx.register_global(&inbox).await?;
        let (ranks, here) = (ctx.size(), ctx.rank().0);
        Ok(Ring { ranks, here, values, inbox, channel: None })
    }

    async fn new(ctx: &Context, len: usize) -> Result<Self, Error> {
        let mut ring = Self::arrays(ctx, len).await?;
        let links = [ring.link(0), ring.link(1)];
        let channel = ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await?;
        ring.channel = Some(channel);
        Ok(ring)
    }

    /// Returns the rank at the other end. With two ranks both links join the same ranks, and match
    /// in order.
    fn peer(&self, link: usize) -> u32 {
        let distance = if link == 0 { self.ranks - 1 } else { 1 };
        (self.here + distance) % self.ranks
    }

    /// Returns the link of the other end on which that rank puts to this one.
    fn link_back(&self, link: usize) -> usize {
        if self.ranks <= 2 { link } else { 1 - link }
    }

    fn buffer(&self, link: usize, round: u64) -> Region<'_, u64> {
        self.inbox.tile(2 * link + (round % 2) as usize)
    }

    fn link(&self, link: usize) -> Link<'_, u64> {
        Link { peer: Rank(self.peer(link)), buffers: [self.buffer(link, 0), self.buffer(link, 1)] }
    }

    fn put(&mut self, link: usize) -> Result<(), Error> {
        let mut channel = self.channel.take().expect("made by `new`");
        let next = self.buffer(link, channel.round().0 + 1);
        let put = channel.put(link, &self.values.tile(link), &next);
        self.channel = Some(channel);
        put
    }

    fn channel(&mut self) -> &mut DoubleBufferedChannel<u64> {
        self.channel.as_mut().expect("made by `new`")
    }

    /// Runs a round with `readers` of each buffer, slow ones, whose data must stay intact.
    fn round(
        &mut self,
        ctx: &Context,
        round: u64,
        readers: usize,
        slow: Duration,
    ) -> Result<(), Error> {
        for link in 0..2 {
            let number = number(self.here, link, round);
            let make = ctx.group().task("make").output(&self.values.tile(link));
            make.spawn(move |mut values| values.fill(number))?;
            self.put(link)?;
        }
        self.channel().sync()?;
        for link in 0..2 {
            let expected = number(self.peer(link), self.link_back(link), round);
            for _ in 0..readers {
                let read = ctx.group().task("read").input(&self.buffer(link, round));
                read.spawn(move |buffer| {
                    assert!(buffer.iter().all(|&value| value == expected), "round {round}");
                    common::spin(slow);
                    assert!(buffer.iter().all(|&value| value == expected), "round {round}");
                })?;
            }
        }
        Ok(())
    }
}

fn number(rank: u32, link: usize, round: u64) -> u64 {
    u64::from(rank) << 48 | (link as u64) << 40 | round
}

/// Runs `rounds` on every rank without waiting; the last ranks read slowly.
fn run(config: Config, len: usize, rounds: u64, readers: usize, slow_us: u64) -> Result<(), Error> {
    let what = format!("{} ranks, {len} elements, {rounds} rounds", config.ranks);
    let ends = common::run_case(&what, config, move |ctx| async move {
        let mut ring = Ring::new(&ctx, len).await?;
        let slow = Duration::from_micros(slow_us * u64::from(ring.here) / u64::from(ring.ranks));
        for round in 0..rounds {
            ring.round(&ctx, round, readers, slow)?;
        }
        assert_eq!(ring.channel().round().0, rounds);
        Ok::<_, Error>(())
    });
    ends.map(drop)
}

#[test]
fn data_arrives_on_any_number_of_ranks_and_workers() {
    for ranks in 1..=8 {
        for workers in [1, 2, 8] {
            for len in [1, 40, 3_000] {
                run(common::config(ranks, workers), len, 30, 1, 0).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn slow_readers_are_not_disturbed(
        ranks in 2u32..6, workers in 1usize..9, len in prop_oneof![1usize..40, 40usize..4_000],
        rounds in 0u64..25, readers in 1usize..4, slow_us in 0u64..300,
    ) {
        run(common::config(ranks, workers), len, rounds, readers, slow_us).unwrap();
    }
}

#[test]
fn lost_and_late_messages_change_nothing() {
    let fault = FaultPlan {
        seed: 21,
        drop_request_ppm: 20_000,
        drop_response_ppm: 20_000,
        delay_ppm: 100_000,
        max_delay_ns: 100_000,
        duplicate_ppm: 100_000,
        ..FaultPlan::default()
    };
    let mut config = common::unwatched(3, 2);
    config.device.fault = Some(fault);
    for len in [1, 500] {
        run(config.clone(), len, 30, 1, 20).unwrap();
    }
}

/// Pieces of rows of a matrix, and rectangles as sources.
#[test]
fn rows_of_matrices() {
    let run = common::run(common::config(2, 2), |ctx| async move {
        let tiling = Tiling::new(2, 3);
        let matrix = Matrix::new(ctx.group(), vec![0u16; 8 * 9], 9, tiling)?;
        ctx.register_global(&matrix).await?;
        let peer = ctx.peer(1 - ctx.rank().0)?;
        let buffer = |row: usize| matrix.row(row, 2..8);
        let links = [Link { peer, buffers: [buffer(0), buffer(7)] }];
        let mut channel = ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await?;
        for round in 0..6u16 {
            let value = 10 * round + ctx.rank().0 as u16;
            let make = ctx.group().task("make").output(&matrix.region(3..5, 1..4));
            make.spawn(move |mut from| from.view_mut().fill(value))?;
            let next = [buffer(0), buffer(7)][usize::from(round + 1) % 2];
            channel.put(0, &matrix.region(3..5, 1..4), &next)?;
            channel.sync()?.await?;
            let come = ctx.group().task("read").input(&matrix.row(7 * usize::from(round % 2), ..));
            let come = come.run(|row| row.to_vec())?.await?;
            let sent = 10 * round + peer.0 as u16;
            assert_eq!(come[2..8], [sent; 6]);
            assert_eq!([come[0], come[1], come[8]], [0; 3]);
        }
        Ok::<_, Error>(())
    });
    run.unwrap();
}

/// Places are free after the channel, and the ranks can make another.
#[test]
fn channels_follow_each_other() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        for (lane, rounds) in [(1, 0), (2, 3), (255, 4)] {
            let ring = Ring::arrays(&ctx, 5).await?;
            let links = [ring.link(0), ring.link(1)];
            let mut channel = ctx.double_buffered_channel(ctx.lane(lane)?, &links).await?;
            for round in 0..rounds {
                for link in 0..2 {
                    channel.put(link, &ring.values.tile(link), &ring.buffer(link, round + 1))?;
                }
                channel.sync()?;
            }
            assert_eq!(channel.lane_number().0, lane);
            drop(channel);
            assert_eq!(common::read(&ctx, &ring.inbox).await?, [0; 20]);
        }
        Ok::<_, Error>(())
    });
    ends.unwrap();
}

/// Runs `main` on three ranks, of which rank 1 does something wrong, and returns what `exec` says.
fn refused<F>(what: &str, main: impl Fn(Context, bool) -> F) -> Error
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    common::quiet_panics();
    let config = common::unwatched(3, 2);
    let run = common::run_case(what, config, |ctx| {
        let wrong = ctx.rank() == Rank(1);
        main(ctx, wrong)
    });
    run.expect_err(what)
}
