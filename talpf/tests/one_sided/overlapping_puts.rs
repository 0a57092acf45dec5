//! Overlapping puts of one round give the result of some order of them.

use crate::common;
use talpf::{Error, Rank, SyncMode};

/// Puts `len` words of every rank to the same elements at rank 0, `puts` times a round.
fn overlap(ranks: u32, workers: usize, len: usize, puts: usize, rounds: u64) {
    common::run(common::config(ranks, workers), move |ctx| async move {
        let me = u64::from(ctx.rank().0);
        let inbox = common::array(&ctx, vec![0u64; len])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.resize_memory_register(1 + puts * rounds as usize)?;
        for round in 0..rounds {
            for put in 0..puts {
                let value = me << 32 | (put as u64) << 16 | round;
                let values = common::array(&ctx, vec![value; len])?;
                ctx.register_local(&values)?;
                ctx.put(&values.all(), slot.at(Rank(0), 0))?;
            }
            let sync = ctx.sync(SyncMode::DEFAULT);
            if me == 0 {
                sync.window(&inbox.all()).await?;
                let seen = common::read(&ctx, &inbox).await?;
                assert_eq!(seen, vec![seen[0]; len], "a mixture");
                assert_eq!(seen[0] & 0xffff, round);
            } else {
                sync.await?;
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn long_ones() {
    overlap(4, 2, 200_000, 2, 4);
    overlap(3, 4, 50_000, 5, 10);
}

#[test]
fn short_ones() {
    overlap(4, 4, 32, 20, 20);
}

/// The pieces lie over each other like tiles of a roof; each element is from a put that covers it.
#[test]
fn partly_overlapping_ones() {
    const LEN: usize = 30_000;
    const STEP: usize = 10_000;
    common::run(common::config(4, 4), |ctx| async move {
        let me = ctx.rank().0 as usize;
        let inbox = common::array(&ctx, vec![u64::MAX; LEN + 3 * STEP])?;
        let slot = ctx.register_global(&inbox).await?;
        let values = common::array(&ctx, vec![me as u64; LEN])?;
        ctx.register_local(&values)?;
        for _ in 0..10 {
            ctx.put(&values.all(), slot.at(Rank(0), me * STEP))?;
            let sync = ctx.sync(SyncMode::DEFAULT);
            if me > 0 {
                sync.await?;
                continue;
            }
            sync.window(&inbox.all()).await?;
            let seen = common::read(&ctx, &inbox).await?;
            // Between two places where a put begins or ends there is no mixture.
            for (place, piece) in seen.chunks(STEP).enumerate() {
                assert_eq!(piece, vec![piece[0]; STEP], "piece {place} is a mixture");
                let writer = piece[0] as usize;
                assert!((writer..writer + 3).contains(&place), "piece {place} is from {writer}");
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
