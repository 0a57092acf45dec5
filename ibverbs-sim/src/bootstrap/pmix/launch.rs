//! A process that a launcher with PMIx has started, as the environment and the launcher say.

use std::{fs, time::Duration};

use super::{
    library::{Failure, Library},
    session::Session,
};
use crate::bootstrap::{
    BootstrapError,
    environment::{Variables, another_says, described, number, variable, was_started_with, wrong},
};

/// Variables of PMIx.
const PROCESS: &str = "PMIX_RANK";
const JOB: &str = "PMIX_NAMESPACE";
/// Beginning of the names of variables with the address of the launcher, one for each version of the protocol.
const SERVER: &str = "PMIX_SERVER_URI";
/// Variables of PMI, and of Open MPI, that say which launches are none of this kind.
const DESCRIPTOR_OF_PMI: &str = "PMI_FD";
const SIZE_OF_OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";

/// A process that a launcher with PMIx has started, one of several, and its connection to the launcher.
#[derive(Debug)]
pub struct PmixLaunch {
    /// Number of the process, from 0.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// Name of the job.
    pub(super) job: String,
    pub(super) session: Session,
}

/// Description of a process by the environment.
#[derive(Debug, PartialEq, Eq)]
struct Description {
    process: u32,
    job: String,
    /// The variables and their values.
    text: String,
}

impl PmixLaunch {
    /// Returns what a launcher has made of this process, which it asks; `None` if it is the only one, or if
    /// no such launcher has started it. One that a launcher with PMI has started belongs to
    /// [`PmiLaunch`](crate::bootstrap::PmiLaunch). A child of a process that has opened the library inherits
    /// the variables, and is none of the processes of the launcher.
    ///
    /// The launcher has `timeout` for each answer, and so have processes at a fence.
    ///
    /// **Errors**: [`BootstrapError::Environment`] if variables are missing, make no sense, or contradict
    /// each other or the launcher; if the library is missing or lacks a function; if the launcher does not
    /// answer.
    pub fn from_environment(timeout: Duration) -> Result<Option<Self>, BootstrapError> {
        let description = from_variables(server().as_deref(), &variable)?;
        let Some(description) = description else { return Ok(None) };
        if is_child_of_process() {
            return Ok(None);
        }
        let launch = Self::ask(&description, timeout)?;
        Ok(Some(launch).filter(|launch| launch.processes > 1))
    }

    /// Connects this process to the launcher, and compares what both say.
    fn ask(description: &Description, timeout: Duration) -> Result<Self, BootstrapError> {
        let text = &description.text;
        let failed =
            |reason: String| BootstrapError::Environment { text: format!("{text}: {reason}") };
        let unanswered = |failure: Failure| failed(failure.to_string());
        let session = Library::open().and_then(|library| Session::start(library, timeout));
        let mut session = session.map_err(failed)?;
        let process = session.initialize().map_err(unanswered)?;
        let (job, number) = (process.job(), process.number);
        if (&job, number) != (&description.job, description.process) {
            return Err(failed(format!("the launcher says process {number} of {job:?}")));
        }
        let asked = session.call("PMIx_Get", move |library| library.processes(&process, timeout));
        let processes = asked.map_err(unanswered)?;
        let process = process.number;
        if process >= processes {
            return Err(failed(format!("the launcher says that there are {processes} processes")));
        }
        if let Some((_, other)) = another_says(&variable, process, processes) {
            return Err(failed(format!(
                "the launcher says process {process} of {processes}, but {other}"
            )));
        }
        Ok(Self { process, processes, job, session })
    }
}

/// Returns the name of the first variable with the address of a launcher.
fn server() -> Option<String> {
    let names = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let names = names.filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(SERVER)).max()
}

fn from_variables(
    server: Option<&str>,
    variables: Variables<'_>,
) -> Result<Option<Description>, BootstrapError> {
    let has = |name: &str| variables(name).is_some();
    if (!has(PROCESS) && !has(JOB)) || has(DESCRIPTOR_OF_PMI) {
        return Ok(None);
    }
    let server_or_prefix = server.unwrap_or("PMIX_SERVER_URI*");
    let (set, missing): (Vec<_>, Vec<_>) =
        [PROCESS, JOB, server_or_prefix].into_iter().partition(|name| has(name));
    let set: Vec<_> = set.into_iter().map(|name| described(name, variables)).collect();
    let text = match set.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => set.concat(),
    };
    if !missing.is_empty() {
        return wrong(format!("{text}, without {}", missing.join(" and ")));
    }
    let process = number(PROCESS, variables)?;
    if process == 0 && variables(SIZE_OF_OPEN_MPI).is_some_and(|size| size == *"1") {
        return Ok(None);
    }
    let job = variables(JOB).unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(Description { process, job, text }))
}

/// Returns `true` if an ancestor of this process was started as the same process of the launcher, and has
/// opened the library. A shell between the launcher and this process has not.
fn is_child_of_process() -> bool {
    let mut ancestor = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    while ancestor > 1 && was_started_with(ancestor, &[PROCESS, JOB]) {
        let maps = fs::read_to_string(format!("/proc/{ancestor}/maps")).unwrap_or_default();
        if maps.lines().any(|line| line.contains("/libpmix.so")) {
            return true;
        }
        ancestor = parent_of(ancestor).unwrap_or(0);
    }
    false
}

fn parent_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn described_by(variables: &[(&str, &str)]) -> Result<Option<Description>, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let server = variables.iter().map(|(name, _)| *name).find(|name| name.starts_with(SERVER));
        from_variables(server, &value).map_err(|error| error.to_string())
    }

    const WHOLE: [(&str, &str); 3] =
        [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "job"), ("PMIX_SERVER_URI41", "a;b")];

    #[test]
    fn a_process_is_what_all_variables_say() {
        let text = "PMIX_RANK is \"1\", PMIX_NAMESPACE is \"job\" and PMIX_SERVER_URI41 is \"a;b\"";
        let expected = Description { process: 1, job: "job".to_owned(), text: text.to_owned() };
        assert_eq!(described_by(&WHOLE), Ok(Some(expected)));
        assert_eq!(described_by(&[]), Ok(None));
        // Tools have the address of a server, and are no processes of it.
        assert_eq!(described_by(&WHOLE[2..]), Ok(None));
        assert_eq!(described_by(&[&WHOLE[..], &[("PMI_FD", "7")]].concat()), Ok(None));
        let alone = [&[("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")], &WHOLE[1..]].concat();
        assert_eq!(described_by(&alone), Ok(None));
    }

    #[test]
    fn half_an_environment_is_named_with_its_values() {
        for (variables, expected) in [
            (&WHOLE[..1], "PMIX_RANK is \"1\", without PMIX_NAMESPACE and PMIX_SERVER_URI*"),
            (
                &WHOLE[..2],
                "PMIX_RANK is \"1\" and PMIX_NAMESPACE is \"job\", without PMIX_SERVER_URI*",
            ),
            (&WHOLE[1..2], "PMIX_NAMESPACE is \"job\", without PMIX_RANK and PMIX_SERVER_URI*"),
            (
                &[("PMIX_RANK", "one"), WHOLE[1], WHOLE[2]],
                "PMIX_RANK is \"one\", expected a number",
            ),
            (&[("PMIX_RANK", "-1"), WHOLE[1], WHOLE[2]], "PMIX_RANK is \"-1\", expected a number"),
        ] {
            assert_eq!(described_by(variables).unwrap_err(), expected);
        }
    }
}
