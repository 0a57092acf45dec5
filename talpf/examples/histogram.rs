//! A histogram whose bins are distributed over the ranks, and to which all ranks add at the same time.
//!
//! Each rank counts its own numbers and adds the counts to the bins, wherever they are, with
//! `fetch_and_add`. What an addition fetches says where the rank's numbers of that bin would begin
//! if all were sorted by bin. Run it with `cargo run -p talpf --example histogram`.

use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::Array;

const RANKS: u32 = 4;
/// Bins at each rank, and numbers of each.
const BINS: usize = 4;
const NUMBERS: u64 = 10_000;

pub(crate) fn main() -> Result<(), Error> {
    let ends = exec(Config { ranks: RANKS, ..Config::default() }, histogram)?;
    let counts: Vec<_> = (0..RANKS).map(count).collect();
    let bins: Vec<u64> = ends.iter().flat_map(|(bins, _)| bins.clone()).collect();
    for (bin, total) in bins.iter().enumerate() {
        assert_eq!(*total, counts.iter().map(|counts| counts[bin]).sum::<u64>());
        // The ranks have taken pieces of the bin one after another, in some order.
        let piece = |rank: usize| (ends[rank].1[bin], counts[rank][bin]);
        let mut pieces: Vec<_> = (0..RANKS as usize).map(piece).collect();
        pieces.sort_unstable();
        pieces.iter().fold(0, |end, (first, len)| {
            assert_eq!(*first, end);
            end + len
        });
    }
    println!("{} numbers, counted by bin: {bins:?}", NUMBERS * u64::from(RANKS));
    Ok(())
}

/// Counts the numbers of a rank by bin, for all bins.
fn count(rank: u32) -> Vec<u64> {
    let bins = BINS * RANKS as usize;
    let mut counts = vec![0; bins];
    for number in 0..NUMBERS {
        // The product of two numbers is more often small than large.
        let random = |seed: u64| (number + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let product = random(u64::from(rank) << 20) * random(u64::from(rank + 1) << 40);
        counts[((product >> 32) as usize * bins) >> 32] += 1;
    }
    counts
}

/// Returns the bins of this rank, and what the additions of this rank have fetched.
async fn histogram(ctx: Context) -> Result<(Vec<u64>, Vec<u64>), Error> {
    let counts = count(ctx.rank().0);
    let bins = Array::new(ctx.group(), vec![0u64; BINS], BINS)?;
    let slot = ctx.register_global(&bins).await?;
    let fetched = Array::new(ctx.group(), vec![0u64; counts.len()], 1)?;
    // Without this the device takes in the memory of every result by itself.
    ctx.register_local(&fetched)?;
    for (bin, count) in counts.into_iter().enumerate() {
        let (owner, index) = ((bin / BINS) as u32, bin % BINS);
        ctx.fetch_and_add(slot.at(owner, index), count, &fetched.tile(bin))?;
    }
    ctx.sync(SyncMode::DEFAULT).window(&bins.all()).spawn()?;
    let read = ctx.group().task("read").input(&bins.all()).input(&fetched.all());
    Ok(read.run(|bins, fetched| (bins.to_vec(), fetched.to_vec()))?.await?)
}
