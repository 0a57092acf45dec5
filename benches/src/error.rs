//! Errors of the benchmarks.

use std::process::ExitStatus;

/// Error of a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Error of the one-sided layer.
    #[error(transparent)]
    Talpf(#[from] talpf::Error),
    /// Error of an application.
    #[error(transparent)]
    Apps(#[from] talpf_apps::Error),
    /// Error of the task runtime.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
    /// Error of the two-sided layer.
    #[error(transparent)]
    TwoSided(#[from] tampi_shim::Error),
    /// A run left a wrong checksum.
    #[error("{contender} computed checksum {found:#x} instead of {expected:#x} in {what}")]
    WrongResult {
        /// Name of the contender.
        contender: &'static str,
        /// Name of the graph.
        what: String,
        /// Expected checksum.
        expected: u64,
        /// Computed checksum.
        found: u64,
    },
    /// A run computed a wrong sum.
    #[error("{contender} computed a sum of {found} instead of {expected} in {what}")]
    WrongSum {
        /// Name of the contender.
        contender: &'static str,
        /// Name of the problem.
        what: String,
        /// Sum that another contender computed.
        expected: f64,
        /// Sum that this contender computed.
        found: f64,
    },
    /// No figure has a name with this beginning.
    #[error("no figure has a name that begins with `{name}`")]
    NoSuchFigure {
        /// Requested beginning of a name.
        name: String,
    },
    /// No policy of the scheduler has this name.
    #[error("the scheduler has no policy `{name}`; the policies are {policies}")]
    NoSuchPolicy {
        /// Requested name.
        name: String,
        /// Names of all policies.
        policies: String,
    },
    /// Costs per unit are more than twice as high at the largest size as at a hundred.
    #[error("cost per unit grows with the number of units: {}", .rows.join(", "))]
    Grows {
        /// Names of the rows that grow.
        rows: Vec<String>,
    },
    /// No kind of episode has a name with this beginning.
    #[error("no kind of program has a name that begins with `{name}`; the kinds are {kinds}")]
    NoSuchEpisode {
        /// Requested beginning of a name.
        name: String,
        /// Names of all kinds.
        kinds: String,
    },
    /// An episode of a soak failed. A soak with the same seed begins with that episode.
    #[error("{name}, seed {seed}: {reason}")]
    Soak {
        /// Kind of the episode.
        name: &'static str,
        /// Seed of the episode.
        seed: u64,
        /// Description of the failure.
        reason: String,
    },
    /// The operating system refused a thread, a file or a process.
    #[error("{doing}: {reason}")]
    System {
        /// Description of the operation that failed.
        doing: &'static str,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A program that a peer needs to be built or started is not installed.
    #[error("{command} is not installed")]
    NotInstalled {
        /// Name of the program.
        command: String,
    },
    /// The program of a peer failed or exceeded its time limit (status 124).
    #[error("{command} ended with {status}: {output}")]
    Failed {
        /// Name of the program.
        command: String,
        /// Exit status of the program.
        status: ExitStatus,
        /// Standard error of the program.
        output: String,
    },
    /// The number of ranks under `mpirun` is not the requested two.
    #[error("found {ranks} ranks instead of 2: was this command built with another MPI?")]
    NotTwoRanks {
        /// Number of ranks found.
        ranks: u32,
    },
    /// The program of a peer printed something other than `name value` lines.
    #[error("unexpected output of {command}: `{line}`")]
    Garbled {
        /// Name of the program.
        command: String,
        /// Unexpected line, or the name of the missing figure.
        line: String,
    },
}
