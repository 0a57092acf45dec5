//! Operations issued by the bodies of tasks.

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};
use talpf_runtime::Array;

/// Short and long: copied at once, and held.
const LENGTHS: [usize; 2] = [4, HELD];
const HELD: usize = common::COPIED + 1;

#[test]
fn an_awaited_put_returns_its_guard() {
    for len in LENGTHS {
        let ends = common::run(common::config(2, 2), move |ctx| async move {
            let values = common::array(&ctx, vec![1u64; len])?;
            ctx.register_local(&values)?;
            let inbox = common::array(&ctx, vec![0u64; 2 * len])?;
            let slot = ctx.register_global(&inbox).await?;
            let (peer, round) = (Rank(1 - ctx.rank().0), ctx.round());
            let task = ctx.group().task("put twice").inout(&values.all());
            let put = task.run_async(move |values| async move {
                let mut values = round.put(values, slot.at(peer, 0)).await?;
                values.fill(2);
                let values = round.put(values, slot.at(peer, len)).await?;
                assert_eq!(values[..], vec![2; len]);
                Ok::<_, Error>(())
            })?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            put.await??;
            common::read(&ctx, &inbox).await
        });
        let expected = [vec![1; len], vec![2; len]].concat();
        assert_eq!(ends.unwrap(), [expected.clone(), expected]);
    }
}

#[test]
fn an_awaited_get_returns_what_it_got() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let (me, peer) = (u64::from(ctx.rank().0), Rank(1 - ctx.rank().0));
        let values = common::array(&ctx, vec![me; 100])?;
        let slot = ctx.register_global(&values).await?;
        let copy = common::array(&ctx, vec![9u64; 101])?;
        ctx.register_local(&copy)?;
        let counter = common::array(&ctx, vec![5 * me])?;
        let counters = ctx.register_global(&counter).await?;
        let round = ctx.round();
        let task = ctx.group().task("get").output(&copy.region(..100));
        let got = task.output(&copy.region(100..)).run_async(move |copy, old| async move {
            let copy = round.get(slot.at(peer, 0), copy).await?;
            let old = round.fetch_and_add(counters.at(peer, 0), 1, old).await?;
            let old = round.compare_and_swap(counters.at(peer, 0), old[0] + 1, 77, old).await?;
            Ok::<_, Error>(copy.iter().sum::<u64>() + old[0])
        })?;
        let sync = ctx.sync(SyncMode::DEFAULT).expose(&values.all());
        sync.window(&counter.all()).await?;
        assert_eq!(common::read(&ctx, &counter).await?, [77]);
        got.await?
    });
    assert_eq!(ends.unwrap(), [106, 1]);
}

/// The task is complete, and its region free, when the operation is; not when the body has ended.
#[test]
fn an_operation_that_is_let_go_holds_its_task() {
    let gate = Gate::default();
    let ends = common::run(common::unwatched(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let values = common::array(&ctx, vec![1u64; HELD])?;
            ctx.register_local(&values)?;
            let inbox = common::array(&ctx, vec![0u64; HELD])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                gate.passed().await;
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                return common::read(&ctx, &inbox).await;
            }
            let (ended, round) = (Gate::default(), ctx.round());
            let says = ended.clone();
            let task = ctx.group().task("let go").inout(&values.all());
            task.spawn(move |values| {
                drop(round.put(values, slot.at(Rank(1), 0)));
                says.open();
            })?;
            let opened = gate.clone();
            let next = ctx.group().task("next").inout(&values.all());
            let after = next.run(move |mut values| {
                values.fill(2);
                opened.is_open()
            })?;
            ended.passed().await;
            assert_eq!(ctx.group().outstanding(), 2);
            gate.open();
            assert!(after.await?, "before the put had landed");
            ctx.sync(SyncMode::msg(0)).await?;
            Ok::<_, Error>(vec![])
        }
    });
    assert_eq!(ends.unwrap()[1], [1; HELD]);
}

/// A round waits for all clones of its handle, whatever tasks they are in.
#[test]
fn handles_that_are_cloned_into_tasks_keep_the_round_open() {
    for mode in common::modes(20) {
        let ends = common::run(common::config(2, 2), move |ctx| async move {
            let values = Array::new(ctx.group(), (0..20u64).collect(), 1)?;
            let inbox = common::array(&ctx, vec![0u64; 20])?;
            let slot = ctx.register_global(&inbox).await?;
            let peer = Rank(1 - ctx.rank().0);
            for lap in 1..=5 {
                let round = ctx.round();
                assert_eq!((round.number().0, round.lane().0), (lap - 1, 0));
                for index in 0..20 {
                    let (round, slot) = (round.clone(), slot.clone());
                    let task = ctx.group().task("put").inout(&values.tile(index));
                    task.spawn(move |mut value| {
                        common::spin(std::time::Duration::from_micros(20));
                        value[0] += 100;
                        drop(round.put(value, slot.at(peer, index)));
                    })?;
                }
                drop(round);
                ctx.sync(mode).window(&inbox.all()).await?;
                let expected: Vec<u64> = (0..20).map(|index| index + 100 * lap).collect();
                assert_eq!(common::read(&ctx, &inbox).await?, expected, "{mode}");
            }
            Ok::<_, Error>(())
        });
        ends.unwrap();
    }
}

/// Bodies spawn tasks that put, and those spawn tasks that put.
#[test]
fn bodies_within_bodies() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let values = Array::new(ctx.group(), (1..=3u64).collect(), 1)?;
        let inbox = common::array(&ctx, vec![0u64; 3])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let (outer, array, group) = (ctx.round(), values.clone(), ctx.group().clone());
        let task = ctx.group().task("outer").input(&values.tile(0));
        task.spawn(move |value| {
            let (inner, slots) = (outer.clone(), slot.clone());
            let task = group.task("inner").input(&array.tile(1));
            let (next, place) = (group.clone(), array.clone());
            let spawned = task.spawn(move |value| {
                let (innermost, slot) = (inner.clone(), slots.clone());
                let task = next.task("innermost").input(&place.tile(2));
                let put = task.spawn(move |value| drop(innermost.put(value, slot.at(peer, 2))));
                put.unwrap();
                drop(inner.put(value, slots.at(peer, 1)));
            });
            spawned.unwrap();
            drop(outer.put(value, slot.at(peer, 0)));
        })?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap(), [[1, 2, 3], [1, 2, 3]]);
}
