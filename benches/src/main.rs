//! The `talpf-bench` command.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{RangedU64ValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use talpf_benches::metg::{self, Kernel, Pattern};
use talpf_benches::{Error, Report, apps, growth, memory, micro, soak, two_sided};

/// Measures what tasks, puts and syncs cost.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
    /// Also write the figures to this file: each name with median, min, max and unit.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Bench {
    /// The smallest things: one task, one request, one put, one sync, one trace record.
    Micro {
        /// Only figures whose names begin with this.
        #[arg(default_value = "")]
        only: String,
    },
    /// The applications against plain loops in C, at several sizes.
    Apps {
        /// Only problems whose names begin with one of these, such as `jacobi_10`.
        only: Vec<String>,
        /// Few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// The smallest task for which half of the peak rate remains, METG(50 %), by pattern.
    Metg {
        /// A pattern; may be given more than once. All unless given.
        #[arg(long = "pattern", value_name = "P")]
        patterns: Vec<Pattern>,
        /// Points of a step; may be given more than once. The number of cores and 32 unless given.
        #[arg(long = "width", value_name = "W",
              value_parser = within(1..=4096))]
        widths: Vec<usize>,
        /// What a task computes; may be given more than once. All unless given.
        #[arg(long = "kernel", value_name = "K")]
        kernels: Vec<Kernel>,
        /// Also run GCC's OpenMP, rayon and tokio, in turn with ours.
        #[arg(long)]
        peers: bool,
        /// Few steps and repetitions, and no memory-bound kernel unless it is asked for.
        #[arg(long)]
        quick: bool,
    },
    /// The cost of a unit of everything that a program makes more of, by how many there are.
    ///
    /// Fails if that is more than twice as much at the largest size as at a hundred.
    Growth {
        /// Only rows whose names begin with this.
        #[arg(default_value = "")]
        only: String,
        /// Count instructions, by valgrind, in place of time.
        #[arg(long)]
        quick: bool,
    },
    /// The process that `growth --quick` starts under valgrind.
    #[command(hide = true)]
    GrowthCounted {
        /// Only rows whose names begin with this.
        only: String,
    },
    /// Messages between ranks: times, bandwidths, rates, matching, collectives.
    TwoSided {
        /// Without the MPIs of this machine, which run in turn with ours.
        #[arg(long)]
        without_peers: bool,
        /// Few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// Bytes that a live task takes, and whether a long run with few live tasks grows.
    Memory {
        /// Tasks of the long run.
        #[arg(long, value_name = "N", default_value_t = 1_000_000,
              value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        tasks: u64,
        /// Workers of the runtime.
        #[arg(long, value_name = "W", default_value_t = micro::WORKERS,
              value_parser = within(1..=1024))]
        workers: usize,
        /// Tasks that their creator may be ahead [default: what TALPF_CONFIG says, or 256].
        #[arg(long, value_name = "N", value_parser = within(1..=1 << 24))]
        throttle: Option<usize>,
    },
    /// Random programs of tasks, puts and messages, checked against a serial oracle, and hostile
    /// ones, which misuse all that safe code can reach.
    Soak {
        /// For how long programs are begun.
        #[arg(long, value_name = "N", default_value_t = 600,
              value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
        seconds: u64,
        /// The seed of the first program; a random one unless given.
        #[arg(long, value_name = "S")]
        seed: Option<u64>,
        /// Only kinds of programs whose names begin with one of these: `tasks,puts,messages` for
        /// the random ones, `hostile` for the hostile ones. A name of no kind lists all.
        #[arg(long, value_name = "KINDS", value_delimiter = ',')]
        only: Vec<String>,
        /// Run the first program only, and in this process, whatever it does to that.
        #[arg(long)]
        once: bool,
    },
    /// A rank that `two-sided` starts under `mpirun`.
    #[cfg(feature = "mpi")]
    #[command(hide = true)]
    MpiRank {
        /// How long each figure is measured.
        budget_ms: u64,
    },
}

fn within(limits: RangeInclusive<u64>) -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(limits)
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { bench, json }: Arguments) -> Result<(), String> {
    if let Some(path) = &json {
        // Before the long run, so that its figures are not lost after it.
        let is_new = !path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        // Not a link to it.
        let remove = || fs::remove_file(fs::canonicalize(path)?);
        let tried = opened.and_then(|_| if is_new { remove() } else { Ok(()) });
        tried.map_err(|error| unwritable(path, &error))?;
    }
    let report = measure(bench).map_err(|error| error.to_string())?;
    if let Some(path) = json {
        report.write_json(&path).map_err(|error| unwritable(&path, &error))?;
    }
    report.verdict().map_err(|error| error.to_string())
}

fn measure(bench: Bench) -> Result<Report, Error> {
    match bench {
        Bench::Micro { only } => micro::run(&only),
        Bench::Apps { only, quick } => apps::run(&apps::Options { only, quick }),
        Bench::Metg { patterns, widths, mut kernels, peers, quick } => {
            if quick && kernels.is_empty() {
                kernels.push(Kernel::Compute);
            }
            metg::run(&metg::Options { patterns, widths, kernels, peers, quick })
        }
        Bench::Growth { only, quick } => growth::run(&growth::Options { only, quick }),
        Bench::GrowthCounted { only } => {
            growth::measure_counted(&only)?;
            Ok(Report::new(""))
        }
        Bench::TwoSided { without_peers, quick } => {
            two_sided::run(&two_sided::Options { peers: !without_peers, quick })
        }
        Bench::Memory { tasks, workers, throttle } => memory::run(tasks, workers, throttle),
        Bench::Soak { seconds, seed, only, once } => {
            let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(()));
            soak::run(&soak::Options { seconds, seed, only, once })
        }
        #[cfg(feature = "mpi")]
        Bench::MpiRank { budget_ms } => {
            two_sided::mpi_rank(std::time::Duration::from_millis(budget_ms))?;
            Ok(Report::new(""))
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
