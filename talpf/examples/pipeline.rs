//! A pipeline of ranks without rounds: each works on the blocks that the rank before it has sent, in
//! buffers that are its only flow control.
//!
//! A put notifies the next rank of the id of the buffer that it is for. A task there waits for that id,
//! with the buffer as its inbox: it runs once the block has come, and the block of the next item for
//! the same buffer does not land before the task, and the put that passes the block on, have released
//! it. So a rank is at most as many items ahead of the next one as there are buffers. Run it with
//! `cargo run -p talpf --example pipeline`.

use talpf::{Config, Context, Error, NotifiedTask, exec};
use talpf_runtime::Array;

const RANKS: u32 = 4;
const ITEMS: usize = 100;
/// Elements of a block.
const BLOCK: usize = 512;
/// Buffers of each rank.
const BUFFERS: usize = 3;

pub(crate) fn main() -> Result<(), Error> {
    let sums = exec(Config { ranks: RANKS, ..Config::default() }, stage)?;
    let block = |item| (0..RANKS).fold(item as f64, apply) * BLOCK as f64;
    assert_eq!(sums[RANKS as usize - 1], (0..ITEMS).map(block).collect::<Vec<_>>());
    println!("{ITEMS} blocks have passed {RANKS} ranks, which have {BUFFERS} buffers each");
    Ok(())
}

/// The part of one rank in the computation of an element.
fn apply(value: f64, rank: u32) -> f64 {
    2.0 * value + f64::from(rank)
}

/// The program of a rank, which returns the sums of the blocks as they leave it.
async fn stage(ctx: Context) -> Result<Vec<f64>, Error> {
    let rank = ctx.rank().0;
    let buffers = Array::new(ctx.group(), vec![0.0; BUFFERS * BLOCK], BLOCK)?;
    let sums = Array::new(ctx.group(), vec![0.0; ITEMS], 1)?;
    let slot = ctx.register_global(&buffers).await?;
    for item in 0..ITEMS {
        let (number, sum) = (item % BUFFERS, sums.tile(item));
        let buffer = buffers.tile(number);
        let work = move |block: &mut [f64], sum: &mut f64| {
            block.iter_mut().for_each(|value| *value = apply(*value, rank));
            *sum = block.iter().sum();
        };
        let task = ctx.group().task("work");
        if rank == 0 {
            task.inout(&buffer).output(&sum).spawn(move |mut block, mut sum| {
                block.fill(item as f64);
                work(&mut block, &mut sum[0]);
            })?;
        } else {
            let inbox = ctx.notifications().inbox(&buffer, number as u32)?;
            let task = task.inbox(&inbox).output(&sum);
            task.spawn(move |mut block, mut sum| work(&mut block, &mut sum[0]))?;
        }
        if let Ok(next) = ctx.peer(rank + 1) {
            let to = slot.at(next, number * BLOCK);
            ctx.put_notify(&buffer, to, number as u32, item as u32)?;
        }
    }
    Ok(ctx.group().task("read").input(&sums.all()).run(|sums| sums.to_vec())?.await?)
}
