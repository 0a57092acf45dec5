//! What an episode finds wrong.

use std::fmt;

/// What a task says that was planned to fail.
pub(super) const PLANNED: &str = "planned to fail";

/// The result is not that of the oracle, or a crate refused something.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<talpf_runtime::Error> for Wrong {
    fn from(error: talpf_runtime::Error) -> Self {
        Wrong(error.to_string())
    }
}

impl From<talpf::Error> for Wrong {
    fn from(error: talpf::Error) -> Self {
        Wrong(error.to_string())
    }
}

impl From<tampi_shim::Error> for Wrong {
    fn from(error: tampi_shim::Error) -> Self {
        Wrong(error.to_string())
    }
}

/// Compares numbers with those of the oracle.
pub(super) fn compare(
    what: impl fmt::Display,
    found: &[u64],
    expected: &[u64],
) -> Result<(), Wrong> {
    let differs = |(found, expected): (&u64, &u64)| found != expected;
    match found.iter().zip(expected).position(differs) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(Wrong(format!("{what}: {} elements", found.len()))),
        Some(at) => {
            let (found, expected) = (found[at], expected[at]);
            Err(Wrong(format!("{what}, element {at}: {found:#x} instead of {expected:#x}")))
        }
    }
}
