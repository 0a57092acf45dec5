//! Runs of many ranks: a pair of ranks is connected by its first request, whichever that is, and a
//! run may have more ranks than could all be connected to each other.

use crate::common;
use talpf::{Config, Context, Error, Rank, SyncMode};

/// Largest number of ranks of a run.
const MOST: u32 = 4096;

/// Passes the number of each rank on to the next rank.
async fn ring(ctx: Context) -> Result<u32, Error> {
    let mine = common::array(&ctx, vec![ctx.rank().0])?;
    let inbox = common::array(&ctx, vec![0u32])?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.put(&mine.all(), slot.at((ctx.rank().0 + 1) % ctx.size(), 0))?;
    ctx.sync(SyncMode::DEFAULT.with_barrier()).window(&inbox.all()).await?;
    Ok(common::read(&ctx, &inbox).await?[0])
}

#[test]
fn more_ranks_than_queue_pairs_could_connect() {
    let ranks = 600;
    let before = (0..ranks).map(|rank| (rank + ranks - 1) % ranks);
    let config = common::unwatched(ranks, 2);
    assert!(config.device.attributes.max_qp < ranks * ranks);
    assert!(common::run(config, ring).unwrap().into_iter().eq(before));
}

#[test]
fn the_largest_number_of_ranks_and_one_more() {
    let main = |ctx: Context| async move { ctx.sync(SyncMode::msg(0).with_barrier()).await };
    assert_eq!(common::run(common::unwatched(MOST, 2), main).unwrap().len(), MOST as usize);
    let error = common::run(common::unwatched(MOST + 1, 2), main).unwrap_err();
    assert!(matches!(error, Error::Limit { what: "number of ranks", limit: 4096, .. }), "{error}");
}

/// Puts to every rank, itself too.
async fn to_all(ctx: Context) -> Result<Vec<u32>, Error> {
    let mine = common::array(&ctx, vec![ctx.rank().0 + 1])?;
    let inbox = common::array(&ctx, vec![0; ctx.size() as usize])?;
    let slot = ctx.register_global(&inbox).await?;
    for rank in 0..ctx.size() {
        ctx.put(&mine.all(), slot.at(rank, ctx.rank().0 as usize))?;
    }
    ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
    common::read(&ctx, &inbox).await
}

fn with_queue_pairs(ranks: u32, most: u32) -> Config {
    let mut config = common::unwatched(ranks, 2);
    config.device.attributes.max_qp = most;
    config
}

#[test]
fn as_many_pairs_as_the_device_has_queue_pairs_for_and_one_more() {
    let sums = common::run(with_queue_pairs(3, 9), to_all).unwrap();
    assert_eq!(sums, [[1, 2, 3]; 3]);
    let error = common::run(with_queue_pairs(3, 8), to_all).unwrap_err();
    common::says(&error, &["max_qp: 9 requested, at most 8 possible"]);
}

/// The barrier's own messages are the first that find no queue pair.
#[test]
fn a_barrier_without_queue_pairs_fails() {
    let main = |ctx: Context| async move { ctx.sync(SyncMode::msg(0).with_barrier()).await };
    let error = common::run(with_queue_pairs(2, 1), main).unwrap_err();
    common::says(&error, &["max_qp: 2 requested, at most 1 possible"]);
}

/// First requests of all kinds cross each other.
#[test]
fn all_ranks_connect_to_all_at_the_same_time() {
    for _ in 0..20 {
        let ranks = 9;
        let results = common::run(common::unwatched(ranks, 4), |ctx| async move {
            let (rank, size) = (ctx.rank().0, ctx.size() as usize);
            let mine = common::array(&ctx, vec![u64::from(rank) + 1])?;
            let inbox = common::array(&ctx, vec![0u64; size])?;
            let counter = common::array(&ctx, vec![0u64])?;
            let table = common::array(&ctx, vec![u64::from(rank); size])?;
            let olds = common::array(&ctx, vec![0u64; size])?;
            let gotten = common::array(&ctx, vec![0u64; size])?;
            let inboxes = ctx.register_global(&inbox).await?;
            let counters = ctx.register_global(&counter).await?;
            let tables = ctx.register_global(&table).await?;
            for peer in (0..ranks).map(|hop| (rank + hop) % ranks) {
                let at = peer as usize;
                match (rank + peer) % 3 {
                    0 => ctx.put(&mine.all(), inboxes.at(peer, rank as usize))?,
                    1 => ctx.get(tables.at(peer, at), &gotten.region(at..at + 1))?,
                    _ => ctx.fetch_and_add(counters.at(peer, 0), 1, &olds.region(at..at + 1))?,
                }
            }
            let sync = ctx.sync(SyncMode::DEFAULT).window(&inbox.all());
            sync.window(&counter.all()).expose(&table.all()).await?;
            let puts = common::read(&ctx, &inbox).await?;
            let adds = common::read(&ctx, &counter).await?[0];
            Ok((puts, common::read(&ctx, &gotten).await?, adds))
        });
        for (rank, (puts, gotten, adds)) in (0u64..).zip(results.unwrap()) {
            let kind = |peer: u64, kind| (rank + peer) % 3 == kind;
            let peers = || 0..u64::from(ranks);
            let if_kind = |is, of: fn(u64) -> u64| -> Vec<u64> {
                peers().map(|peer| if kind(peer, is) { of(peer) } else { 0 }).collect()
            };
            assert_eq!(puts, if_kind(0, |peer| peer + 1));
            assert_eq!(gotten, if_kind(1, |peer| peer));
            assert_eq!(adds, peers().filter(|peer| kind(*peer, 2)).count() as u64);
        }
    }
}

#[test]
fn a_rank_that_fails_while_the_others_connect_fails_them() {
    for failing in 0..12 {
        let error = common::run(common::unwatched(6, 4), move |ctx| async move {
            let mine = common::array(&ctx, vec![1u32])?;
            let inbox = common::array(&ctx, vec![0; ctx.size() as usize])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank().0 == failing % 6 {
                return Err(Error::NoSuchRank { rank: Rank(77), ranks: failing });
            }
            for rank in 0..ctx.size() {
                ctx.put(&mine.all(), slot.at(rank, ctx.rank().0 as usize))?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        });
        common::says(&error.unwrap_err(), &["77"]);
    }
}

/// A deregistration waits for those who may use the memory, whose number grows meanwhile.
#[test]
fn slots_are_deregistered_while_pairs_connect() {
    for _ in 0..10 {
        let sums = common::run(common::unwatched(8, 4), |ctx| async move {
            let mine = common::array(&ctx, vec![1u32])?;
            let inbox = common::array(&ctx, vec![0; ctx.size() as usize])?;
            let slot = ctx.register_global(&inbox).await?;
            let other = common::array(&ctx, vec![0u32; 8])?;
            for rank in 0..ctx.size() {
                ctx.put(&mine.all(), slot.at(rank, ctx.rank().0 as usize))?;
                let unused = ctx.register_local(&other)?;
                ctx.deregister(unused)?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            Ok(common::read(&ctx, &inbox).await?.into_iter().sum::<u32>())
        });
        assert_eq!(sums.unwrap(), [8; 8]);
    }
}
