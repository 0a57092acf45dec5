//! Notifications to ranks of other processes that cannot come, or whose ranks have ended.

use std::time::Duration;

use talpf::{Context, Error, NotifiedTask, Rank};

use crate::common::{self, says};

/// Time in which the program of rank 1 ends.
const LONG: Duration = Duration::from_millis(300);
/// Numbers of elements of a put that travels with its claim, and of one that does not.
const SIZES: [usize; 2] = [1, 3000];

/// Asserts that every rank has an error with these parts, unless it is the failure of a peer, and
/// that rank `first` has.
fn all_say(ends: Vec<Result<(), Error>>, parts: &[&str]) {
    let own = |end: &Result<(), Error>| {
        let error = end.as_ref().unwrap_err();
        says(error, parts);
        !matches!(error, Error::PeerFailed { .. })
    };
    assert!(ends.iter().filter(|end| own(end)).count() > 0, "{ends:?}");
}

#[test]
fn an_id_beyond_those_of_the_target_is_an_error() {
    for len in SIZES {
        let ends = common::run_all(common::unwatched(2, 1), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                ctx.put_notify(&inbox.all(), slot.at(1, 0), 65_536, 0)?;
            }
            ctx.notifications().wait(0).await.map(drop)
        });
        all_say(ends, &["rank 1", "notification"]);
    }
}

#[test]
fn a_put_outside_the_inbox_of_its_wait_is_an_error() {
    for len in SIZES {
        let ends = common::run_all(common::unwatched(2, 2), |ctx| async move {
            let inbox = talpf_runtime::Array::new(ctx.group(), vec![0u64; len + 1], len)?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                ctx.put_notify(&inbox.region(..len), slot.at(1, 1), 8, 0)?;
            } else {
                let received = ctx.notifications().inbox(&inbox.region(..len), 8)?;
                ctx.group().task("receive").inbox(&received).spawn(drop)?;
            }
            ctx.notifications().wait(0).await.map(drop)
        });
        all_say(ends, &["rank 1", "notification"]);
    }
}

/// Puts to rank 0, which waits when the program of rank 1 has ended.
#[test]
fn a_put_of_a_rank_that_has_ended_is_received() {
    for len in SIZES {
        let ends = common::run_all(common::config(2, 1), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                let fill = ctx.group().task("fill").output(&inbox.all());
                fill.spawn(|mut inbox| inbox.fill(7))?;
                ctx.put_notify(&inbox.all(), slot.at(0, 0), 3, 30)?;
                ctx.notifications().notify(0, 4, 40).await?;
                return Ok(());
            }
            ctx.group().wait_for(LONG).await;
            let received = ctx.notifications().inbox(&inbox.all(), 3)?;
            let sum = ctx.group().task("sum").inbox(&received);
            let sum = sum.run(|inbox| inbox.iter().sum::<u64>())?.await?;
            assert_eq!(sum, 7 * len as u64);
            assert_eq!(ctx.notifications().wait(4).await?.value, 40);
            Ok(())
        });
        ends.into_iter().for_each(Result::unwrap);
    }
}

#[test]
fn waits_end_with_an_error_when_another_process_fails() {
    let ends = common::run_all(common::unwatched(3, 1), |ctx: Context| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let _slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            ctx.notifications().wait(0).await?;
            return Err(Error::NoSuchSlot { slot: 99 });
        }
        let received = ctx.notifications().inbox(&inbox.all(), 4)?;
        let task = ctx.group().task("receive").inbox(&received).run(|_| panic!("has run"))?;
        ctx.notifications().notify(0, 0, 0).await?;
        match ctx.rank() {
            Rank(1) => ctx.notifications().wait(5).await.map(drop),
            _ => Ok(task.await?),
        }
    });
    assert!(matches!(ends[0], Err(Error::NoSuchSlot { slot: 99 })), "{ends:?}");
    for (rank, end) in ends.iter().enumerate().skip(1) {
        says(end.as_ref().unwrap_err(), &[&format!("rank {rank}"), "notification", "slot 99"]);
    }
}

#[test]
fn the_report_of_a_hang_says_who_waits_for_which_id() {
    let ends = common::run_all(common::watched(2, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 3000])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            ctx.put_notify(&inbox.all(), slot.at(1, 0), 6, 0)?;
            let write = ctx.group().task("write").inout(&inbox.all());
            return Ok(write.run(drop)?.await?);
        }
        let received = ctx.notifications().inbox(&inbox.all(), 5)?;
        Ok(ctx.group().task("receive").inbox(&received).run(drop)?.await?)
    });
    let hangs = |end: &Result<(), Error>| match end {
        Err(Error::Runtime(talpf_runtime::Error::Hang(text))) => Some(text.to_string()),
        _ => None,
    };
    let texts: Vec<String> = ends.iter().filter_map(hangs).collect();
    let own = [
        "rank 0: waits for rank 1 to receive notification 6 (1 operation)",
        "rank 1: waits for a put with notification 5",
    ];
    let says = |text: &String| own.iter().any(|line| text.contains(line));
    assert!(!texts.is_empty() && texts.iter().all(says), "{ends:?}");
}
