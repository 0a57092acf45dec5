//! Signals that end a run.

use std::ffi::c_int;
use std::fs;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Returns the signals that end a run: SIGINT, SIGTERM, and SIGHUP unless this process was started to
/// ignore it, as by `nohup`.
pub(super) fn ending_signals() -> Vec<c_int> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = (!ignores(&status, SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

/// Returns `true` if a process ignores a signal, by its status in `/proc`.
fn ignores(status: &str, signal: c_int) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
