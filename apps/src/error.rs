//! Errors of applications. over 400 lines: one list of all, each with its text.

use std::io;
use std::path::PathBuf;

use ibverbs_sim::bootstrap::{BootstrapError, with_process_limits};
use talpf_traces::counted;

use crate::run::Variant;

/// Reason why an application could not start, finish or save its result. The text is one line that
/// names the offending value and the violated limit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number given by the caller lies outside its limits.
    #[error("{name} is {value}, expected {least} to {most}")]
    OutOfRange {
        /// Name of the number.
        name: &'static str,
        /// Given value.
        value: usize,
        /// Smallest allowed value.
        least: usize,
        /// Largest allowed value.
        most: usize,
    },

    /// The ranks cannot be divided among the processes.
    #[error("ranks is {ranks}, expected a multiple of {processes}, the number of processes")]
    NotDivided {
        /// Number of ranks.
        ranks: usize,
        /// Number of processes.
        processes: usize,
    },

    /// A tolerance is negative, infinite or not a number.
    #[error("tolerance is {value:?}, expected a number of at least 0")]
    Tolerance {
        /// Given value.
        value: f64,
    },

    /// Ranks of the variant would wait for each other for ever, if a run could end at a tolerance.
    #[error("ranks is {ranks}, expected at most {most} for {variant} with a tolerance")]
    ToleranceOfRanks {
        /// Name of the requested variant.
        variant: &'static str,
        /// Requested number of ranks.
        ranks: usize,
        /// Largest number of ranks.
        most: usize,
    },

    /// The application does not have the variant.
    #[error("{app} has no variant {variant}")]
    NoSuchVariant {
        /// Name of the application.
        app: &'static str,
        /// Name of the requested variant.
        variant: &'static str,
    },

    /// The variant cannot replay its graph.
    #[error("{app} cannot replay {variant}{}", only(replayed))]
    NoReplay {
        /// Name of the application.
        app: &'static str,
        /// Name of the requested variant.
        variant: &'static str,
        /// Variants that can replay.
        replayed: &'static [Variant],
    },

    /// The number of ranks exceeds the number of parts to distribute.
    #[error("ranks is {ranks}, expected at most {most}, the number of {parts}")]
    MoreRanks {
        /// Requested number of ranks.
        ranks: usize,
        /// Number of parts of the problem.
        most: usize,
        /// Name of the parts.
        parts: &'static str,
    },

    /// The number of ranks is not a square number.
    #[error("ranks is {ranks}, expected a square number: 1, 4, 9 and so on")]
    NotSquare {
        /// Requested number of ranks.
        ranks: usize,
    },

    /// The grid of ranks has not as many as the run.
    #[error(
        "ranks is {ranks}, but a grid of {rows}x{cols} has {} ranks",
        *rows as usize * *cols as usize
    )]
    Grid {
        /// Rows of the grid.
        rows: u32,
        /// Columns of the grid.
        cols: u32,
        /// Requested number of ranks.
        ranks: usize,
    },

    /// The variant exchanges rows only.
    #[error("{variant} exchanges rows only, expected a grid of one column, not of {cols}")]
    GridOfRows {
        /// Name of the requested variant.
        variant: &'static str,
        /// Columns of the grid.
        cols: u32,
    },

    /// An input file has an invalid value.
    #[error("{file}:{line}: {field} is {value:?}, expected {limit}")]
    Field {
        /// Name of the file.
        file: String,
        /// Number of the line, counted from one.
        line: usize,
        /// Name of the field.
        field: &'static str,
        /// Text of the field.
        value: String,
        /// Description of valid values.
        limit: String,
    },

    /// An input file ends before one of its values.
    #[error("{file}:{line}: {field} is missing at the end of the file, expected {limit}")]
    MissingField {
        /// Name of the file.
        file: String,
        /// Number of the line after the last one, counted from one.
        line: usize,
        /// Name of the missing field.
        field: &'static str,
        /// Description of valid values.
        limit: String,
    },

    /// The data would not fit into memory.
    #[error(
        "the run needs {} MiB{}, but {} MiB are available",
        needed >> 20, for_ranks(*connections, *tasks, *ranks), available >> 20
    )]
    Memory {
        /// Bytes that the run needs.
        needed: u64,
        /// Bytes of `needed` for connections between ranks.
        connections: u64,
        /// Bytes of `needed` for tasks that are spawned ahead.
        tasks: u64,
        /// Number of ranks.
        ranks: usize,
        /// Bytes that are available.
        available: u64,
    },

    /// The operating system refused to start a worker thread.
    #[error("cannot start worker {worker} of {workers}: {source}")]
    Worker {
        /// Number of the worker that could not be started, counted from one.
        worker: usize,
        /// Requested number of workers.
        workers: usize,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The operating system refused to install a signal handler.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),

    /// The run was interrupted by a signal.
    #[error("interrupted")]
    Interrupted,

    /// An input file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },

    /// An output file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The same file is given for two outputs.
    #[error("{} is given for two outputs", path.display())]
    SameOutput {
        /// Path of the file.
        path: PathBuf,
    },

    /// Error of the task runtime or of one-sided communication.
    #[error(transparent)]
    Talpf(#[from] talpf::Error),

    /// Error of two-sided messages.
    #[error(transparent)]
    Tampi(#[from] tampi_shim::Error),

    /// A machine of processes was used twice, or created on another thread.
    #[error("a process takes part in only one run with other processes")]
    NotJoined,

    /// The environment variable of `talpf launch` is invalid.
    #[error("TALPF_LAUNCH is {value:?}, expected {expected}")]
    Launch {
        /// Value of the variable.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },

    /// The processes of a run cannot connect.
    #[error(transparent)]
    Meet(BootstrapError),

    /// The operating system refused to start or watch a process of a run.
    #[error(
        "cannot run process {process} of {processes}: {}",
        with_process_limits(.source, .source.raw_os_error())
    )]
    Process {
        /// Number of the process, from 0.
        process: u32,
        /// Number of processes.
        processes: u32,
        /// Error of the operating system.
        source: io::Error,
    },

    /// A program cannot be started on a machine of a hosts file.
    #[error("{file}:{line}: cannot start talpf on {host} by `{command}`: {reason}")]
    Host {
        /// Name of the hosts file.
        file: String,
        /// Number of the line, counted from one.
        line: usize,
        /// Name of the machine.
        host: String,
        /// Command that was tried.
        command: String,
        /// Reason.
        reason: String,
    },

    /// The machine does not know its own address.
    #[error(
        "the address by which {host} reaches this machine is unknown: {source}; give --address"
    )]
    NoAddress {
        /// Name of the other machine.
        host: String,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The path of this program is unknown.
    #[error("the path of this program is unknown: {0}")]
    Program(io::Error),

    /// No launcher has given the process its place.
    #[error("`talpf part` is started by `talpf launch --hosts`, which says what to run")]
    NoPart,

    /// A process of a run was ended by a signal.
    #[error("process {process} of {processes} was ended by signal {signal}")]
    Killed {
        /// Number of the process, from 0.
        process: u32,
        /// Number of processes.
        processes: u32,
        /// Number of the signal.
        signal: i32,
    },

    /// No launcher has started the process.
    #[error(
        "{option} is for processes that `talpf launch -n P -- APP` has started, or that have --server"
    )]
    NotStarted {
        /// Option that needs processes.
        option: &'static str,
    },

    /// A command without ranks was to be launched.
    #[error("launch starts applications, which have ranks, but not {command}")]
    NotLaunched {
        /// Name of the command.
        command: &'static str,
    },

    /// The program was built without MPI.
    #[error("this program was built without MPI: build it with `--features mpi`")]
    WithoutMpi,

    /// A step of SLURM without PMI and PMIx, each task of which would run everything.
    #[error(
        "srun has started {tasks} tasks (SLURM_STEP_NUM_TASKS) without PMI, and each would run all ranks: use \
         srun --mpi=pmi2 or --mpi=pmix, or --server HOST:PORT with --process and --processes, or start one task"
    )]
    TasksOfSlurm {
        /// Number of tasks of the step.
        tasks: usize,
    },

    /// Several processes were started for ranks that share one process.
    #[error(
        "{launcher} has started {processes} processes, but --transport verbs runs all ranks in \
         one: use --transport {transport}, or start one process"
    )]
    Processes {
        /// Name of the launcher.
        launcher: &'static str,
        /// Transport between processes of that launcher.
        transport: &'static str,
        /// Number of started processes.
        processes: usize,
    },

    /// The launcher belongs to another MPI than the program.
    #[cfg(feature = "mpi")]
    #[error(
        "mpirun has started {processes} processes, but the MPI of this program finds one: \
         the program was built with another MPI than that of mpirun"
    )]
    OtherMpi {
        /// Number of started processes.
        processes: usize,
    },

    /// `compare` was started in several processes, although its ranks share one.
    #[error(
        "compare runs all ranks in one process: to measure processes, use \
         `talpf launch -n RANKS -- APP --json FILE`, or \
         `mpirun -n RANKS talpf APP --transport mpi --json FILE`"
    )]
    ComparedProcesses,

    /// Ranks that send messages by MPI are several in a process.
    #[error(
        "variant {variant} over --transport mpi has one rank in each process, but --ranks or \
         --ranks-per-process make {ranks} in {processes}: start {ranks} processes, or choose a \
         variant talpf-*"
    )]
    MessagesOfProcesses {
        /// Name of the requested variant.
        variant: &'static str,
        /// Number of ranks.
        ranks: usize,
        /// Number of processes.
        processes: usize,
    },

    /// The variant has no ranks, so it cannot run in several processes.
    #[error("variant {variant} has no ranks to run as processes")]
    NoRanks {
        /// Name of the requested variant.
        variant: &'static str,
    },

    /// An application, or a variant of it, does not run in virtual time.
    #[error(
        "{what} does not run in virtual time: jacobi, gauss-seidel, nbody, matmul, kmeans and \
         mandelbrot do, in their variants with ranks"
    )]
    NotSimulated {
        /// Name of the application or the variant.
        what: &'static str,
    },

    /// A profile does not say what a kind of work costs.
    #[error("profile {profile} has no cost of `{kind}`: give one, as in --cost {kind}=1.5ns")]
    NoCost {
        /// Name of the profile.
        profile: String,
        /// Kind of work.
        kind: &'static str,
    },

    /// A filter of what is said on the error stream cannot be used.
    #[error("{name} is `{filter}`: {reason}")]
    LogFilter {
        /// Name of the option or of the environment variable.
        name: &'static str,
        /// Given filter.
        filter: String,
        /// Reason of the parser.
        reason: String,
    },

    /// Two options exclude each other.
    #[error("{option} is not supported with {with}")]
    NotTogether {
        /// Name of the option.
        option: &'static str,
        /// Name of the other option.
        with: &'static str,
    },

    /// Virtual cores would hold more work than the workers can do meanwhile.
    #[error(
        "dilation is {factor}, expected at least {least}: {ranks} x {cores} virtual cores, of ranks \
         and of each rank, hold work that {workers} of this machine's cores can do only {least} \
         times as slowly"
    )]
    Dilation {
        /// Given factor.
        factor: f64,
        /// Smallest factor that is enough.
        least: f64,
        /// Number of ranks.
        ranks: usize,
        /// Virtual cores of each rank.
        cores: u32,
        /// Workers that have a core of the machine.
        workers: usize,
    },

    /// A trace cannot be written.
    #[error("cannot write the trace: {0}")]
    WriteTrace(talpf_traces::Error),

    /// A trace cannot be written in another form.
    #[error("nothing is converted: {0}")]
    ConvertTrace(talpf_traces::Error),

    /// A trace cannot be made of others.
    #[error("no trace is made: {0}")]
    MakeTrace(talpf_traces::Error),

    /// A trace cannot be read.
    #[error("cannot read the trace {0}")]
    ReadTrace(talpf_traces::Error),

    /// A folder has no records of a run that was killed.
    #[error("{} has no file that ends in .spill: there is nothing to recover", path.display())]
    NothingToRecover {
        /// Path of the folder.
        path: PathBuf,
    },

    /// A file is not a Paraver trace.
    #[error("{} is not a Paraver trace: {reason}", path.display())]
    NoTrace {
        /// Path of the file.
        path: PathBuf,
        /// Description of the flaw in its first line.
        reason: String,
    },

    /// A trace breaks rules of its format.
    #[error("{} has {} and {}", path.display(), counted(*errors, "error"), counted(*warnings, "warning"))]
    BadTrace {
        /// Path of the trace.
        path: PathBuf,
        /// Number of flaws that Paraver would refuse or show as nonsense.
        errors: u64,
        /// Number of flaws that make Paraver show less than the trace has, or something else.
        warnings: u64,
    },

    /// A result differs from the serial result.
    #[error(
        "{variant} differs from serial first at {place}: \
         {found:e} (bits {:016x}) instead of {expected:e} (bits {:016x})",
        found.to_bits(), expected.to_bits()
    )]
    Differs {
        /// Name of the checked variant.
        variant: &'static str,
        /// Position of the first number that differs.
        place: String,
        /// Number in the result of the variant.
        found: f64,
        /// Number in the serial result.
        expected: f64,
    },
}

impl From<talpf_runtime::Error> for Error {
    fn from(error: talpf_runtime::Error) -> Self {
        Self::Talpf(error.into())
    }
}

impl Error {
    /// Returns `value` if it lies within the limits, and an error that names them otherwise.
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

    /// Checks that each of `ranks` gets at least one of the `most` parts.
    pub(crate) fn check_ranks(ranks: usize, most: usize, parts: &'static str) -> Result<(), Self> {
        if ranks <= most { Ok(()) } else { Err(Self::MoreRanks { ranks, most, parts }) }
    }
}

/// Formats the parts of the memory that connections and tasks need, unless they are less than a MiB.
fn for_ranks(connections: u64, tasks: u64, ranks: usize) -> String {
    let ranks = counted(ranks, "rank");
    match (connections >> 20, tasks >> 20) {
        (0, 0) => String::new(),
        (0, tasks) => format!(" ({tasks} MiB for tasks of {ranks}, see --ranks)"),
        (mib, 0) => format!(" ({mib} MiB to connect {ranks}, see --ranks)"),
        (mib, tasks) => {
            format!(" ({mib} MiB to connect {ranks} and {tasks} MiB for their tasks, see --ranks)")
        }
    }
}

/// Formats a restriction to these variants, if there are any.
fn only(variants: &[Variant]) -> String {
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
