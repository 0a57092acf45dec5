//! Everything that can go wrong in an application.

use std::io;
use std::path::PathBuf;

use talpf_traces::counted;

use crate::run::Variant;

/// Why an application could not start, finish or save its result. The text is one line that
/// names the offending value and the limit it broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number given by the caller lies outside its limits.
    #[error("{name} is {value}, expected {least} to {most}")]
    OutOfRange {
        /// What the number means.
        name: &'static str,
        /// The number given.
        value: usize,
        /// The smallest number allowed.
        least: usize,
        /// The largest number allowed.
        most: usize,
    },

    /// The application has no such variant.
    #[error("{app} has no variant {variant}")]
    NoSuchVariant {
        /// The application.
        app: &'static str,
        /// The variant asked for.
        variant: &'static str,
    },

    /// The variant cannot replay its graph.
    #[error("{app} cannot replay {variant}{}", but(replayed))]
    NoReplay {
        /// The application.
        app: &'static str,
        /// The variant asked for.
        variant: &'static str,
        /// Those that can.
        replayed: &'static [Variant],
    },

    /// There are more ranks than parts to hand out.
    #[error("ranks is {ranks}, expected at most {most}, the number of {parts}")]
    MoreRanks {
        /// Ranks asked for.
        ranks: usize,
        /// Parts of the problem.
        most: usize,
        /// What the parts are.
        parts: &'static str,
    },

    /// The ranks do not form a square.
    #[error("ranks is {ranks}, expected a square number: 1, 4, 9 and so on")]
    NotSquare {
        /// Ranks asked for.
        ranks: usize,
    },

    /// An input file says something that is not allowed.
    #[error("{file}:{line}: {field} is {value:?}, expected {limit}")]
    Field {
        /// Name of the file.
        file: String,
        /// Line of the value, counted from one.
        line: usize,
        /// Field of the line.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        limit: String,
    },

    /// The data would not fit into memory.
    #[error(
        "the run needs {} MiB{}, available are {} MiB",
        needed >> 20, share(*connections, *ranks), available >> 20
    )]
    Memory {
        /// Bytes the run needs.
        needed: u64,
        /// Those of them that connect its ranks.
        connections: u64,
        /// How many ranks these are.
        ranks: usize,
        /// Bytes the system can give.
        available: u64,
    },

    /// The system refused to start a worker thread.
    #[error("cannot start worker {worker} of {workers}: {source}")]
    Worker {
        /// The worker that could not be started, counted from one.
        worker: usize,
        /// Workers asked for.
        workers: usize,
        /// What the system said.
        source: io::Error,
    },

    /// The system refused to tell of signals.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),

    /// Somebody has ended the run.
    #[error("interrupted")]
    Interrupted,

    /// An input file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// An output file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// One file was named for two outputs.
    #[error("{} is named for two outputs", path.display())]
    SameOutput {
        /// The file.
        path: PathBuf,
    },

    /// The task runtime or its communication failed.
    #[error(transparent)]
    Talpf(#[from] talpf::Error),

    /// The messages between ranks failed.
    #[error(transparent)]
    Tampi(#[from] tampi_shim::Error),

    /// A machine of processes was used twice, or not made in this process.
    #[cfg(feature = "mpi")]
    #[error("MPI runs one program in a process")]
    NotJoined,

    /// The program was built without MPI.
    #[error("this program was built without MPI: build it with `--features mpi`")]
    WithoutMpi,

    /// Every one of several processes would do the same.
    #[error(
        "mpirun has started {processes} processes, and with --transport verbs all ranks are in \
         one: give --transport mpi, or start one process"
    )]
    Processes {
        /// How many were started.
        processes: usize,
    },

    /// The launcher is not that of the MPI of this program.
    #[cfg(feature = "mpi")]
    #[error(
        "mpirun has started {processes} processes, and the MPI of this program finds one: it was \
         built with another MPI than this mpirun is of"
    )]
    OtherMpi {
        /// How many were started.
        processes: usize,
    },

    /// Comparisons have their ranks in one process.
    #[error(
        "compare runs all ranks in one process: measure over MPI with \
         `mpirun -n RANKS talpf APP --transport mpi --json FILE`"
    )]
    ComparedOverMpi,

    /// A variant runs on one machine, not on several processes.
    #[error("variant {variant} has no ranks that could be processes")]
    NoRanks {
        /// The variant asked for.
        variant: &'static str,
    },

    /// An option does not go with another one.
    #[error("{option} is not supported with {with}")]
    NotTogether {
        /// The option.
        option: &'static str,
        /// What it was given with.
        with: &'static str,
    },

    /// A trace cannot be written.
    #[error("cannot write the trace: {0}")]
    WriteTrace(talpf_traces::Error),

    /// A trace cannot be read.
    #[error("cannot read the trace {0}")]
    ReadTrace(talpf_traces::Error),

    /// A file is no Paraver trace at all.
    #[error("{} is no Paraver trace: {reason}", path.display())]
    NoTrace {
        /// The file.
        path: PathBuf,
        /// What is wrong with its beginning.
        reason: String,
    },

    /// A trace breaks rules of its format.
    #[error("{} has {} and {}", path.display(), counted(*errors, "error"), counted(*warnings, "warning"))]
    BadTrace {
        /// The trace.
        path: PathBuf,
        /// What Paraver would refuse or show as nonsense.
        errors: u64,
        /// What Paraver would show less of than was meant.
        warnings: u64,
    },

    /// A result is not the serial result.
    #[error(
        "{variant} differs from serial first at {place}: \
         {found:e} (bits {:016x}) instead of {expected:e} (bits {:016x})",
        found.to_bits(), expected.to_bits()
    )]
    Differs {
        /// The variant under test.
        variant: &'static str,
        /// Where the first number stands that differs.
        place: String,
        /// What it is.
        found: f64,
        /// What it is in the serial result.
        expected: f64,
    },
}

impl From<talpf_runtime::Error> for Error {
    fn from(error: talpf_runtime::Error) -> Self {
        Self::Talpf(error.into())
    }
}

impl Error {
    /// `value` when it lies in `least..=most`, else the error that says so.
    pub(crate) fn check_range(
        name: &'static str,
        value: usize,
        limits: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, Self> {
        if limits.contains(&value) {
            Ok(value)
        } else {
            Err(Self::OutOfRange { name, value, least: *limits.start(), most: *limits.end() })
        }
    }

    /// Whether every one of `ranks` gets one of the `most` parts.
    pub(crate) fn check_ranks(ranks: usize, most: usize, parts: &'static str) -> Result<(), Self> {
        if ranks <= most { Ok(()) } else { Err(Self::MoreRanks { ranks, most, parts }) }
    }
}

/// How much of the memory is for ranks, if that is much.
fn share(connections: u64, ranks: usize) -> String {
    match connections >> 20 {
        0 => String::new(),
        mib => format!(", {mib} MiB of them to connect {} (--ranks)", counted(ranks, "rank")),
    }
}

/// That there are only these, if there are any.
fn but(variants: &[Variant]) -> String {
    let names: Vec<_> = variants.iter().map(|variant| variant.name()).collect();
    if names.is_empty() { String::new() } else { format!(", only {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_shows_values_and_bits() {
        let place = "row 3, column 5".to_owned();
        let error = Error::Differs { variant: "fork-join", place, found: 0.5, expected: -0.0 };
        assert_eq!(
            error.to_string(),
            "fork-join differs from serial first at row 3, column 5: 5e-1 (bits \
             3fe0000000000000) instead of -0e0 (bits 8000000000000000)"
        );
    }
}
