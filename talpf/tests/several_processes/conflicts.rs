//! A round that reads and writes one location is found at the target, whose peers are remote.
#![allow(unsafe_code, reason = "windows keep gets and puts apart; raw slots do not")]

use crate::common;
use talpf::{Config, Context, Error, Rank, SyncMode};

fn config() -> Config {
    Config { check_conflicts: true, ..common::unwatched(3, 1) }
}

/// Checks that the target gets the conflict, and the others the rank that failed.
#[track_caller]
fn check(ends: Vec<Result<(), Error>>, conflict: Option<&str>) {
    let Some(conflict) = conflict else {
        return ends.into_iter().for_each(Result::unwrap);
    };
    common::says(ends[2].as_ref().unwrap_err(), &[&format!("lane 0 round 0: {conflict}")]);
    for end in &ends[..2] {
        common::says(end.as_ref().unwrap_err(), &[conflict]);
    }
}

#[test]
fn a_get_and_a_put_of_a_raw_slot() {
    let main = async |ctx: Context, put: usize| {
        let memory = common::array(&ctx, vec![0u64; 8])?;
        // SAFETY: ranks put to what is theirs, the get is of the rank that puts there, and it is
        // awaited before.
        let slot = unsafe { ctx.register_raw(&memory) }.await?;
        let local = common::array(&ctx, vec![0u64; 3])?;
        ctx.register_local(&local)?;
        match ctx.rank() {
            Rank(0) => {
                ctx.get(slot.at(Rank(2), 2), &local.all())?;
                common::read(&ctx, &local).await?;
                ctx.put(&local.all(), slot.at(Rank(2), put))?;
            }
            Rank(1) => ctx.put(&local.region(..2), slot.at(Rank(2), 0))?,
            _ => {}
        }
        ctx.sync(SyncMode::DEFAULT).await
    };
    let run = |put| common::run_all(config(), move |ctx| main(ctx, put));
    check(run(5), None);
    check(run(4), Some("rank 0 gets and rank 0 puts elements 4..5 of slot 2 at rank 2"));
}

#[test]
fn an_update_and_a_put_in_a_window() {
    let main = async |ctx: Context, cell: usize| {
        let cells = common::array(&ctx, vec![0u64; 8])?;
        let slot = ctx.register_global(&cells).await?;
        let local = common::array(&ctx, vec![0u64; 4])?;
        ctx.register_local(&local)?;
        match ctx.rank() {
            Rank(0) => ctx.put(&local.all(), slot.at(Rank(2), 0))?,
            Rank(1) => ctx.fetch_and_add(slot.at(Rank(2), cell), 1, &local.region(..1))?,
            _ => {}
        }
        ctx.sync(SyncMode::DEFAULT).window(&cells.all()).await
    };
    let run = |cell| common::run_all(config(), move |ctx| main(ctx, cell));
    check(run(4), None);
    check(run(3), Some("rank 1 updates and rank 0 puts elements 3..4 of slot 2 at rank 2"));
}
