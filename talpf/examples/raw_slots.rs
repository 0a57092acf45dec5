//! Raw slots: puts without windows, which two buffers and a barrier keep apart.
//!
//! This is the program of the example `ring` as one would write it in LPF. A rank puts into one
//! buffer of the next rank while that may still read the other, and every step ends in a barrier.
//! The compiler cannot check such a program. Run it with `cargo run -p talpf --example raw_slots`.
#![allow(unsafe_code, reason = "the program answers for raw slots")]

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
    let inboxes = Array::new(ctx.group(), vec![0u32; 2], 1)?;
    // SAFETY: the put of step n goes to buffer n % 2. It follows the barrier of step n - 1, and
    // before that every rank has read what came in step n - 2, the last that used this buffer.
    let slot = unsafe { ctx.register_raw(&inboxes) }.await?;
    let passing = Array::new(ctx.group(), vec![ctx.rank().0], 1)?;
    let next = (ctx.rank().0 + 1) % ctx.size();
    let mut sum = ctx.rank().0;
    for step in 1..ctx.size() as usize {
        let buffer = step % 2;
        ctx.put(&passing.all(), slot.at(next, buffer))?;
        ctx.sync(SyncMode::CACHED.with_barrier()).await?;
        let pass_on = ctx.group().task("pass on").input(&inboxes.tile(buffer));
        let pass_on = pass_on.output(&passing.all()).run(|inbox, mut passing| {
            passing[0] = inbox[0];
            inbox[0]
        })?;
        sum += pass_on.await?;
    }
    Ok(sum)
}
