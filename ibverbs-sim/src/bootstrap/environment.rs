//! Variables by which launchers describe a process.

use std::{ffi::OsString, fs};

use super::BootstrapError;

/// Variables with the number of the process and that of all, by launcher. Several may be set at once, by
/// parts of the same launcher.
const LAUNCHERS: [(&str, Option<&str>); 3] = [
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("MV2_COMM_WORLD_RANK", Some("MV2_COMM_WORLD_SIZE")),
    ("PMIX_RANK", None),
];

/// Values of the environment, by name.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Numbers that a launcher gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Process,
    Processes,
}

/// Returns a variable of this process that is set, and not empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

pub(super) fn described(name: &str, variables: Variables<'_>) -> String {
    format!("{name} is {:?}", variables(name).unwrap_or_default().to_string_lossy())
}

pub(super) fn wrong<T>(text: String) -> Result<T, BootstrapError> {
    Err(BootstrapError::Environment { text })
}

/// Returns the number that a variable has.
pub(super) fn number(name: &str, variables: Variables<'_>) -> Result<u32, BootstrapError> {
    let value = variables(name).unwrap_or_default();
    let number = value.to_str().and_then(|text| text.trim().parse::<u32>().ok());
    match number.filter(|number| i32::try_from(*number).is_ok()) {
        Some(number) => Ok(number),
        None => wrong(format!("{}, expected a number", described(name, variables))),
    }
}

/// Returns the first variable of a launcher that gives other numbers than these, and its value.
pub(super) fn another_says(
    variables: Variables<'_>,
    process: u32,
    processes: u32,
) -> Option<(Number, String)> {
    for (number, all) in LAUNCHERS {
        let pairs = [(Some(number), Number::Process, process), (all, Number::Processes, processes)];
        for (name, of, own) in pairs {
            let found = name.and_then(|name| Some((name, variables(name)?)));
            let Some((name, other)) = found else { continue };
            if other.to_string_lossy().trim() != own.to_string() {
                return Some((of, described(name, variables)));
            }
        }
    }
    None
}

/// Returns `true` if a process was started with the values that this one has of variables.
pub(super) fn was_started_with(process: i32, names: &[&str]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{process}/environ")) else { return false };
    names.iter().all(|name| {
        let own = std::env::var(name).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == format!("{name}={own}").as_bytes())
    })
}
