//! A get reads once the owner exposes the region in the same round.

use crate::common::{self, Gate};
use talpf::{Config, Error, Rank, SyncMode};

#[test]
fn a_get_waits_until_the_owner_exposes() {
    let lens = [1usize, 32, 1_000].into_iter();
    for (len, check_conflicts) in lens.flat_map(|len| [(len, false), (len, true)]) {
        let gate = Gate::default();
        let config = Config { check_conflicts, ..common::unwatched(2, 2) };
        let ends = common::run(config, |ctx| {
            let gate = gate.clone();
            async move {
                let values = common::array(&ctx, vec![1u64; len])?;
                let slot = ctx.register_global(&values).await?;
                if ctx.rank() == Rank(1) {
                    // The get is on its way; what it reads is not made yet.
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

/// Readers of the owner run beside a get; writers wait for the end of the round.
#[test]
fn the_owner_may_read_what_it_exposes() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let mut sum = 0;
        let values = common::array(&ctx, vec![0u64; 500])?;
        let slot = ctx.register_global(&values).await?;
        let copy = common::array(&ctx, vec![0u64; 500])?;
        ctx.register_local(&copy)?;
        let next = Rank((ctx.rank().0 + 1) % 3);
        for round in 1..=20 {
            let make = ctx.group().task("make").inout(&values.all());
            make.spawn(|mut values| values.iter_mut().for_each(|value| *value += 1))?;
            ctx.get(slot.at(next, 0), &copy.all())?;
            let sync = ctx.sync(SyncMode::CACHED).expose(&values.all()).spawn()?;
            let own = common::read(&ctx, &values).await?;
            sync.await?;
            let other = common::read(&ctx, &copy).await?;
            assert_eq!((own, other), (vec![round; 500], vec![round; 500]));
            sum += round;
        }
        Ok::<_, Error>(sum)
    });
    assert_eq!(ends.unwrap(), [210; 3]);
}

/// Every element is a get of its own, some before the region is exposed and some after.
#[test]
fn short_gets_read_what_is_exposed_whenever_they_come() {
    let config = Config { check_conflicts: false, ..common::unwatched(2, 4) };
    let ends = common::run(config, |ctx| async move {
        let values = common::array(&ctx, vec![0u64; 600])?;
        let slot = ctx.register_global(&values).await?;
        let copy = common::array(&ctx, vec![0u64; 600])?;
        ctx.register_local(&copy)?;
        let other = Rank(1 - ctx.rank().0);
        for round in 1..=20u64 {
            let make = ctx.group().task("make").inout(&values.all());
            make.spawn(move |mut values| values.fill(round))?;
            for at in 0..600 {
                ctx.get(slot.at(other, at), &copy.region(at..at + 1))?;
            }
            ctx.sync(SyncMode::DEFAULT).expose(&values.all()).await?;
            assert_eq!(common::read(&ctx, &copy).await?, [round; 600]);
        }
        Ok::<_, Error>(())
    });
    ends.unwrap();
}

#[test]
fn a_get_without_an_exposed_region_is_an_error_at_both_ranks() {
    for check_conflicts in [false, true] {
        without_an_exposed_region(check_conflicts);
    }
}

fn without_an_exposed_region(check_conflicts: bool) {
    let config = Config { check_conflicts, ..common::unwatched(2, 2) };
    let result = common::run(config, |ctx| async move {
        let values = common::array(&ctx, vec![1u64; 8])?;
        let slot = ctx.register_global(&values).await?;
        let copy = common::array(&ctx, vec![0u64; 8])?;
        ctx.register_local(&copy)?;
        if ctx.rank() == Rank(0) {
            ctx.get(slot.at(Rank(1), 0), &copy.all())?;
            return ctx.sync(SyncMode::msg(0)).await;
        }
        ctx.sync(SyncMode::msg(1)).expose(&values.region(..7)).await
    });
    common::says(&result.unwrap_err(), &["rank 0 reaches elements 0..8 of slot 0 at rank 1"]);
}

#[test]
fn a_put_into_an_exposed_region_is_an_error() {
    let result = common::run(common::unwatched(2, 2), |ctx| async move {
        let values = common::array(&ctx, vec![1u64; 8])?;
        let slot = ctx.register_global(&values).await?;
        let one = common::array(&ctx, vec![0u64; 1])?;
        ctx.put(&one.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::msg(1)).expose(&values.all()).await
    });
    common::says(&result.unwrap_err(), &["outside every window"]);
}

/// Gets and puts of one round, of different parts of one array.
#[test]
fn windows_and_exposed_regions_side_by_side() {
    for mode in common::modes(2) {
        common::run(common::config(2, 2), move |ctx| async move {
            let (me, peer) = (ctx.rank().0, Rank(1 - ctx.rank().0));
            let values = talpf_runtime::Array::new(ctx.group(), vec![me; 8], 4)?;
            let slot = ctx.register_global(&values).await?;
            let copy = common::array(&ctx, vec![9u32; 4])?;
            ctx.register_local(&copy)?;
            for _ in 0..5 {
                ctx.get(slot.at(peer, 0), &copy.all())?;
                ctx.put(&values.region(..2), slot.at(peer, 5))?;
                let sync = ctx.sync(mode).expose(&values.tile(0));
                sync.window(&values.tile(1)).await?;
                assert_eq!(common::read(&ctx, &copy).await?, [peer.0; 4]);
                assert_eq!(
                    common::read(&ctx, &values).await?,
                    [me, me, me, me, me, peer.0, peer.0, me]
                );
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
