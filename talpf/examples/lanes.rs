//! A pipeline of ranks in which every link is a lane, with rounds of its own.
//!
//! An item passes one rank after another, and each applies its part of the computation. Round n of
//! a lane carries item n over one link, so a rank waits for the item that it needs and not for what
//! other links carry. Run it with `cargo run -p talpf --example lanes`.

use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::Array;

const RANKS: u32 = 4;
const ITEMS: usize = 100;

pub(crate) fn main() -> Result<(), Error> {
    let mut ends = exec(Config { ranks: RANKS, ..Config::default() }, stage)?;
    let expected = |item| (0..RANKS).fold(item as u64, apply);
    let items = ends.remove(RANKS as usize - 1);
    assert_eq!(items, (0..ITEMS).map(expected).collect::<Vec<_>>());
    println!("{ITEMS} items have passed {RANKS} ranks; the last has become {}", items[ITEMS - 1]);
    Ok(())
}

/// The part of one rank in the computation of an item.
fn apply(item: u64, rank: u32) -> u64 {
    3 * item + u64::from(rank)
}

/// The program of a rank, which returns the items as they leave it.
async fn stage(ctx: Context) -> Result<Vec<u64>, Error> {
    let rank = ctx.rank().0;
    // The lane from the previous rank, and that to the next one.
    let (from, to) = (ctx.lane(rank as u8)?, ctx.lane(rank as u8 + 1)?);
    let inbox = Array::new(ctx.group(), vec![0u64], 1)?;
    let items = Array::new(ctx.group(), (0..ITEMS as u64).collect(), 1)?;
    let slot = ctx.register_global(&inbox).await?;
    for item in 0..ITEMS {
        if rank > 0 {
            // One put arrives in this round, from the previous rank.
            from.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
            let receive = ctx.group().task("receive").input(&inbox.all());
            receive.output(&items.tile(item)).spawn(|inbox, mut item| item[0] = inbox[0])?;
        }
        let apply_here = ctx.group().task("apply").inout(&items.tile(item));
        apply_here.spawn(move |mut item| item[0] = apply(item[0], rank))?;
        if let Ok(next) = ctx.peer(rank + 1) {
            // No put arrives here in a round of the next rank's lane.
            to.put(&items.tile(item), slot.at(next, 0))?;
            to.sync(SyncMode::msg(0)).spawn()?;
        }
    }
    Ok(ctx.group().task("read").input(&items.all()).run(|items| items.to_vec())?.await?)
}
