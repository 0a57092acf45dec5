//! An operation outside every window of its round is an error at both ranks, and changes nothing.
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges, sometimes of one")]

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::common;
use talpf::{Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::Array;

/// The errors of the syncs of ranks 0 to 2.
type Errors = [Option<Error>; 3];
type Issue = fn(&Context, &Array<u32>, &MemorySlot<u32>) -> Result<(), Error>;

/// Returns the errors of ranks of which rank 0 issues operations on the array of rank 1, which has
/// the windows given, and rank 2 only syncs. No rank may see a change, whatever the order.
fn errors_of(windows: &'static [Range<usize>], early: bool, issue: Issue) -> Errors {
    let errors = Arc::new(Mutex::new(Errors::default()));
    let changed = Arc::new(Mutex::new(false));
    let gate = common::Gate::default();
    let result = common::run(common::unwatched(3, 2), |ctx| {
        let (errors, changed) = (Arc::clone(&errors), Arc::clone(&changed));
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![5u32; 100])?;
            let slot = ctx.register_global(&inbox).await?;
            let me = ctx.rank();
            let values = common::array(&ctx, vec![9u32; 100])?;
            ctx.register_local(&values)?;
            if me == Rank(u32::from(early)) {
                gate.passed().await;
            }
            if me == Rank(0) {
                issue(&ctx, &values, &slot)?;
            }
            let mut sync = ctx.sync(SyncMode::msg(u32::from(me != Rank(0))));
            for window in windows.iter().filter(|_| me == Rank(1)) {
                sync = sync.window(&inbox.region(window.clone()));
            }
            let handle = sync.spawn()?;
            if me.0 < 2 {
                gate.open();
            }
            let ended = handle.await;
            errors.lock().unwrap()[me.0 as usize] = ended.clone().err();
            let seen = common::read(&ctx, &inbox).await;
            *changed.lock().unwrap() |= seen.is_ok_and(|seen| seen != [5; 100]);
            ended
        }
    });
    assert!(!*changed.lock().unwrap());
    common::says(&result.unwrap_err(), &["outside every window"]);
    std::mem::take(&mut *errors.lock().unwrap())
}

/// Checks that both ranks have the full error, and the third the failed rank.
fn check(errors: &Errors, range: &str) {
    for error in errors[..2].iter().flatten() {
        assert!(matches!(error, Error::OutsideWindow { .. }), "{error}");
        let (lane, reaches) = ("lane 0 round 0", format!("elements {range} of slot 0 at rank 1"));
        common::says(error, &["rank 0 reaches", &reaches, lane, "outside every window"]);
    }
    assert!(errors[1].is_some(), "the target has an error");
    match errors[2].as_ref().unwrap() {
        Error::PeerFailed { rank, reason } => {
            assert!(rank.0 < 2 && reason.contains("outside every window"), "{reason}");
        }
        other => panic!("{other}"),
    }
}

fn in_both_orders(windows: &'static [Range<usize>], range: &str, issue: Issue) {
    for early in [true, false] {
        check(&errors_of(windows, early, issue), range);
    }
}

#[test]
fn without_a_window() {
    in_both_orders(&[], "3..13", |ctx, values, slot| {
        ctx.put(&values.region(..10), slot.at(Rank(1), 3))
    });
}

#[test]
fn beside_a_window() {
    in_both_orders(&[0..30, 40..100], "30..40", |ctx, values, slot| {
        ctx.put(&values.region(..10), slot.at(Rank(1), 30))
    });
}

#[test]
fn one_element_beyond_a_window() {
    in_both_orders(&[10..20], "10..21", |ctx, values, slot| {
        ctx.put(&values.region(..11), slot.at(Rank(1), 10))
    });
    in_both_orders(&[10..20], "9..20", |ctx, values, slot| {
        ctx.put(&values.region(..11), slot.at(Rank(1), 9))
    });
}

#[test]
fn across_two_windows() {
    in_both_orders(&[0..20, 20..40], "15..25", |ctx, values, slot| {
        ctx.put(&values.region(..10), slot.at(Rank(1), 15))
    });
}

#[test]
fn a_long_put() {
    in_both_orders(&[0..99], "0..100", |ctx, values, slot| {
        ctx.put(&values.all(), slot.at(Rank(1), 0))
    });
}

/// A window for writing is not one for reading.
#[test]
fn a_get_from_a_window() {
    in_both_orders(&[0..100], "0..100", |ctx, values, slot| {
        ctx.get(slot.at(Rank(1), 0), &values.all())
    });
}

#[test]
fn exactly_a_window_is_right() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u32; 100])?;
        let slot = ctx.register_global(&inbox).await?;
        let values = common::array(&ctx, vec![9u32; 10])?;
        ctx.put(&values.all(), slot.at(Rank(1 - ctx.rank().0), 10))?;
        let sync = ctx.sync(SyncMode::DEFAULT);
        sync.window(&inbox.region(10..20)).await?;
        common::read(&ctx, &inbox).await
    });
    let expected: Vec<u32> =
        (0..100).map(|at| if (10..20).contains(&at) { 9 } else { 0 }).collect();
    assert_eq!(ends.unwrap(), [expected.clone(), expected]);
}

/// The target has ended the round of the put.
#[test]
fn a_put_that_comes_too_late() {
    let errors = Arc::new(Mutex::new([None, None]));
    let gate = common::Gate::default();
    let result = common::run(common::unwatched(2, 2), |ctx| {
        let (errors, gate) = (Arc::clone(&errors), gate.clone());
        async move {
            let one = common::array(&ctx, vec![1u32])?;
            let inbox = common::array(&ctx, vec![0u32])?;
            let slot = ctx.register_global(&inbox).await?;
            let ended = if ctx.rank() == Rank(0) {
                gate.passed().await;
                ctx.put(&one.all(), slot.at(Rank(1), 0))?;
                ctx.sync(SyncMode::msg(0)).await
            } else {
                ctx.sync(SyncMode::msg(0)).window(&inbox.all()).await?;
                gate.open();
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
            };
            errors.lock().unwrap()[ctx.rank().0 as usize] = ended.clone().err();
            ended
        }
    });
    common::says(
        &result.unwrap_err(),
        &["rank 0 reaches elements 0..1 of slot 0 at rank 1", "round 0"],
    );
    let errors = errors.lock().unwrap();
    assert!(
        errors.iter().all(|error| matches!(error, Some(Error::OutsideWindow { .. }))),
        "{errors:?}"
    );
}

#[test]
fn a_window_of_another_lane() {
    let result = common::run(common::unwatched(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u32])?;
        let inbox = common::array(&ctx, vec![0u32])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.lane(1)?.put(&one.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        let zero = ctx.sync(SyncMode::msg(0)).window(&inbox.all()).spawn()?;
        ctx.lane(1)?.sync(SyncMode::msg(1)).await?;
        zero.await
    });
    common::says(&result.unwrap_err(), &["lane 1 round 0", "outside every window"]);
}

#[test]
fn a_window_on_what_is_no_windowed_slot_or_outside_its_array() {
    for case in 0..3 {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let result = common::run(common::unwatched(2, 2), |ctx| {
            let errors = Arc::clone(&errors);
            async move {
                let inbox = common::array(&ctx, vec![0u32; 4])?;
                let other = common::array(&ctx, vec![0u32; 4])?;
                ctx.register_global(&inbox).await?;
                ctx.register_local(&other)?;
                let sync = ctx.sync(SyncMode::DEFAULT);
                let sync = match (ctx.rank().0, case) {
                    (1, 0) => sync.window(&other.all()),
                    (1, 1) => sync.expose(&other.all()),
                    (1, _) => sync.window(&inbox.region(2..5)),
                    _ => sync,
                };
                let ended = sync.await;
                errors.lock().unwrap().extend(ended.clone().err());
                ended
            }
        });
        let expected = if case < 2 { "is not registered: " } else { "lies outside array" };
        common::says(&result.unwrap_err(), &[expected]);
        // The other rank learns the cause, too.
        let errors = errors.lock().unwrap();
        assert_eq!(errors.len(), 2, "case {case}");
        errors.iter().for_each(|error| common::says(error, &[expected]));
    }
}
