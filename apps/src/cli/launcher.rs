//! Number of processes that a launcher has started.

use std::env;

use ibverbs_sim::bootstrap::PmiLaunch;
use talpf_apps::Error;
use talpf_apps::run::Launched;

/// Environment variables in which Open MPI and other launchers without PMI set the number of
/// processes.
const VARIABLES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"];
/// Environment variable of launchers with PMI.
#[cfg(feature = "mpi")]
const PMI: &str = "PMI_SIZE";

/// Returns the number that `mpirun` has started.
fn started(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}

/// Checks that this is the only process, for commands with all ranks in one process.
///
/// **Errors**: [`Error::Processes`]; [`Error::Launch`]; [`Error::Meet`] if the environment of a launcher
/// makes no sense.
pub(super) fn must_be_alone() -> Result<(), Error> {
    if let Some(launched) = Launched::from_environment()? {
        let processes = launched.membership().processes as usize;
        return Err(Error::Processes { launcher: "talpf launch", transport: "auto", processes });
    }
    let pmi = PmiLaunch::from_environment().map_err(Error::Meet)?;
    let pmi = pmi.map(|launch| launch.processes as usize);
    match pmi.or_else(|| started(&VARIABLES)) {
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
    match started(&[PMI]).or_else(|| started(&VARIABLES)) {
        Some(processes) if processes > 1 && ranks == 1 => Err(Error::OtherMpi { processes }),
        _ => Ok(()),
    }
}
