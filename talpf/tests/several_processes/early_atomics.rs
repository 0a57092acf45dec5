//! Atomics of other processes that come before their window.

use std::collections::BTreeSet;
use std::time::Duration;

use talpf::{Config, Context, Error, Rank, SyncMode};
use talpf_runtime::Array;

use crate::common;

/// More than a rank carries out at a time for others.
const MANY: usize = 150;
/// Time for which the window stays closed.
const LONG: Duration = Duration::from_millis(100);

/// Has ranks 1 and 2 add to a number of rank 0, whose window opens once all additions have come. Returns the values that
/// the additions of a rank have found.
async fn add_early(ctx: Context) -> Result<Vec<u64>, Error> {
    let counter = common::array(&ctx, vec![0u64; 2])?;
    let slot = ctx.register_global(&counter).await?;
    let found = Array::new(ctx.group(), vec![0u64; MANY], 1)?;
    ctx.register_local(&found)?;
    if ctx.rank() == Rank(0) {
        let group = ctx.group().clone();
        ctx.group().task("keep").inout(&counter.all()).spawn_async(move |counter| async move {
            group.wait_for(LONG).await;
            drop(counter);
        })?;
        ctx.sync(SyncMode::msg(2 * MANY as u32)).window(&counter.all()).await?;
        return common::read(&ctx, &counter).await;
    }
    for add in 0..MANY {
        ctx.fetch_and_add(slot.at(Rank(0), 1), 1, &found.tile(add))?;
    }
    ctx.sync(SyncMode::msg(0)).await?;
    common::read(&ctx, &found).await
}

#[test]
fn more_atomics_than_are_carried_out_at_a_time_wait_for_their_window() {
    let ends = common::run(Config { credits: 2 * MANY, ..common::config(3, 1) }, add_early);
    let ends = ends.unwrap();
    assert_eq!(ends[0], [0, 2 * MANY as u64]);
    let found: BTreeSet<u64> = ends[1..].iter().flatten().copied().collect();
    assert_eq!(found, (0..2 * MANY as u64).collect());
}

#[test]
fn atomics_beyond_the_credit_wait_for_those_before() {
    let ends = common::run(Config { credits: 3, ..common::config(3, 1) }, add_early).unwrap();
    assert_eq!(ends[0], [0, 2 * MANY as u64]);
}
