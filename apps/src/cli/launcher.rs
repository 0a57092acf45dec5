//! Whether `mpirun` has started this program several times.

use std::env;

use talpf_apps::Error;

/// How many processes there are, as the launchers of MPICH, Open MPI and their kin say.
const VARIABLES: [&str; 3] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"];

/// Checks that this is the only process, for what has all its ranks in it.
///
/// **Errors**: [`Error::Processes`].
pub(super) fn must_be_alone() -> Result<(), Error> {
    let started = VARIABLES.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok());
    match started {
        Some(processes) if processes > 1 => Err(Error::Processes { processes }),
        _ => Ok(()),
    }
}
