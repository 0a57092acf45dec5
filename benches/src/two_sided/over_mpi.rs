//! Measurement of our messages over an MPI, compared with the plain ping-pong of the same MPI.
//!
//! The command starts itself again under `mpirun`, so it must be built with that MPI.

use std::time::Duration;

use tampi_shim::mpi::{Config, Library, run};
use tampi_shim::{Communicator, Error, Rank};

use super::sizes::{SIZES, Value};
use super::{ranks, tasks};

/// Runs as one of the ranks that `mpirun` has started. Rank 0 prints the figures.
///
/// **Errors**: those of the ranks; a number of ranks other than two, as under the launcher of
/// another MPI.
pub fn rank(budget: Duration) -> Result<(), crate::Error> {
    let config = Config::from_environment()?;
    let library = Library::initialize().map_err(Error::from)?;
    if library.size() != 2 {
        return Err(crate::Error::NotTwoRanks { ranks: library.size() });
    }
    for (name, value) in run(library, config, move |world| measure(world, budget))? {
        println!("{name} {value}");
    }
    Ok(())
}

async fn measure(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    let mut values = ranks::one_way_times(&world, budget, &SIZES[..1]).await?;
    values.extend(tasks::bound(world.clone(), budget).await?);
    Ok(if world.rank() == Rank(0) { values } else { Vec::new() })
}
