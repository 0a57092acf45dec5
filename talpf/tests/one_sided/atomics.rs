//! Atomics on remote numbers, from all ranks at once.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::common;
use talpf::{Config, Error, Rank, SyncMode};
use talpf_runtime::Array;

const ADDS: usize = 5;

#[test]
fn additions_of_all_ranks_and_rounds_add_up_and_see_distinct_values() {
    for (mode, workers) in
        [(SyncMode::DEFAULT, 2), (SyncMode::CACHED, 4), (SyncMode::CACHED.with_ack(), 1)]
    {
        let (ranks, rounds) = (4, 25);
        let check_conflicts = workers == 2;
        let config = Config { check_conflicts, ..common::config(ranks, workers) };
        let ends = common::run(config, move |ctx| async move {
            let counter = common::array(&ctx, vec![0u64; 2])?;
            let slot = ctx.register_global(&counter).await?;
            let olds = Array::new(ctx.group(), vec![0u64; ADDS], 1)?;
            ctx.register_local(&olds)?;
            let mut seen = Vec::new();
            for _ in 0..rounds {
                for add in 0..ADDS {
                    ctx.fetch_and_add(slot.at(Rank(0), 1), 3, &olds.tile(add))?;
                }
                let sync = ctx.sync(mode);
                match ctx.rank() {
                    Rank(0) => sync.window(&counter.all()).spawn()?,
                    _ => sync.spawn()?,
                };
                seen.extend(common::read(&ctx, &olds).await?);
            }
            ctx.group().wait().await?;
            Ok::<_, Error>((seen, common::read(&ctx, &counter).await?))
        });
        let ends = ends.unwrap();
        let all = 3 * (ranks as usize * rounds * ADDS) as u64;
        assert_eq!(ends[0].1, [0, all], "{mode}");
        let seen: BTreeSet<u64> = ends.iter().flat_map(|(seen, _)| seen.iter().copied()).collect();
        assert_eq!(seen, (0..all).step_by(3).collect(), "{mode}");
    }
}

#[test]
fn a_swap_happens_where_the_value_is_as_expected() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let cell = common::array(&ctx, vec![7u64])?;
        let slot = ctx.register_global(&cell).await?;
        let old = common::array(&ctx, vec![0u64])?;
        ctx.register_local(&old)?;
        let peer = Rank(1 - ctx.rank().0);
        let mut olds = Vec::new();
        for (compare, swap) in [(6, 1), (7, 2), (7, 3), (2, u64::MAX)] {
            ctx.compare_and_swap(slot.at(peer, 0), compare, swap, &old.all())?;
            ctx.sync(SyncMode::DEFAULT).window(&cell.all()).await?;
            olds.push((common::read(&ctx, &old).await?[0], common::read(&ctx, &cell).await?[0]));
        }
        Ok::<_, Error>(olds)
    });
    let expected = vec![(7, 7), (7, 2), (2, 2), (2, u64::MAX)];
    assert_eq!(ends.unwrap(), [expected.clone(), expected]);
}

/// Of all ranks exactly one wins, in every round.
#[test]
fn one_rank_wins_a_swap() {
    let rounds = 30;
    let ends = common::run(common::config(5, 4), move |ctx| async move {
        let cell = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&cell).await?;
        let old = common::array(&ctx, vec![0u64])?;
        ctx.register_local(&old)?;
        let mut won = 0;
        for round in 0..rounds {
            ctx.compare_and_swap(slot.at(Rank(2), 0), round, round + 1, &old.all())?;
            let sync = ctx.sync(SyncMode::DEFAULT);
            match ctx.rank() {
                Rank(2) => sync.window(&cell.all()).await?,
                _ => sync.await?,
            }
            won += u64::from(common::read(&ctx, &old).await?[0] == round);
        }
        Ok::<_, Error>(won)
    });
    assert_eq!(ends.unwrap().iter().sum::<u64>(), rounds);
}

#[test]
fn a_result_that_is_not_one_element_is_an_error() {
    for len in [0, 2] {
        let result = common::run(common::unwatched(1, 1), move |ctx| async move {
            let cell = common::array(&ctx, vec![0u64; 4])?;
            let slot = ctx.register_global(&cell).await?;
            ctx.fetch_and_add(slot.at(Rank(0), 0), 1, &cell.region(1..1 + len))?;
            ctx.sync(SyncMode::DEFAULT).await
        });
        let bound = if len == 0 { "at least" } else { "at most" };
        let expected =
            format!("number of elements of an atomic's result is {len}, expected {bound} 1");
        common::says(&result.unwrap_err(), &[&expected]);
    }
}

/// The peer has bytes where this rank has numbers: they may lie anywhere.
#[test]
fn a_number_that_is_not_aligned_at_its_owner_is_an_error_and_changes_nothing() {
    let result = common::run(common::unwatched(2, 2), |ctx| async move {
        let odd = ctx.rank() == Rank(1);
        let words = common::array(&ctx, vec![[0u8; 8]; 2])?;
        let numbers = common::array(&ctx, vec![0u64; 2])?;
        // A number of rank 0 beside arrays of bytes of rank 1, which need no alignment.
        if odd {
            ctx.register_global(&words).await?;
            return ctx.sync(SyncMode::DEFAULT).window(&words.all()).await;
        }
        let slot = ctx.register_global(&numbers).await?;
        let old = common::array(&ctx, vec![0u64])?;
        ctx.register_local(&old)?;
        ctx.fetch_and_add(slot.at(Rank(1), 0), 1, &old.all())?;
        ctx.sync(SyncMode::DEFAULT).await
    });
    // Either the allocator has aligned the bytes, or the device refuses.
    if let Err(error) = result {
        assert!(matches!(error, Error::WorkRequest { .. } | Error::PeerFailed { .. }), "{error}");
    }
}

/// In an open window of the same process the device has carried out what is posted.
#[test]
fn an_atomic_into_an_open_window_has_ended_at_its_first_poll() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let counter = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&counter).await?;
        let before = common::array(&ctx, vec![0u64])?;
        ctx.register_local(&before)?;
        let result = ctx.group().task("result").inout(&before.all()).run(|result| result)?;
        let (mut result, round) = (result.await?, ctx.round());
        let sync = ctx.sync(SyncMode::DEFAULT).window(&counter.all()).spawn()?;
        // The first addition also waits until the window is open.
        result = round.fetch_and_add(slot.at(0, 0), 1, result).await?;
        for adds in 1..10 {
            let mut operation = pin!(round.fetch_and_add(slot.at(0, 0), 1, result));
            let first = poll_fn(|cx| Poll::Ready(operation.as_mut().poll(cx))).await;
            let Poll::Ready(ended) = first else { panic!("addition {adds} would be suspended") };
            result = ended?;
            assert_eq!(result[0], adds);
        }
        drop((round, result));
        sync.await
    });
    ends.unwrap();
}
