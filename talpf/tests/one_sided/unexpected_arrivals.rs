//! Under `msg(n)` an operation too many is an error at the target.

use std::sync::{Arc, Mutex};

use crate::common;
use talpf::{Error, Rank, SyncMode};

/// Puts twice from each of ranks 1 and 2 to rank 0, before it opens the window of a sync with
/// `mode`. Returns the error of rank 0 from that sync or the next.
fn error_at_target(lane: u8, mode: SyncMode) -> Error {
    let error_there = Arc::new(Mutex::new(None));
    let result = common::run(common::unwatched(3, 2), |ctx| {
        let error_there = Arc::clone(&error_there);
        async move {
            let one = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64; 4])?;
            let slot = ctx.register_global(&inbox).await?;
            let me = ctx.rank().0 as usize;
            if me > 0 {
                for at in [2 * me - 2, 2 * me - 1] {
                    ctx.lane(lane)?.put(&one.all(), slot.at(Rank(0), at))?;
                }
            }
            // Collective, so after it all puts are at rank 0.
            ctx.register_global(&common::array(&ctx, vec![0u8])?).await?;
            if me > 0 {
                return Ok(());
            }
            let first = ctx.lane(lane)?.sync(mode).window(&inbox.all()).await;
            let next = ctx.lane(lane)?.sync(SyncMode::msg(1)).await;
            *error_there.lock().unwrap() = first.and(next.clone()).err();
            next
        }
    });
    assert!(result.is_err());
    let error_there = error_there.lock().unwrap().take();
    error_there.expect("rank 0 has an error")
}

#[test]
fn arrivals_beyond_the_number_given_name_the_round_and_a_source() {
    for lane in [0, 30] {
        for expected in [1, 2, 3] {
            let error = error_at_target(lane, SyncMode::msg(expected));
            let expected_parts = [lane.to_string(), "round 0".to_owned(), "from rank ".to_owned()];
            assert!(matches!(error, Error::UnexpectedArrivals { .. }), "{error}");
            common::says(&error, &expected_parts.each_ref().map(String::as_str));
        }
    }
}

#[test]
fn as_many_as_expected_are_no_error() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64; 4])?;
        let slot = ctx.register_global(&inbox).await?;
        for at in 0..2 {
            ctx.put(&one.all(), slot.at(Rank(0), at))?;
        }
        ctx.register_global(&common::array(&ctx, vec![0u8])?).await?;
        let expected = if ctx.rank() == Rank(0) { 6 } else { 0 };
        ctx.sync(SyncMode::msg(expected)).window(&inbox.all()).await
    });
    ends.unwrap();
}
