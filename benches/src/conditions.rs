//! Conditions of a measurement: the machine, and the settings of runtimes on it.

use talpf::Settings;
use talpf_runtime::{Config, cores};
use talpf_traces::counted;

/// Returns the model of the processor and the number of cores that this process may use.
pub(crate) fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {}", counted(cores(), "core"))
}

/// Returns the configuration that the environment sets, with `workers` workers.
///
/// **Errors**: invalid settings in the environment, or in the file that the environment names.
pub(crate) fn runtime(workers: usize) -> Result<Config, talpf::Error> {
    Ok(Config { workers, ..Settings::load(None)?.runtime()? })
}
