//! How many processes `mpirun` has started.

use std::env;

use talpf_apps::Error;

/// How many processes there are, as the launchers of MPICH, Open MPI and their kin say.
const VARIABLES: [&str; 3] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"];

fn started() -> Option<usize> {
    VARIABLES.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}

/// Checks that this is the only process, for what has all its ranks in it.
///
/// **Errors**: [`Error::Processes`].
pub(super) fn must_be_alone() -> Result<(), Error> {
    match started() {
        Some(processes) if processes > 1 => Err(Error::Processes { processes }),
        _ => Ok(()),
    }
}

/// Checks that the MPI of this program knows of the processes that there are, if it has found
/// `ranks` of them.
///
/// **Errors**: [`Error::OtherMpi`].
#[cfg(feature = "mpi")]
pub(super) fn must_have_joined(ranks: usize) -> Result<(), Error> {
    match started() {
        Some(processes) if processes > 1 && ranks == 1 => Err(Error::OtherMpi { processes }),
        _ => Ok(()),
    }
}
