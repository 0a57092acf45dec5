//! Cost of a barrier and of a reduction of one number, by the number of ranks.

use std::time::Duration;

use tampi_shim::{Communicator, Error, operator};

use super::repeat::Repeat;
use super::sizes::Value;

/// Measures a barrier, and a reduction whose result all ranks get.
pub(super) async fn all(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    let ranks = world.size();
    let barrier = barrier(&world, budget).await?;
    let allreduce = allreduce(&world, budget).await?;
    let figure = |name: &str, seconds: f64| (format!("{name}_{ranks}_us"), seconds * 1e6);
    Ok(vec![figure("barrier", barrier), figure("allreduce", allreduce)])
}

async fn barrier(world: &Communicator, budget: Duration) -> Result<f64, Error> {
    let mut repeat = Repeat::new(world, budget);
    while let Some(repetitions) = repeat.next().await? {
        for _ in 0..repetitions {
            world.barrier().await?;
        }
    }
    Ok(repeat.seconds())
}

async fn allreduce(world: &Communicator, budget: Duration) -> Result<f64, Error> {
    let (rank, ranks) = (u64::from(world.rank().0), u64::from(world.size()));
    let mut number = vec![0u64];
    let mut repeat = Repeat::new(world, budget);
    while let Some(repetitions) = repeat.next().await? {
        for repetition in 0..repetitions {
            number[0] = rank + repetition;
            number = world.allreduce(number, operator::Sum).await?;
            assert_eq!(number[0], ranks * repetition + ranks * (ranks - 1) / 2, "wrong sum");
        }
    }
    Ok(repeat.seconds())
}
