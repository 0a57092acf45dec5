//! Errors of writing and reading a trace.

use std::io;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a trace was not written or could not be read. A flaw *inside* a checked trace is a
/// [`Finding`](crate::paraver::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be created, written, renamed or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A line of a trace is one that Paraver would refuse or misread.
    #[error("{}:{line}: {text}", path.display())]
    BadRecord {
        /// Path of the trace.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Description of what is wrong with it.
        text: String,
    },
    /// A picture would show no time.
    #[error("there is nothing between {from_ns} ns and {to_ns} ns; the trace ends at {end_ns} ns")]
    NoTime {
        /// First time to be shown.
        from_ns: u64,
        /// Time after the last to be shown.
        to_ns: u64,
        /// Length of the trace.
        end_ns: u64,
    },
    /// A picture would show no rank.
    #[error("there is no rank from {from} to before {to}; the trace has ranks 0 to before {ranks}")]
    NoRanks {
        /// First rank to be shown.
        from: u32,
        /// Rank after the last to be shown.
        to: u32,
        /// Number of ranks of the trace.
        ranks: u32,
    },
    /// No row of a trace shows a task.
    #[error("{} has no tasks: no row shows a task id (type 10) with a task type (type 11)", path.display())]
    NoTasks {
        /// Path of the trace.
        path: PathBuf,
    },
    /// A number does not fit into the streams of ovni.
    #[error(
        "{} has {what} {number}; those of ovni end at {}", path.display(), u32::MAX
    )]
    OvniNumber {
        /// Path of the trace.
        path: PathBuf,
        /// Meaning of the number.
        what: &'static str,
        /// Number in the trace.
        number: i64,
    },
    /// A task of a rank has changed its type, which ovni does not know.
    #[error(
        "{}: task {task} of rank {rank} has the types {} and {}", path.display(), types[0], types[1]
    )]
    TaskOfTwoTypes {
        /// Path of the trace.
        path: PathBuf,
        /// Rank of the task.
        rank: u32,
        /// Number of the task.
        task: i64,
        /// First and second type.
        types: [u32; 2],
    },
    /// An output has the place of an input.
    #[error("{} is an input, and would be replaced", path.display())]
    SameFile {
        /// Path of the output.
        path: PathBuf,
    },
    /// The name of a new trace has another end than `.prv`.
    #[error("{}: the name of a trace ends in .prv", path.display())]
    NotPrv {
        /// Path of the output.
        path: PathBuf,
    },
    /// Traces to be merged are not of one run: their headers declare other objects.
    #[error("{} has the objects `{found}`, {} `{expected}`", path.display(), first.display())]
    OtherObjects {
        /// Path of the first trace.
        first: PathBuf,
        /// Objects of the first trace.
        expected: String,
        /// Path of the other trace.
        path: PathBuf,
        /// Objects of the other trace.
        found: String,
    },
    /// No trace is to be merged.
    #[error("there is no trace to be merged")]
    NoPieces,
    /// Two traces to be merged both show a row at one time.
    #[error(
        "{} shows row {row} until {until_ns} ns, and {} from {from_ns} ns", first.display(), second.display()
    )]
    RowInTwo {
        /// Path of the trace that shows the row first.
        first: PathBuf,
        /// End of the row there, on the clock of the new trace.
        until_ns: u64,
        /// Path of the other trace.
        second: PathBuf,
        /// Begin of the row there, on the same clock.
        from_ns: u64,
        /// Application, task and thread.
        row: String,
    },
    /// A file is none that a recorder has written during a run.
    #[error("{} has no records of a run", path.display())]
    NotSpill {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file of records has another version of the format.
    #[error("{} has version {version} of its format, expected {expected}", path.display())]
    SpillVersion {
        /// Path of the file.
        path: PathBuf,
        /// Version of the file.
        version: u32,
        /// Version that is read.
        expected: u32,
    },
    /// More pieces of records than the writer can number.
    #[error("there are {chunks} pieces of records, expected at most {limit}")]
    TooManyChunks {
        /// Number of pieces.
        chunks: usize,
        /// Largest number.
        limit: usize,
    },
    /// The stem of a trace is not a plain file name.
    #[error("`{stem}` is not a plain file name")]
    Stem {
        /// Requested stem.
        stem: String,
    },
    /// The trace has no ranks or no workers.
    #[error("a trace of {ranks} ranks and {workers} workers has no threads")]
    NoThreads {
        /// Requested number of ranks.
        ranks: u32,
        /// Requested number of workers.
        workers: u32,
    },
    /// Too many rows: every rank has a row for every worker, and Paraver numbers rows with 16 bits.
    #[error("{ranks} ranks x {workers} workers are {threads} threads; Paraver takes {limit}")]
    TooManyThreads {
        /// Requested number of ranks.
        ranks: u32,
        /// Requested number of workers.
        workers: u32,
        /// Product of both numbers.
        threads: u64,
        /// Largest number of threads that Paraver accepts.
        limit: u64,
    },
    /// An event names a rank that the trace does not have.
    #[error("worker {worker} recorded rank {rank} at {time_ns} ns; the trace has {ranks} ranks")]
    RankOutOfRange {
        /// Rank in the event.
        rank: u32,
        /// Number of ranks of the trace.
        ranks: u32,
        /// Worker that recorded the event.
        worker: u32,
        /// Time of the event.
        time_ns: u64,
    },
    /// An event names a rank of another process as its own.
    #[error("worker {worker} recorded rank {rank} at {time_ns} ns, which is in another process")]
    RankOfOtherProcess {
        /// Rank in the event.
        rank: u32,
        /// Worker that recorded the event.
        worker: u32,
        /// Time of the event.
        time_ns: u64,
    },
    /// A stream belongs to a worker that the trace does not have.
    #[error("there are records of worker {worker}; the trace has {workers} workers")]
    WorkerOutOfRange {
        /// Worker of the stream.
        worker: u32,
        /// Number of workers of the trace.
        workers: u32,
    },
    /// A time is too large: Paraver keeps times as doubles, which are exact up to 104 days. Times
    /// count from the start of the run.
    #[error("time {time_ns} ns exceeds {limit} ns: times count from the start of the run")]
    TimeOutOfRange {
        /// Time of the record.
        time_ns: u64,
        /// Largest exact time.
        limit: u64,
    },
}

impl Error {
    /// Returns a function for `map_err` that adds the path of the file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
