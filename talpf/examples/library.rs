//! A library that a program calls on its ranks.
//!
//! Every rank has another number of items, and rank 0 gathers them in the order of ranks. Where the
//! items of a rank begin is what a library finds out, with slots and supersteps of its own: it knows
//! its arguments, and nothing of the program.
//! Run it with `cargo run -p talpf --example library`.

use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::Array;

const RANKS: u32 = 5;

pub(crate) fn main() -> Result<(), Error> {
    let gathered = exec(Config { ranks: RANKS, ..Config::default() }, gather)?;
    let expected: Vec<u32> = (0..RANKS).flat_map(|rank| vec![rank; rank as usize + 1]).collect();
    assert_eq!(gathered[0], expected);
    println!("rank 0 has the {} items of {RANKS} ranks", expected.len());
    Ok(())
}

/// Returns the items of all ranks at rank 0, and none at the others.
async fn gather(mut ctx: Context) -> Result<Vec<u32>, Error> {
    let me = ctx.rank().0;
    let items = Array::new(ctx.group(), vec![me; me as usize + 1], 1)?;
    let total = if me == 0 { RANKS * (RANKS + 1) / 2 } else { 0 };
    let all = Array::new(ctx.group(), vec![0; total as usize], 1)?;
    let slot = ctx.register_global(&all).await?;

    let offset = ctx.rehook(|library| sum_before(library, items.len())).await?;
    ctx.put(&items.all(), slot.at(0, offset))?;
    ctx.sync(SyncMode::DEFAULT).window(&all.all()).await?;
    Ok(ctx.group().task("read").input(&all.all()).run(|all| all.to_vec())?.await?)
}

/// Returns the sum of the numbers of the ranks before this one.
async fn sum_before(ctx: Context, number: usize) -> Result<usize, Error> {
    let me = ctx.rank().0;
    let own = Array::new(ctx.group(), vec![number], 1)?;
    let numbers = Array::new(ctx.group(), vec![0; ctx.size() as usize], 1)?;
    let slot = ctx.register_global(&numbers).await?;
    for rank in me + 1..ctx.size() {
        ctx.put(&own.all(), slot.at(rank, me as usize))?;
    }
    ctx.sync(SyncMode::DEFAULT).window(&numbers.all()).await?;
    let sum = ctx.group().task("sum").input(&numbers.all());
    Ok(sum.run(|numbers| numbers.iter().sum())?.await?)
}
