//! A rank is a peer of its own; and operations without a single byte count like others.

use crate::common;
use talpf::{Error, Rank, SyncMode};

#[test]
fn a_rank_puts_gets_and_adds_to_itself() {
    for mode in common::modes(4) {
        for ranks in [1, 2] {
            let ends = common::run(common::config(ranks, 2), move |ctx| async move {
                let me = ctx.rank();
                let inbox = common::array(&ctx, vec![0u64; 100])?;
                let shown = common::array(&ctx, (0..50u64).collect())?;
                let (to, from) =
                    (ctx.register_global(&inbox).await?, ctx.register_global(&shown).await?);
                let copy = common::array(&ctx, vec![0u64; 51])?;
                ctx.register_local(&copy)?;
                for _ in 0..10 {
                    ctx.put(&shown.region(..2), to.at(me, 0))?;
                    ctx.put(&shown.region(..40), to.at(me, 50))?;
                    ctx.get(from.at(me, 0), &copy.region(..50))?;
                    ctx.fetch_and_add(to.at(me, 99), 1, &copy.region(50..))?;
                    let sync = ctx.sync(mode).window(&inbox.all());
                    sync.expose(&shown.all()).await?;
                }
                let mut all = common::read(&ctx, &inbox).await?;
                all.extend(common::read(&ctx, &copy).await?);
                Ok::<_, Error>(all)
            });
            let mut expected = vec![0u64; 100];
            expected[..2].copy_from_slice(&[0, 1]);
            expected[50..90].copy_from_slice(&(0..40).collect::<Vec<_>>());
            expected[99] = 10;
            expected.extend(0..50);
            expected.push(9);
            for end in ends.unwrap() {
                assert_eq!(end, expected, "{mode}");
            }
        }
    }
}

#[test]
fn operations_of_no_bytes_are_counted() {
    for mode in common::modes(2) {
        common::run(common::config(2, 2), move |ctx| async move {
            let inbox = common::array(&ctx, vec![3u32; 4])?;
            let slot = ctx.register_global(&inbox).await?;
            let peer = Rank(1 - ctx.rank().0);
            for _ in 0..4 {
                ctx.put(&inbox.region(0..0), slot.at(peer, 4))?;
                ctx.get(slot.at(peer, 2), &inbox.region(1..1))?;
                let sync = ctx.sync(mode).window(&inbox.region(..2));
                sync.expose(&inbox.region(2..)).await?;
            }
            assert_eq!(common::read(&ctx, &inbox).await?, [3; 4]);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_slot_without_an_element() {
    common::run(common::config(2, 1), |ctx| async move {
        let nothing = common::array(&ctx, Vec::<u64>::new())?;
        let slot = ctx.register_global(&nothing).await?;
        ctx.put(&nothing.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&nothing.all()).await
    })
    .unwrap();
}

/// Rounds in which nothing is issued, with and without windows.
#[test]
fn empty_rounds() {
    for mode in common::modes(0) {
        common::run(common::config(3, 2), move |ctx| async move {
            let inbox = common::array(&ctx, vec![0u8; 4])?;
            ctx.register_global(&inbox).await?;
            for _ in 0..20 {
                ctx.sync(mode).await?;
                ctx.sync(mode).window(&inbox.all()).await?;
                ctx.sync(mode).spawn()?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
