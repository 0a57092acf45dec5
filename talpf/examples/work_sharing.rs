//! Dynamic work sharing: ranks take items from a shared counter until none is left.
//!
//! `fetch_and_add` on a counter of rank 0 says which item a rank does next, so that a rank with
//! short items does more of them. `compare_and_swap` keeps the largest result beside the counter,
//! without a lock. Run it with `cargo run -p talpf --example work_sharing`.

use talpf::{Config, Context, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

const RANKS: u32 = 4;
const ITEMS: u64 = 300;
const OWNER: Rank = Rank(0);
/// Elements of the shared array.
const NEXT: usize = 0;
const MAXIMUM: usize = 1;

pub(crate) fn main() -> Result<(), Error> {
    let ends = exec(Config { ranks: RANKS, ..Config::default() }, rank)?;
    let (maximum, _) = ends[OWNER.0 as usize];
    let done: Vec<u64> = ends.iter().map(|(_, done)| *done).collect();
    assert_eq!(done.iter().sum::<u64>(), ITEMS);
    assert_eq!(Some(maximum), (0..ITEMS).map(compute).max());
    println!("ranks have done {done:?} items; the largest result is {maximum}");
    Ok(())
}

/// Returns the steps in which Euclid's algorithm ends.
fn compute(item: u64) -> u64 {
    let (mut a, mut b, mut steps) = (item * item, 1_000_003, 0);
    while b > 0 {
        (a, b, steps) = (b, a % b, steps + 1);
    }
    steps
}

/// Returns the largest result, at its owner, and the number of items that this rank has done.
async fn rank(ctx: Context) -> Result<(u64, u64), Error> {
    let shared = Array::new(ctx.group(), vec![0u64; 2], 2)?;
    let slot = ctx.register_global(&shared).await?;
    let seen = Array::new(ctx.group(), vec![0u64], 1)?;
    ctx.register_local(&seen)?;
    let (round, group) = (ctx.round(), ctx.group().clone());
    // Each atomic takes the guard of its result and returns it with the number that was there.
    let work =
        ctx.group().task("work").output(&seen.all()).run_async(move |mut seen| async move {
            for done in 0.. {
                seen = round.fetch_and_add(slot.at(OWNER, NEXT), 1, seen).await?;
                if seen[0] >= ITEMS {
                    return Ok::<_, Error>(done);
                }
                let (item, mut largest) = (seen[0], 0);
                let result = group.task("compute").run(move || compute(item))?.await?;
                while largest < result {
                    let maximum = slot.at(OWNER, MAXIMUM);
                    seen = round.compare_and_swap(maximum, largest, result, seen).await?;
                    if seen[0] == largest {
                        break;
                    }
                    largest = seen[0];
                }
            }
            unreachable!("the counter passes the number of items")
        })?;
    // All is one round, which ends once every rank has let go of it.
    ctx.sync(SyncMode::DEFAULT).window(&shared.all()).await?;
    let read = ctx.group().task("read").input(&shared.all()).run(|shared| shared[MAXIMUM])?;
    Ok((read.await?, work.await??))
}
