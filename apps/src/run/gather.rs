//! Gathering of the parts of a result at rank 0, if every rank is a process.

use talpf::{Context, SyncMode};
use talpf_runtime::Array;
#[cfg(feature = "mpi")]
use tampi_shim::{Communicator, Rank};

use crate::Error;

/// Gathers the numbers of all ranks at rank 0 with puts, of which none leaves before all ranks have called.
pub(super) async fn by_puts(
    ctx: &Context,
    numbers: Vec<f64>,
) -> Result<Option<Vec<Vec<f64>>>, Error> {
    let (here, ranks) = (ctx.rank().0 as usize, ctx.size());
    let length = Array::new(ctx.group(), vec![numbers.len() as u64], 1)?;
    let lengths = Array::new(ctx.group(), vec![0; ranks as usize], ranks as usize)?;
    let slot = ctx.register_global(&lengths).await?;
    for rank in 0..ranks {
        ctx.put(&length.all(), slot.at(ctx.peer(rank)?, here))?;
    }
    ctx.sync(SyncMode::DEFAULT).window(&lengths.all()).await?;
    let read = ctx.group().task("lengths").input(&lengths.all());
    let lengths: Vec<usize> =
        read.run(|lengths| lengths.iter().map(|&length: &u64| length as usize).collect())?.await?;

    let total = if here == 0 { lengths.iter().sum() } else { 0 };
    let tile = numbers.len().max(1);
    let own = Array::new(ctx.group(), numbers, tile)?;
    ctx.register_local(&own)?;
    let all = Array::new(ctx.group(), vec![0.0; total], total.max(1))?;
    let slot = ctx.register_global(&all).await?;
    ctx.put(&own.all(), slot.at(ctx.peer(0)?, lengths[..here].iter().sum()))?;
    let sync = ctx.sync(SyncMode::DEFAULT);
    let sync = if here == 0 { sync.window(&all.all()) } else { sync };
    sync.await?;
    if here > 0 {
        return Ok(None);
    }
    let read = ctx.group().task("parts").input(&all.all());
    Ok(Some(read.run(move |all| cut(&all, &lengths))?.await?))
}

/// Gathers the numbers of all ranks at rank 0 with messages.
#[cfg(feature = "mpi")]
pub(super) async fn by_messages(
    world: &Communicator,
    numbers: Vec<f64>,
) -> Result<Option<Vec<Vec<f64>>>, Error> {
    let (root, ranks) = (Rank(0), world.size() as usize);
    let lengths = vec![0_u64; ranks];
    let (_, lengths) = world.gather(vec![numbers.len() as u64], lengths, root).await?;
    let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
    let all = vec![0.0; lengths.iter().sum()];
    let (_, all) = world.gatherv(numbers, all, &lengths, root).await?;
    Ok((world.rank() == root).then(|| cut(&all, &lengths)))
}

/// Cuts `all` into parts of these lengths.
fn cut(mut all: &[f64], lengths: &[usize]) -> Vec<Vec<f64>> {
    let mut part = |&length| {
        let (part, rest) = all.split_at(length);
        all = rest;
        part.to_vec()
    };
    lengths.iter().map(&mut part).collect()
}
