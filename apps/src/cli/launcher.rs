//! Number of processes that a launcher has started.

use std::env;

use talpf_apps::Error;
use talpf_apps::run::Launched;

/// Environment variables in which MPICH, Open MPI and related launchers set the number of
/// processes.
const VARIABLES: [&str; 3] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"];

/// Returns the number that `mpirun` has started.
fn started() -> Option<usize> {
    VARIABLES.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}

/// Checks that this is the only process, for commands with all ranks in one process.
///
/// **Errors**: [`Error::Processes`]; [`Error::Launch`].
pub(super) fn must_be_alone() -> Result<(), Error> {
    if let Some(launched) = Launched::from_environment()? {
        let processes = launched.membership().processes as usize;
        return Err(Error::Processes { launcher: "talpf launch", transport: "auto", processes });
    }
    match started() {
        Some(processes) if processes > 1 => {
            Err(Error::Processes { launcher: "mpirun", transport: "mpi", processes })
        }
        _ => Ok(()),
    }
}

/// Checks that the MPI of this program, which has found `ranks` processes, has found all of them.
///
/// **Errors**: [`Error::OtherMpi`].
#[cfg(feature = "mpi")]
pub(super) fn must_have_joined(ranks: usize) -> Result<(), Error> {
    match started() {
        Some(processes) if processes > 1 && ranks == 1 => Err(Error::OtherMpi { processes }),
        _ => Ok(()),
    }
}
