//! Processes that a launcher has started, and their number.

use std::env;
use std::time::Duration;

use ibverbs_sim::bootstrap::{BootstrapError, PmiLaunch, PmixLaunch};
use talpf_apps::Error;
use talpf_apps::run::processes::Meeting;
use talpf_apps::run::{Launched, Membership};

/// Environment variables in which Open MPI and other launchers set the number of processes.
const VARIABLES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"];
/// Environment variables in which SLURM sets the number of a task, and that of all tasks of its step.
const TASK_OF_SLURM: &str = "SLURM_PROCID";
const TASKS_OF_SLURM: &str = "SLURM_STEP_NUM_TASKS";
/// Environment variable of launchers with PMI.
#[cfg(feature = "mpi")]
const PMI: &str = "PMI_SIZE";

/// Returns the number that `mpirun` has started.
fn started(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}

/// Returns the way in which this process finds the others that a launcher has started with it; `None` if it
/// is alone. Of launchers that are not ours, processes have `timeout` to meet.
///
/// **Errors**: [`Error::Launch`]; [`Error::Meet`] if the environment of a launcher makes no sense, or
/// launchers disagree.
pub(super) fn meeting(timeout: Duration) -> Result<Option<Meeting>, Error> {
    let launched = Launched::from_environment()?.map(|launched| launched.membership().clone());
    let pmi = PmiLaunch::from_environment().map_err(Error::Meet)?;
    let other = match pmi {
        Some(launch) => Some(Meeting::Pmi { launch, timeout }),
        None => PmixLaunch::from_environment(timeout).map_err(Error::Meet)?.map(Meeting::Pmix),
    };
    let Some(member) = launched else { return Ok(other) };
    match other {
        Some(other) if other.numbers() != (member.process, member.processes) => {
            Err(of_two_launchers(&member, &other))
        }
        _ => Ok(Some(Meeting::Launched(member))),
    }
}

/// Returns the error of a process to which two launchers have given numbers that disagree.
fn of_two_launchers(member: &Membership, other: &Meeting) -> Error {
    let Membership { process, processes, .. } = *member;
    let (number, size) = other.numbers();
    let says = match other {
        Meeting::Pmix(_) => format!("PMIX_RANK is \"{number}\" of {size} processes"),
        _ => format!("PMI_RANK is \"{number}\" and PMI_SIZE is \"{size}\""),
    };
    let text = format!(
        "TALPF_LAUNCH is of process {process} of {processes}, but {says}: which launcher has started \
         this?"
    );
    Error::Meet(BootstrapError::Environment { text })
}

/// Checks that this is the only process, for commands with all ranks in one process, given the way in
/// which it finds others.
///
/// **Errors**: [`Error::Processes`]; [`Error::TasksOfSlurm`].
pub(super) fn must_be_alone(meeting: Option<&Meeting>) -> Result<(), Error> {
    let processes = meeting.map(|meeting| meeting.numbers().1 as usize);
    if let (Some(Meeting::Launched(_)), Some(processes)) = (meeting, processes) {
        return Err(Error::Processes { launcher: "talpf launch", transport: "auto", processes });
    }
    let is_task = processes.is_none() && env::var_os(TASK_OF_SLURM).is_some();
    if let Some(tasks) = started(&[TASKS_OF_SLURM]).filter(|tasks| is_task && *tasks > 1) {
        return Err(Error::TasksOfSlurm { tasks });
    }
    match processes.or_else(|| started(&VARIABLES)) {
        Some(processes) if processes > 1 => {
            Err(Error::Processes { launcher: "mpirun", transport: "mpi", processes })
        }
        _ => Ok(()),
    }
}

/// Checks that the MPI of this program, which has found `joined` processes, has found all of them.
///
/// **Errors**: [`Error::OtherMpi`].
#[cfg(feature = "mpi")]
pub(super) fn must_have_joined(joined: usize) -> Result<(), Error> {
    match started(&[PMI]).or_else(|| started(&VARIABLES)) {
        Some(processes) if processes > 1 && joined == 1 => Err(Error::OtherMpi { processes }),
        _ => Ok(()),
    }
}
