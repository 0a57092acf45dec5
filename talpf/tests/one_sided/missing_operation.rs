//! An operation that does not come is reported with who is missing, and is no hang.

use crate::common;
use talpf::{Error, Rank, SyncMode};

/// Runs some rounds in which every rank puts to rank 0, until rank 1 ends too early. Returns the
/// report.
fn report(ranks: u32, mode: SyncMode) -> String {
    let result = common::run(common::watched(ranks, 2), move |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64; 32])?;
        let slot = ctx.register_global(&inbox).await?;
        let me = ctx.rank().0 as usize;
        for _ in 0..if me == 1 { 2 } else { 3 } {
            ctx.put(&one.all(), slot.at(Rank(0), me))?;
            let mut mode = mode;
            if let (talpf::Arrivals::Msg(_), 1..) = (mode.arrivals, me) {
                mode.arrivals = talpf::Arrivals::Msg(0);
            }
            ctx.sync(mode).window(&inbox.all()).await?;
        }
        Ok::<_, Error>(())
    });
    match result {
        Err(Error::Runtime(talpf_runtime::Error::Hang(text))) => text.to_string(),
        other => panic!("{mode}: a hang report was expected, not {other:?}"),
    }
}

fn contains(report: &str, part: &str) {
    assert!(report.contains(part), "`{part}` is missing in:\n{report}");
}

#[test]
fn default_names_the_ranks_whose_counts_are_missing() {
    for mode in [SyncMode::DEFAULT, SyncMode::DEFAULT.with_ack()] {
        for ranks in [2, 3, 32] {
            let text = report(ranks, mode);
            contains(
                &text,
                &format!(
                    "rank 0: sync({mode}) of lane 0 round 2 waits for the count of rank 1, which has not"
                ),
            );
        }
    }
}

#[test]
fn cached_names_the_rank_and_how_many_are_missing() {
    for mode in [SyncMode::CACHED, SyncMode::CACHED.with_barrier()] {
        for ranks in [2, 3, 32] {
            let text = report(ranks, mode);
            let arrived = match ranks - 1 {
                1 => "1 has".to_owned(),
                more => format!("{more} have"),
            };
            contains(
                &text,
                &format!(
                    "rank 0: sync({mode}) of lane 0 round 2 expects {ranks} operations, {arrived} arrived; 1 missing from rank 1\n"
                ),
            );
        }
    }
}

#[test]
fn msg_says_how_many_are_missing_and_from_whom_others_have_come() {
    let text = report(3, SyncMode::msg(3));
    contains(&text, "rank 0: sync(msg(3)) of lane 0 round 2 expects 3 operations, 2 have arrived");
    contains(&text, "1 from rank 0, 1 from rank 2");
}

/// The rank that does not come receives nothing, so only the barrier misses it.
#[test]
fn a_barrier_names_the_rank_it_waits_for() {
    let result = common::run(common::watched(3, 2), |ctx| async move {
        if ctx.rank() != Rank(1) {
            ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        }
        Ok(())
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Runtime(talpf_runtime::Error::Hang(_))), "{error}");
    common::says(
        &error,
        &["rank 2: sync(msg(0)+barrier) of lane 0 round 0", "barrier", "for rank 1"],
    );
}

/// Rank 1 takes what comes and never acknowledges it.
#[test]
fn a_missing_acknowledgement_is_reported() {
    let result = common::run(common::watched(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            ctx.put(&one.all(), slot.at(Rank(1), 0))?;
            ctx.sync(SyncMode::msg(0).with_ack()).await?;
            ctx.sync(SyncMode::msg(0).with_ack()).await?;
        } else {
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
        }
        Ok(())
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Runtime(talpf_runtime::Error::Hang(_))), "{error}");
    common::says(
        &error,
        &[
            "rank 0: sync(msg(0)+ack) of lane 0 round 1 waits for its targets to end the round before",
        ],
    );
}

/// A handle that nobody drops keeps its round from closing.
#[test]
fn a_handle_of_a_round_that_is_kept_is_reported() {
    let result = common::run(common::watched(1, 1), |ctx| async move {
        let kept = ctx.round();
        let ended = ctx.sync(SyncMode::DEFAULT).await;
        drop(kept);
        ended
    });
    common::says(&result.unwrap_err(), &["waits for 1 operation to be posted"]);
}

/// The region of the window is never free.
#[test]
fn operations_that_are_parked_for_good_are_reported() {
    let result = common::run(common::watched(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let task = ctx.group().task("keep").input(&inbox.all());
        let kept = task.run(|inbox| inbox)?.await?;
        ctx.put(&one.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        let ended = ctx.sync(SyncMode::CACHED).window(&inbox.all()).await;
        drop(kept);
        ended
    });
    let error = result.unwrap_err();
    common::says(
        &error,
        &[
            "rank 0: keeps 1 operation of rank 1 parked",
            "rank 1: keeps 1 operation of rank 0 parked",
            "task `keep`",
        ],
    );
}
