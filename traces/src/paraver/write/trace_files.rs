//! Description of a run beside its records, and the files of its trace.

use std::path::PathBuf;

/// Description of a run, beside the records.
#[derive(Clone, Debug, Default)]
pub struct TraceInfo {
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Number of workers that all ranks share, or that each rank has.
    pub workers: u32,
    /// `true` if each rank has workers of its own. The streams are numbered rank by rank then, and
    /// have slices of their rank alone.
    pub own_workers: bool,
    /// Length of the run; the trace is longer if a record is later.
    pub end_ns: u64,
    /// Date and time of the start, as any text.
    pub started: String,
    /// Lines of text to keep in the trace: program, version, host, arguments.
    pub comments: Vec<String>,
}

/// Files of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFiles {
    /// Path of the records.
    pub prv: PathBuf,
    /// Path of the labels of states and events.
    pub pcf: PathBuf,
    /// Path of the names of ranks, threads and cpus.
    pub row: PathBuf,
}
