//! Puts round a ring of ranks, in supersteps.
//!
//! In every superstep each rank puts a number into the inbox of the next rank and passes on what
//! has come from the previous one, until all have added up the numbers of all. Nothing waits: the
//! tasks, puts and windows follow from the regions that they use.
//! Run it with `cargo run -p talpf --example ring`.

use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::Array;

const RANKS: u32 = 5;

pub(crate) fn main() -> Result<(), Error> {
    let sums = exec(Config { ranks: RANKS, ..Config::default() }, sum_of_all)?;
    assert_eq!(sums, [(0..RANKS).sum::<u32>(); RANKS as usize]);
    println!("every one of {RANKS} ranks has the sum {}", sums[0]);
    Ok(())
}

/// Returns the sum of the numbers of all ranks.
async fn sum_of_all(ctx: Context) -> Result<u32, Error> {
    let passing = Array::new(ctx.group(), vec![ctx.rank().0], 1)?;
    let sum = Array::new(ctx.group(), vec![ctx.rank().0], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u32], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let next = (ctx.rank().0 + 1) % ctx.size();
    for _ in 1..ctx.size() {
        ctx.put(&passing.all(), slot.at(next, 0))?;
        ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
        let add = ctx.group().task("add").input(&inbox.all()).output(&passing.all());
        add.inout(&sum.all()).spawn(|inbox, mut passing, mut sum| {
            passing[0] = inbox[0];
            sum[0] += inbox[0];
        })?;
    }
    Ok(ctx.group().task("read").input(&sum.all()).run(|sum| sum[0])?.await?)
}
