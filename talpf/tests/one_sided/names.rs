//! Names of slots: each rank publishes some, and others wait for them.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::poll_immediate;
use proptest::prelude::*;
use talpf::{Context, Error, NameError, Rank};

use crate::common::{self, says};

async fn pause(ctx: &Context) {
    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
}

/// Each rank takes in numbers in one of two arrays, under the same name.
#[test]
fn a_lookup_finds_the_array_that_its_owner_has_published() {
    for (ranks, workers) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        let ends = common::run(common::config(ranks, workers), |ctx| async move {
            let own = ctx.rank().0;
            let arrays = [common::array(&ctx, vec![0u64])?, common::array(&ctx, vec![0u64])?];
            let slots =
                [ctx.register_global(&arrays[0]).await?, ctx.register_global(&arrays[1]).await?];
            let which = own as usize % 2;
            ctx.publish("in", &slots[which])?;
            let next = (own + 1) % ctx.size();
            let there = ctx.lookup::<u64>(next, "in").await?;
            assert_eq!(there.owner(), Rank(next));
            let inbox = ctx.group().task("inbox").inout(&arrays[which].all());
            let inbox = inbox.run(|inbox| inbox)?.await?;
            let receive = ctx.notifications().receive(inbox, 0);
            ctx.notifications().put_copy(&[10 + u64::from(own)], there.at(0), 0, 0).await?;
            let (inbox, _) = receive.await?;
            Ok(inbox[0])
        });
        let before = |rank: u32| 10 + u64::from((rank + ranks - 1) % ranks);
        assert_eq!(ends.unwrap(), (0..ranks).map(before).collect::<Vec<_>>());
    }
}

#[test]
fn a_lookup_waits_until_the_name_is_published() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let array = common::array(&ctx, vec![0u8; 3])?;
        let slot = ctx.register_global(&array).await?;
        if ctx.rank() == Rank(0) {
            let mut lookup = pin!(ctx.lookup::<u8>(1, "late"));
            assert!(poll_immediate(lookup.as_mut()).await.is_none());
            // One that is dropped holds up nobody.
            let dropped = poll_immediate(ctx.lookup::<u8>(1, "never")).await;
            assert!(dropped.is_none());
            // Another name does not end the wait, nor does that of another rank.
            ctx.publish("late", &slot)?;
            ctx.notifications().notify(1, 0, 0).await?;
            ctx.lookup::<u8>(1, "other").await?;
            assert!(poll_immediate(lookup.as_mut()).await.is_none());
            ctx.notifications().notify(1, 1, 0).await?;
            assert_eq!(lookup.await?.owner(), Rank(1));
            return Ok(());
        }
        ctx.notifications().wait(0).await?;
        ctx.publish("other", &slot)?;
        ctx.notifications().wait(1).await?;
        ctx.publish("late", &slot)
    });
    ends.unwrap();
}

#[test]
fn both_sides_of_each_limit() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let array = common::array(&ctx, vec![0u8])?;
        let slot = ctx.register_global(&array).await?;
        let longest = "ä".repeat(127) + "b";
        ctx.publish(&longest, &slot)?;
        ctx.lookup::<u8>(0, &longest).await?;
        ctx.publish("", &slot)?;
        let long = longest + "c";
        let error = ctx.publish(&long, &slot).unwrap_err();
        says(&error, &[&long, "256 bytes", "at most 255"]);
        says(&ctx.lookup::<u8>(0, &long).await.unwrap_err(), &[&long, "256 bytes"]);
        for number in 2..4096 {
            ctx.publish(&number.to_string(), &slot)?;
        }
        let error = ctx.publish("one more", &slot).unwrap_err();
        says(&error, &["number of names of a rank", "4097", "at most 4096"]);
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn mistakes_are_errors_that_name_rank_and_name() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let array = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&array).await?;
        let (own, other) = (ctx.rank().to_string(), Rank(1 - ctx.rank().0));
        ctx.publish("in", &slot)?;
        says(&ctx.publish("in", &slot).unwrap_err(), &[&own, "`in`", "before"]);
        says(&ctx.lookup::<u64>(2, "in").await.unwrap_err(), &["rank 2", "2 ranks"]);
        let error = ctx.lookup::<f64>(other, "in").await.unwrap_err();
        assert!(matches!(error, Error::Name(NameError::OtherElements { .. })), "{error:?}");
        says(&error, &["`in`", &other.to_string(), "`u64`", "`f64`", &own]);
        let local = ctx.register_local(&common::array(&ctx, vec![0u64])?)?;
        says(&ctx.publish("local", &local).unwrap_err(), &["register_global"]);
        let error = ctx.lookup::<u64>(other, "in").await.map(drop);
        error?;
        ctx.sync(talpf::SyncMode::DEFAULT).await?;
        ctx.deregister(slot.clone())?;
        assert!(matches!(ctx.publish("gone", &slot), Err(Error::NoSuchSlot { .. })));
        assert!(matches!(ctx.lookup::<u64>(other, "in").await, Err(Error::NoSuchSlot { .. })));
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn a_rank_that_has_ended_publishes_nothing() {
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let array = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&array).await?;
            if ctx.rank() == Rank(1) {
                return ctx.publish("in", &slot);
            }
            let error = ctx.lookup::<u64>(1, "out").await.unwrap_err();
            assert!(matches!(error, Error::Name(NameError::NotPublished { .. })), "{error:?}");
            says(&error, &["rank 0", "rank 1", "`out`", "ended"]);
            // A name that was published stays.
            ctx.lookup::<u64>(1, "in").await.map(drop)
        });
        ends.unwrap();
    }
}

#[test]
fn a_lookup_fails_with_the_rank_that_failed() {
    let failures = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&failures);
    let ended = common::run(common::unwatched(3, 2), move |ctx| {
        let seen = Arc::clone(&seen);
        async move {
            if ctx.rank() == Rank(2) {
                ctx.notifications().wait(0).await?;
                return Err::<(), _>(Error::NoSuchSlot { slot: 99 });
            }
            ctx.notifications().notify(2, 0, 0).await?;
            let other = 1 - ctx.rank().0;
            let error = ctx.lookup::<u64>(other, "in").await.unwrap_err();
            seen.lock().unwrap().push(error.clone());
            Err(error)
        }
    });
    assert!(ended.is_err());
    for error in failures.lock().unwrap().iter() {
        assert!(matches!(error, Error::Name(NameError::Failed { .. })), "{error:?}");
        says(error, &["`in`", "rank 2", "slot 99"]);
    }
}

#[test]
fn the_report_of_a_hang_says_who_waits_for_which_name_of_whom() {
    let ended = common::run(common::watched(2, 1), |ctx| async move {
        let other = 1 - ctx.rank().0;
        ctx.lookup::<u64>(other, "in").await.map(drop)
    });
    let text = ended.unwrap_err().to_string();
    let is_here = |rank: &u32| text.contains(&format!("`main` of rank {rank} is suspended"));
    let here: Vec<_> = (0..2).filter(is_here).collect();
    assert!(!here.is_empty(), "{text}");
    for rank in here {
        let line = format!("rank {rank}: waits for rank {} to publish `in`", 1 - rank);
        assert!(text.contains(&line), "`{line}` is missing in: {text}");
    }
}

/// A context that a program keeps.
#[test]
fn names_of_a_run_that_has_ended_are_of_no_more_use() {
    let kept = Arc::new(Mutex::new(None));
    let ends = common::run(common::config(1, 1), |ctx| {
        let kept = Arc::clone(&kept);
        async move {
            let array = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&array).await?;
            ctx.publish("in", &slot)?;
            *kept.lock().unwrap() = Some((ctx, slot));
            Ok(())
        }
    });
    ends.unwrap();
    let (ctx, slot) = kept.lock().unwrap().take().unwrap();
    let refused = |ended: Result<(), Error>| assert!(matches!(ended, Err(Error::RunEnded)));
    refused(ctx.publish("out", &slot));
    let lookup = |name| futures::executor::block_on(ctx.lookup::<u64>(0, name)).map(drop);
    refused(lookup("in"));
    refused(lookup("out"));
}

/// Publishes and lookups of all ranks in any order: every lookup ends.
async fn run(ctx: Context, order: Vec<(bool, u32, u8)>) -> Result<(), Error> {
    let array = common::array(&ctx, vec![0u16])?;
    let slot = ctx.register_global(&array).await?;
    let publish = async {
        for name in 0..6u8 {
            ctx.publish(&name.to_string(), &slot)?;
            if name % 2 == 0 {
                pause(&ctx).await;
            }
        }
        Ok::<_, Error>(())
    };
    let lookups = order.into_iter().map(|(pauses, rank, name)| {
        let ctx = ctx.clone();
        async move {
            if pauses {
                pause(&ctx).await;
            }
            let found = ctx.lookup::<u16>(rank % ctx.size(), &name.to_string()).await?;
            assert_eq!(found.owner().0, rank % ctx.size());
            Ok::<_, Error>(())
        }
    });
    let (published, found) = futures::join!(publish, futures::future::join_all(lookups));
    published?;
    found.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn every_lookup_of_a_name_that_is_published_ends(
        ranks in 1..4u32,
        workers in 1..3usize,
        order in prop::collection::vec((any::<bool>(), 0..4u32, 0..6u8), 0..20),
    ) {
        let ends = common::run(common::config(ranks, workers), |ctx| run(ctx, order.clone()));
        ends.unwrap();
    }
}
