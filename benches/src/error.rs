//! What can go wrong in a benchmark.

use std::process::ExitStatus;

/// An error of a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The one-sided layer refused something.
    #[error(transparent)]
    Talpf(#[from] talpf::Error),
    /// An application refused something.
    #[error(transparent)]
    Apps(#[from] talpf_apps::Error),
    /// The task runtime refused something.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
    /// The two-sided layer refused something.
    #[error(transparent)]
    TwoSided(#[from] tampi_shim::Error),
    /// A run computed something else than it should have.
    #[error("{contender} computed {found:#x} instead of {expected:#x} in {what}")]
    WrongResult {
        /// Who.
        contender: &'static str,
        /// In what.
        what: String,
        /// The right checksum.
        expected: u64,
        /// The wrong one.
        found: u64,
    },
    /// A run computed other numbers than it should have.
    #[error("{contender} computed a sum of {found} instead of {expected} in {what}")]
    WrongSum {
        /// Name of the contender.
        contender: &'static str,
        /// Name of the problem.
        what: String,
        /// The sum that another contender computed.
        expected: f64,
        /// The wrong one.
        found: f64,
    },
    /// There is no such figure.
    #[error("no figure has a name that begins with `{name}`")]
    NoSuchFigure {
        /// What was asked for.
        name: String,
    },
    /// Costs of a unit are more than twice as much at the largest size as at a hundred.
    #[error("cost of a unit grows: {}", .rows.join(", "))]
    Grows {
        /// The rows that grow.
        rows: Vec<String>,
    },
    /// A soak has no such kind of episode.
    #[error("no kind of program has a name that begins with `{name}`, there are {kinds}")]
    NoSuchEpisode {
        /// What was asked for.
        name: String,
        /// What there is.
        kinds: String,
    },
    /// An episode of a soak went wrong. A soak with this seed begins with it.
    #[error("{name}, seed {seed}: {wrong}")]
    Soak {
        /// The kind of episode.
        name: &'static str,
        /// Its seed.
        seed: u64,
        /// What was found.
        wrong: String,
    },
    /// Threads or files were refused by the system.
    #[error("{doing}: {reason}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A program that is needed to build or to start a peer is not installed.
    #[error("{command} is not installed")]
    NotInstalled {
        /// The program.
        command: String,
    },
    /// A program of a peer failed or exceeded its time (status 124).
    #[error("{command} ended with {status}: {output}")]
    Failed {
        /// The program.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to its standard error.
        output: String,
    },
    /// The ranks under `mpirun` are not the two that were asked for.
    #[error("there are {ranks} ranks instead of 2: was this command built with another MPI?")]
    NotTwoRanks {
        /// How many there are.
        ranks: u32,
    },
    /// A program of a peer printed something else than `name value`.
    #[error("{command} printed `{line}`")]
    Garbled {
        /// The program.
        command: String,
        /// The line, or what is missing.
        line: String,
    },
}
