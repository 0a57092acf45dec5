//! What can go wrong when a trace is written or read.

use std::io;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a trace was not written, or could not be read at all. What is wrong
/// *inside* a trace that is checked is a [`Finding`](crate::paraver::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be created, written, renamed or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The stem of a trace must be a plain file name.
    #[error("`{stem}` is no file name that a trace can have")]
    Stem {
        /// What was given.
        stem: String,
    },
    /// A trace needs at least one rank and one worker.
    #[error("a trace of {ranks} ranks and {workers} workers has no threads")]
    NoThreads {
        /// Ranks given.
        ranks: u32,
        /// Workers given.
        workers: u32,
    },
    /// Every rank has a row for every worker, and Paraver numbers rows with 16
    /// bits.
    #[error("{ranks} ranks x {workers} workers are {threads} threads; Paraver takes {limit}")]
    TooManyThreads {
        /// Ranks given.
        ranks: u32,
        /// Workers given.
        workers: u32,
        /// Their product.
        threads: u64,
        /// The most that Paraver takes.
        limit: u64,
    },
    /// An event names a rank that the trace does not have.
    #[error("worker {worker} recorded rank {rank} at {time_ns} ns; the trace has {ranks} ranks")]
    RankOutOfRange {
        /// The rank in the event.
        rank: u32,
        /// Ranks of the trace.
        ranks: u32,
        /// Who recorded it.
        worker: u32,
        /// When.
        time_ns: u64,
    },
    /// A stream belongs to a worker that the trace does not have.
    #[error("there are records of worker {worker}; the trace has {workers} workers")]
    WorkerOutOfRange {
        /// The worker of the stream.
        worker: u32,
        /// Workers of the trace.
        workers: u32,
    },
    /// Paraver keeps times as doubles. A time beyond 104 days is hardly
    /// relative to the start of the run.
    #[error("time {time_ns} ns exceeds {limit} ns: times count from the start of the run")]
    TimeOutOfRange {
        /// The time.
        time_ns: u64,
        /// The last that is exact.
        limit: u64,
    },
}

impl Error {
    /// For `map_err` on the file at `path`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
