//! The machine that figures were measured on, and how runtimes are set up on it.

use talpf::Settings;
use talpf_runtime::{Config, cores};
use talpf_traces::counted;

/// The processor and how many cores of it this process may use.
pub(crate) fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {}", counted(cores(), "core"))
}

/// A runtime as the environment sets it, but for its workers.
///
/// **Errors**: what the environment says, or the file that it names, is not allowed.
pub(crate) fn runtime(workers: usize) -> Result<Config, talpf::Error> {
    Ok(Config { workers, ..Settings::load(None)?.runtime()? })
}
