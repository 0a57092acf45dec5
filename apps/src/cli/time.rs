//! Times as arguments.

use std::time::Duration;

/// Parses a time with its unit, in nanoseconds.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let time: Duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_nanos()).map_err(|_| "a trace has no such time".to_owned())
}
