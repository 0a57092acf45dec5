//! Log of the runtime, on the error stream.

use std::env;

use talpf_apps::Error;

/// Name of the environment variable in place of the option.
const VARIABLE: &str = "TALPF_LOG";

/// Prints what passes `filter`, or the one in the environment if there is none; nothing without either.
///
/// **Errors**: a filter that is none.
pub(super) fn install(filter: Option<&str>) -> Result<(), Error> {
    if let Some(filter) = filter {
        return print("--log", filter);
    }
    let variable = env::var_os(VARIABLE).unwrap_or_default();
    match variable.to_str() {
        Some("") => Ok(()),
        Some(filter) => print(VARIABLE, filter),
        None => {
            let filter = variable.to_string_lossy().into_owned();
            let reason = "it is not UTF-8".to_owned();
            Err(Error::LogFilter { name: VARIABLE, filter, reason })
        }
    }
}

#[cfg(feature = "tracing")]
fn print(name: &'static str, filter: &str) -> Result<(), Error> {
    use tracing_subscriber::EnvFilter;

    let parsed = EnvFilter::builder().parse(filter);
    let parsed = parsed.map_err(|reason| Error::LogFilter {
        name,
        filter: filter.to_owned(),
        reason: reason.to_string(),
    })?;
    let writer = std::io::stderr;
    // Of several commands in one process the first one has set it.
    let _ = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(writer).try_init();
    Ok(())
}

#[cfg(not(feature = "tracing"))]
fn print(name: &'static str, filter: &str) -> Result<(), Error> {
    let reason = "this build has no feature `tracing`".to_owned();
    Err(Error::LogFilter { name, filter: filter.to_owned(), reason })
}
