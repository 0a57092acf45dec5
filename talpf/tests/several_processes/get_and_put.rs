//! Gets, puts and updates of one round, in every mode, with ranks that are ahead of each other.
#![allow(unsafe_code, reason = "calls `register_raw`")]

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};

#[test]
fn a_get_waits_until_the_owner_exposes() {
    for len in [1usize, 32, 100_000] {
        let gate = Gate::default();
        let ends = common::run(common::config(2, 2), |ctx| {
            let gate = gate.clone();
            async move {
                let values = common::array(&ctx, vec![1u64; len])?;
                let slot = ctx.register_global(&values).await?;
                if ctx.rank() == Rank(1) {
                    gate.passed().await;
                    let make = ctx.group().task("make").output(&values.all());
                    make.spawn(|mut values| values.fill(2))?;
                    ctx.sync(SyncMode::msg(1)).expose(&values.all()).await?;
                    let change = ctx.group().task("change").output(&values.all());
                    change.spawn(|mut values| values.fill(3))?;
                    return Ok(vec![]);
                }
                let copy = common::array(&ctx, vec![0u64; len])?;
                ctx.register_local(&copy)?;
                ctx.get(slot.at(Rank(1), 0), &copy.all())?;
                gate.open();
                ctx.sync(SyncMode::msg(0)).await?;
                common::read(&ctx, &copy).await
            }
        });
        assert_eq!(ends.unwrap()[0], vec![2; len]);
    }
}

#[test]
fn windows_and_exposed_regions_side_by_side() {
    for mode in common::modes(3) {
        common::run(common::config(2, 2), move |ctx| async move {
            let (me, peer) = (u64::from(ctx.rank().0), Rank(1 - ctx.rank().0));
            let values = talpf_runtime::Array::new(ctx.group(), vec![me; 8], 4)?;
            let slot = ctx.register_global(&values).await?;
            let copy = common::array(&ctx, vec![9u64; 4])?;
            let old = common::array(&ctx, vec![9u64; 1])?;
            ctx.register_local(&copy)?;
            ctx.register_local(&old)?;
            for round in 0..5 {
                ctx.get(slot.at(peer, 0), &copy.all())?;
                ctx.put(&values.region(..2), slot.at(peer, 5))?;
                ctx.fetch_and_add(slot.at(peer, 7), 10, &old.all())?;
                let sync = ctx.sync(mode).expose(&values.tile(0));
                sync.window(&values.tile(1)).await?;
                let other = u64::from(peer.0);
                assert_eq!(common::read(&ctx, &copy).await?, [other; 4]);
                assert_eq!(common::read(&ctx, &old).await?, [other + 10 * round]);
                let expected = [me, me, me, me, me, other, other, me + 10 * (round + 1)];
                assert_eq!(common::read(&ctx, &values).await?, expected);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn raw_slots_need_no_window() {
    let ends = common::run(common::config(3, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u32; 3])?;
        // SAFETY: every element is put once, by one rank, and read after the sync.
        let slot = unsafe { ctx.register_raw(&inbox) }.await?;
        let mine = common::array(&ctx, vec![ctx.rank().0 + 1])?;
        for peer in 0..3 {
            ctx.put(&mine.all(), slot.at(Rank(peer), ctx.rank().0 as usize))?;
        }
        ctx.sync(SyncMode::DEFAULT).await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap(), [[1, 2, 3]; 3]);
}

/// Values of a rank pass through all others and come back.
#[test]
fn a_value_travels_round_a_ring() {
    for ranks in [1, 2, 3, 8] {
        for mode in common::modes(1) {
            let ends = common::run(common::config(ranks, 1), move |ctx| async move {
                let mine = common::array(&ctx, vec![ctx.rank().0])?;
                let inbox = common::array(&ctx, vec![u32::MAX])?;
                let slot = ctx.register_global(&inbox).await?;
                let next = Rank((ctx.rank().0 + 1) % ctx.size());
                for _ in 0..2 * ctx.size() {
                    ctx.put(&mine.all(), slot.at(next, 0))?;
                    ctx.sync(mode).window(&inbox.all()).spawn()?;
                    let copy = ctx.group().task("copy").input(&inbox.all()).output(&mine.all());
                    copy.spawn(|inbox, mut mine| mine[0] = inbox[0])?;
                }
                Ok::<_, Error>(common::read(&ctx, &mine).await?[0])
            });
            assert!(ends.unwrap().into_iter().eq(0..ranks), "{ranks} ranks, {mode}");
        }
    }
}
