//! Memory slots: sizes, limits, registration and its end.

use crate::common;
use talpf::{Config, Context, Error, Rank, SyncMode};

/// Returns the error of a run in which every rank runs `main`.
fn error_of<F>(config: Config, main: impl Fn(Context) -> F) -> Error
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    common::run(config, main).unwrap_err()
}

#[test]
fn ranks_register_different_sizes() {
    common::run(common::config(4, 2), |ctx| async move {
        let me = ctx.rank().0 as usize;
        let inbox = common::array(&ctx, vec![0u64; 10 * me])?;
        let slot = ctx.register_global(&inbox).await?;
        let one = common::array(&ctx, vec![1u64])?;
        // The last element of every rank that has one.
        for peer in 1..4u32 {
            if me == 0 {
                ctx.put(&one.all(), slot.at(Rank(peer), 10 * peer as usize - 1))?;
            }
        }
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        assert_eq!(common::read(&ctx, &inbox).await?.last(), (me > 0).then_some(&1));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn one_element_beyond_the_slot_of_the_target_is_an_error() {
    for (index, len) in [(10, 1), (9, 2), (0, 11), (11, 0), (usize::MAX, 1)] {
        let error = error_of(common::unwatched(2, 2), move |ctx| async move {
            // Rank 0 has more than rank 1: the target's size counts.
            let inbox =
                common::array(&ctx, vec![0u8; if ctx.rank() == Rank(0) { 20 } else { 10 }])?;
            let slot = ctx.register_global(&inbox).await?;
            let source = common::array(&ctx, vec![1u8; len])?;
            if ctx.rank() == Rank(0) {
                ctx.put(&source.all(), slot.at(Rank(1), index))?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        });
        let end = index.saturating_add(len);
        common::says(
            &error,
            &[&format!(
                "elements {index}..{end} of slot 0 at rank 1 do not exist: the slot has 10"
            )],
        );
    }
}

#[test]
fn a_rank_that_does_not_exist_is_an_error() {
    let error = error_of(common::unwatched(2, 2), |ctx| async move {
        assert!(matches!(ctx.peer(1), Ok(Rank(1))));
        let no = ctx.peer(2).unwrap_err();
        assert!(matches!(no, Error::NoSuchRank { rank: Rank(2), ranks: 2 }), "{no}");
        let inbox = common::array(&ctx, vec![0u8])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&inbox.all(), slot.at(Rank(2), 0))?;
        ctx.sync(SyncMode::DEFAULT).await
    });
    common::says(&error, &["rank 2 does not exist, there are 2 ranks"]);
}

#[test]
fn element_sizes_that_differ_name_the_rank() {
    let error = error_of(common::unwatched(3, 2), |ctx| async move {
        let reported = if ctx.rank() == Rank(2) {
            ctx.register_global(&common::array(&ctx, vec![0u32; 4])?).await.err()
        } else {
            ctx.register_global(&common::array(&ctx, vec![0u64; 4])?).await.err()
        };
        let other = if ctx.rank() == Rank(2) { Rank(0) } else { Rank(2) };
        match reported {
            Some(Error::SlotMismatch { slot: 0, rank, here, there }) => {
                assert_eq!((rank, here + there), (other, 12));
            }
            other => panic!("{other:?}"),
        }
        // It is no end: the next registration is right.
        let right = common::array(&ctx, vec![0u16; 4])?;
        let slot = ctx.register_global(&right).await?;
        ctx.put(&right.region(..1), slot.at(Rank(0), 1))?;
        let sync = ctx.sync(SyncMode::DEFAULT);
        sync.window(&right.region(1..)).await?;
        Err(reported.unwrap())
    });
    common::says(&error, &["slot 0: element size is"]);
}

#[test]
fn the_register_holds_as_many_slots_as_asked_for() {
    common::run(common::config(2, 2), |ctx| async move {
        let small = common::array(&ctx, vec![0u8])?;
        let mut slots = Vec::new();
        for _ in 0..64 {
            slots.push(ctx.register_local(&small)?);
        }
        let full = |error: Error, value, limit| {
            common::says(
                &error,
                &[&format!("number of memory slots is {value}, expected at most {limit}")],
            );
        };
        full(ctx.register_local(&small).unwrap_err(), 65, 64);
        full(ctx.register_global(&small).await.unwrap_err(), 65, 64);
        ctx.resize_memory_register(65)?;
        slots.push(ctx.register_global(&small).await?);
        full(ctx.register_local(&small).unwrap_err(), 66, 65);
        let below = ctx.resize_memory_register(64).unwrap_err();
        assert!(matches!(below, Error::Limit { value: 64, limit: 65, .. }), "{below}");
        ctx.resize_memory_register(65)?;
        ctx.deregister(slots.swap_remove(0))?;
        ctx.resize_memory_register(64)?;
        full(ctx.register_local(&small).unwrap_err(), 65, 64);
        for slot in slots {
            ctx.deregister(slot)?;
        }
        ctx.resize_memory_register(0)?;
        full(ctx.register_local(&small).unwrap_err(), 1, 0);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn the_message_queue_takes_as_many_operations_as_asked_for() {
    for puts in [3, 4] {
        let result = common::run(common::unwatched(1, 1), move |ctx| async move {
            for bad in [0, (1 << 31) + 1] {
                let error = ctx.resize_message_queue(bad).unwrap_err();
                assert!(matches!(error, Error::Limit { .. }), "{error}");
            }
            ctx.resize_message_queue(1 << 31)?;
            ctx.resize_message_queue(3)?;
            let inbox = common::array(&ctx, vec![0u8])?;
            let source = common::array(&ctx, vec![1u8])?;
            let slot = ctx.register_global(&inbox).await?;
            // It counts for every round anew.
            for _ in 0..2 {
                for _ in 0..puts {
                    ctx.put(&source.all(), slot.at(Rank(0), 0))?;
                }
                ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            }
            Ok(())
        });
        match result {
            Ok(_) => assert_eq!(puts, 3),
            Err(error) => {
                assert_eq!(puts, 4);
                common::says(&error, &["number of operations in a round is 4, expected at most 3"]);
            }
        }
    }
}

#[test]
fn the_message_queue_counts_operations_to_all_targets_together() {
    for to_oneself in [0, 1] {
        let result = common::run(common::unwatched(2, 1), move |ctx| async move {
            ctx.resize_message_queue(4)?;
            let inbox = common::array(&ctx, vec![0u8])?;
            let source = common::array(&ctx, vec![1u8])?;
            let slot = ctx.register_global(&inbox).await?;
            let me = ctx.rank();
            for target in [vec![Rank(1 - me.0); 4], vec![me; to_oneself]].concat() {
                ctx.put(&source.all(), slot.at(target, 0))?;
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        });
        match result {
            Ok(_) => assert_eq!(to_oneself, 0),
            Err(error) => {
                assert_eq!(to_oneself, 1);
                common::says(&error, &["number of operations in a round is 5, expected at most 4"]);
            }
        }
    }
}

#[test]
fn a_slot_that_was_deregistered_is_an_error() {
    let error = error_of(common::unwatched(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u8])?;
        let slot = ctx.register_global(&inbox).await?;
        let kept = slot.clone();
        ctx.deregister(slot)?;
        let again = ctx.deregister(kept.clone()).unwrap_err();
        assert!(matches!(again, Error::NoSuchSlot { slot: 0 }), "{again}");
        ctx.put(&inbox.all(), kept.at(Rank(0), 0))?;
        ctx.sync(SyncMode::DEFAULT).await
    });
    common::says(&error, &["slot 0 does not exist"]);
    let error = error_of(common::unwatched(1, 1), |ctx| async move {
        let slot = ctx.register_local(&common::array(&ctx, vec![0u8])?)?;
        ctx.deregister(slot.clone())?;
        ctx.deregister(slot)
    });
    common::says(&error, &["a local slot does not exist at this rank: it was deregistered"]);
}

#[test]
fn a_slot_that_the_target_has_deregistered_is_an_error() {
    let error = error_of(common::unwatched(2, 2), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u8])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(1) {
            ctx.deregister(slot)?;
            return ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await;
        }
        ctx.put(&inbox.all(), slot.at(Rank(1), 0))?;
        ctx.sync(SyncMode::msg(0)).await
    });
    assert!(!matches!(error, Error::Runtime(talpf_runtime::Error::Hang(_))), "{error}");
}

/// Program order: what was issued before a slot is deregistered is carried out.
#[test]
fn operations_under_way_keep_their_local_slot() {
    let gate = common::Gate::default();
    let ends = common::run(common::unwatched(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![0u64; 100])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                gate.passed().await;
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                return common::read(&ctx, &inbox).await;
            }
            let source = common::array(&ctx, vec![1u64; 100])?;
            let local = ctx.register_local(&source)?;
            ctx.put(&source.all(), slot.at(Rank(1), 0))?;
            ctx.deregister(local)?;
            gate.open();
            ctx.sync(SyncMode::msg(0)).await?;
            ctx.group().wait().await?;
            Ok(vec![])
        }
    });
    assert_eq!(ends.unwrap()[1], [1; 100]);
}

#[test]
fn a_local_slot_is_none_for_peers() {
    let error = error_of(common::unwatched(1, 1), |ctx| async move {
        let own = common::array(&ctx, vec![0u64; 3])?;
        let slot = ctx.register_local(&own)?;
        ctx.put(&own.all(), slot.at(Rank(0), 0))?;
        ctx.sync(SyncMode::DEFAULT).await
    });
    common::says(&error, &["is not registered: "]);
}

#[test]
fn numbers_of_ranks_out_of_range_are_errors() {
    for ranks in [0, 4097] {
        let error = error_of(common::unwatched(ranks, 1), |_| async { Ok(()) });
        assert!(matches!(error, Error::Limit { what: "number of ranks", .. }), "{error}");
    }
    let ends = common::run(common::config(1, 1), |ctx| async move { Ok::<_, Error>(ctx.size()) });
    assert_eq!(ends.unwrap(), [1]);
}
