//! Failure of an episode.

use std::fmt;

/// Message of a task that was planned to fail.
pub(super) const PLANNED: &str = "planned to fail";

/// Failure of an episode: a result that differs from the model's, or an error of a crate.
#[derive(Debug)]
pub(super) struct EpisodeError(pub(super) String);

impl fmt::Display for EpisodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<talpf_runtime::Error> for EpisodeError {
    fn from(error: talpf_runtime::Error) -> Self {
        EpisodeError(error.to_string())
    }
}

impl From<talpf::Error> for EpisodeError {
    fn from(error: talpf::Error) -> Self {
        EpisodeError(error.to_string())
    }
}

impl From<tampi_shim::Error> for EpisodeError {
    fn from(error: tampi_shim::Error) -> Self {
        EpisodeError(error.to_string())
    }
}

/// Compares numbers with those of the model.
pub(super) fn compare(
    what: impl fmt::Display,
    found: &[u64],
    expected: &[u64],
) -> Result<(), EpisodeError> {
    let differs = |(found, expected): (&u64, &u64)| found != expected;
    match found.iter().zip(expected).position(differs) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(EpisodeError(format!("{what}: {} elements", found.len()))),
        Some(at) => {
            let (found, expected) = (found[at], expected[at]);
            Err(EpisodeError(format!("{what}, element {at}: {found:#x} instead of {expected:#x}")))
        }
    }
}
