//! An operation outside every window of its round is an error at both ranks, and changes nothing.

use std::sync::{Arc, Mutex};

use crate::common::{self, Gate};
use talpf::{Error, Rank, SyncMode};

/// Puts ten elements from rank 0 at `at`; rank 1 opens a window of 10..20 before or after that.
fn put(at: usize, early: bool, len: usize) {
    let gate = Gate::default();
    let changed = Arc::new(Mutex::new(false));
    let ends = common::run_all(common::unwatched(3, 2), |ctx| {
        let (gate, changed) = (gate.clone(), Arc::clone(&changed));
        async move {
            let inbox = common::array(&ctx, vec![5u32; 20 * len])?;
            let slot = ctx.register_global(&inbox).await?;
            let values = common::array(&ctx, vec![9u32; 10 * len])?;
            ctx.register_local(&values)?;
            let me = ctx.rank().0;
            if me == u32::from(early) {
                gate.passed().await;
            }
            if me == 0 {
                ctx.put(&values.all(), slot.at(Rank(1), at * len))?;
            }
            let sync = ctx.sync(SyncMode::msg(u32::from(me != 0)));
            let sync = if me == 1 { sync.window(&inbox.region(10 * len..)) } else { sync };
            let handle = sync.spawn()?;
            if me < 2 {
                gate.open();
            }
            let ended = handle.await;
            let seen = common::read(&ctx, &inbox).await;
            *changed.lock().unwrap() |= seen.is_ok_and(|seen| seen != vec![5; 20 * len]);
            ended
        }
    });
    assert!(!*changed.lock().unwrap());
    let range = format!("elements {}..{} of slot 2", at * len, (at + 10) * len);
    let [source, target] = [0, 1].map(|rank: usize| ends[rank].as_ref().unwrap_err());
    assert!(matches!(target, Error::OutsideWindow { .. }), "{target}");
    // Rank 2 passes the failure on, which may come before the answer of rank 1.
    let is_passed_on = matches!(source, Error::PeerFailed { rank: Rank(1), .. });
    assert!(is_passed_on || matches!(source, Error::OutsideWindow { .. }), "{source}");
    for text in [source, target].map(ToString::to_string) {
        for part in ["rank 0 reaches", &range, "at rank 1 in lane 0 round 0"] {
            assert!(text.contains(part), "{text}");
        }
    }
    common::says(ends[2].as_ref().unwrap_err(), &["outside every window"]);
}

#[test]
fn a_short_put_that_comes_early_or_late() {
    for at in [0, 9] {
        for early in [true, false] {
            put(at, early, 1);
        }
    }
}

#[test]
fn a_long_put_that_comes_early_or_late() {
    for early in [true, false] {
        put(9, early, 1_000);
    }
}

#[test]
fn a_put_into_an_ended_round() {
    let gate = Gate::default();
    let ends = common::run_all(common::unwatched(2, 2), |ctx| {
        let gate = gate.clone();
        async move {
            let one = common::array(&ctx, vec![1u32])?;
            let inbox = common::array(&ctx, vec![0u32])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                gate.passed().await;
                ctx.put(&one.all(), slot.at(Rank(1), 0))?;
                return ctx.sync(SyncMode::msg(0)).await;
            }
            ctx.sync(SyncMode::msg(0)).window(&inbox.all()).await?;
            gate.open();
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
        }
    });
    for end in ends {
        let error = end.unwrap_err();
        assert!(matches!(error, Error::OutsideWindow { .. }), "{error}");
    }
}
