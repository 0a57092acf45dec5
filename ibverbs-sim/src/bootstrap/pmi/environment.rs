#![allow(unsafe_code, reason = "a descriptor comes as a number of the environment")]
//! The environment of a process that a launcher with PMI has started.

use std::{
    fs, io,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::bootstrap::{
    BootstrapError,
    environment::{
        Number, Variables, another_says, described, number, variable, was_started_with, wrong,
    },
};

/// Variables of PMI.
const DESCRIPTOR: &str = "PMI_FD";
const PROCESS: &str = "PMI_RANK";
const SIZE: &str = "PMI_SIZE";

/// A process that a launcher with PMI has started, one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmiLaunch {
    /// Number of the process, from 0.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// Descriptor by which the process reaches the launcher.
    descriptor: RawFd,
}

impl PmiLaunch {
    /// Returns what a launcher has made of this process; `None` if it is the only one, or if no such
    /// launcher has started it. A child of a process that has joined the others inherits the variables,
    /// and is none of them. A launcher that speaks PMIx only is that of a
    /// [`PmixLaunch`](crate::bootstrap::PmixLaunch).
    ///
    /// **Errors**: [`BootstrapError::Environment`] if variables are missing, make no sense, or contradict
    /// each other.
    pub fn from_environment() -> Result<Option<Self>, BootstrapError> {
        let launch = Self::from_variables(&variable)?;
        let Some(launch) = launch else { return Ok(None) };
        if is_open(launch.descriptor) {
            return Ok(Some(launch));
        }
        if is_child_of_process() {
            return Ok(None);
        }
        wrong(format!("{DESCRIPTOR} is \"{}\", which is no open socket", launch.descriptor))
    }

    fn from_variables(variables: Variables<'_>) -> Result<Option<Self>, BootstrapError> {
        let names = [DESCRIPTOR, PROCESS, SIZE];
        let (set, missing): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| variables(name).is_some());
        if set.is_empty() {
            return Ok(None);
        }
        let is_alone = variables(SIZE).is_some_and(|size| size.to_string_lossy().trim() == "1");
        if is_alone && variables(DESCRIPTOR).is_none() && variables(PROCESS).is_none() {
            return Ok(None);
        }
        if !missing.is_empty() {
            let set = set.into_iter().map(|name| described(name, variables));
            let set = set.collect::<Vec<_>>().join(" and ");
            let (missing, port) = (missing.join(" and "), described("PMI_PORT", variables));
            return wrong(if variables("PMI_PORT").is_some() {
                format!("{set}, and {port}: only launchers that set {DESCRIPTOR} are supported")
            } else {
                format!("{set}, without {missing}")
            });
        }
        let (descriptor, process, processes) =
            (number(DESCRIPTOR, variables)?, number(PROCESS, variables)?, number(SIZE, variables)?);
        if process >= processes {
            let (number, size) = (described(PROCESS, variables), described(SIZE, variables));
            return wrong(format!("{number}, and {size}"));
        }
        if let Some((of, other)) = another_says(variables, process, processes) {
            let own = described(if of == Number::Process { PROCESS } else { SIZE }, variables);
            return wrong(format!("{own}, but {other}: which launcher has started this?"));
        }
        let launch = Self { process, processes, descriptor: descriptor as RawFd };
        Ok(Some(launch).filter(|_| processes > 1))
    }

    /// Takes the descriptor, which no child inherits from now on.
    pub(super) fn take_descriptor(self) -> io::Result<OwnedFd> {
        if !is_open(self.descriptor) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: it is open, and the launcher has opened it for nobody but this.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.descriptor) };
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        descriptor.try_clone_to_owned()
    }
}

/// Returns `true` if a descriptor is an open socket, as those of launchers are.
fn is_open(descriptor: RawFd) -> bool {
    let target = fs::read_link(format!("/proc/self/fd/{descriptor}"));
    target.is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
}

/// Returns `true` if the parent of this process has the same variables of PMI.
fn is_child_of_process() -> bool {
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    was_started_with(parent, &[DESCRIPTOR, PROCESS, SIZE])
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Result<Option<PmiLaunch>, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        PmiLaunch::from_variables(&value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_process_is_what_all_three_variables_say() {
        let of_two = [("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        let expected = PmiLaunch { process: 1, processes: 2, descriptor: 9 };
        assert_eq!(launch(&of_two), Ok(Some(expected)));
        let agreeing = [of_two.as_slice(), &[("PMIX_RANK", "1"), ("MV2_COMM_WORLD_SIZE", "2")]];
        assert_eq!(launch(&agreeing.concat()), Ok(Some(expected)));
        assert_eq!(launch(&[("PMI_FD", "9"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]), Ok(None));
        assert_eq!(launch(&[]), Ok(None));
        assert_eq!(launch(&[("PMI_SIZE", "1")]), Ok(None));
        assert_eq!(launch(&[("PMIX_RANK", "0")]), Ok(None));
    }

    #[test]
    fn half_an_environment_is_named_with_its_values() {
        for (variables, expected) in [
            (&[("PMI_RANK", "1")][..], "PMI_RANK is \"1\", without PMI_FD and PMI_SIZE"),
            (&[("PMI_FD", "5")], "PMI_FD is \"5\", without PMI_RANK and PMI_SIZE"),
            (
                &[("PMI_RANK", "0"), ("PMI_SIZE", "2")],
                "PMI_RANK is \"0\" and PMI_SIZE is \"2\", without PMI_FD",
            ),
            (
                &[("PMI_PORT", "h:1"), ("PMI_SIZE", "2")],
                "PMI_SIZE is \"2\", and PMI_PORT is \"h:1\": only launchers that set PMI_FD",
            ),
            (
                &[("PMI_FD", "5"), ("PMI_RANK", "one"), ("PMI_SIZE", "2")],
                "PMI_RANK is \"one\", expected a number",
            ),
            (
                &[("PMI_FD", "-1"), ("PMI_RANK", "0"), ("PMI_SIZE", "2")],
                "PMI_FD is \"-1\", expected a number",
            ),
            (
                &[("PMI_FD", "5"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")],
                "PMI_RANK is \"2\", and PMI_SIZE is \"2\"",
            ),
            (
                &[("PMI_FD", "5"), ("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMIX_RANK", "1")],
                "PMI_RANK is \"0\", but PMIX_RANK is \"1\"",
            ),
            (
                &[
                    ("PMI_FD", "5"),
                    ("PMI_RANK", "0"),
                    ("PMI_SIZE", "2"),
                    ("OMPI_COMM_WORLD_SIZE", "3"),
                ],
                "PMI_SIZE is \"2\", but OMPI_COMM_WORLD_SIZE is \"3\"",
            ),
        ] {
            let error = launch(variables).unwrap_err();
            assert!(error.contains(expected), "{variables:?}: {error}");
        }
    }
}
