//! The `talpf-bench` command.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ibverbs_sim::OfiChoice;
use talpf_benches::metg::{self, Kernel, Pattern};
use talpf_benches::{
    Error, Report, ablation, apps, growth, links, memory, micro, soak, superstep, two_sided,
};

/// Measures the cost of tasks, puts and syncs.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
    /// Also write the figures to FILE as JSON: each name with median, min, max and unit.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Bench {
    /// Micro-benchmarks: one task, one request, one put, one sync, one trace record.
    Micro {
        /// Measure only figures whose names begin with ONLY.
        #[arg(default_value = "", hide_default_value = true)]
        only: String,
    },
    /// Applications compared with plain C loops, at several sizes.
    Apps {
        /// Measure only problems whose names begin with one of these, such as `jacobi_10`.
        only: Vec<String>,
        /// Run few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// Smallest task that still reaches half of the peak rate, METG(50 %), for each pattern.
    #[command(allow_negative_numbers = true)]
    Metg {
        /// Dependence pattern; may be repeated [default: all].
        #[arg(long = "pattern", value_name = "P")]
        patterns: Vec<Pattern>,
        /// Points of a step; may be repeated [default: the number of cores, and 32].
        #[arg(long = "width", value_name = "W", value_parser = number_within::<usize>(1..=4096))]
        widths: Vec<usize>,
        /// Kernel that tasks run; may be repeated [default: all].
        #[arg(long = "kernel", value_name = "K")]
        kernels: Vec<Kernel>,
        /// Also run GCC's OpenMP, rayon and tokio, alternately with talpf.
        #[arg(long)]
        peers: bool,
        /// Run few steps and repetitions, and no memory-bound kernel unless requested.
        #[arg(long)]
        quick: bool,
    },
    /// Cost of programs without one policy of the scheduler after another.
    Ablation {
        /// Measure only figures whose names begin with one of these, such as `metg.`.
        only: Vec<String>,
        /// Policy to leave out; may be repeated [default: all].
        #[arg(long = "policy", value_name = "P")]
        policies: Vec<String>,
        /// Number of rounds, of which the medians count.
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = number_within::<usize>(1..=1000))]
        rounds: usize,
        /// Run one round of one program, unless others are requested.
        #[arg(long)]
        quick: bool,
    },
    /// Application that `ablation` measures in a process of its own.
    #[command(hide = true)]
    AblationSample {
        /// Name of the application and its size.
        name: String,
    },
    /// Cost per unit of everything a program can have many of, at growing numbers.
    ///
    /// Fails if the cost per unit at the largest size is more than twice that at a hundred, or in as
    /// many groups of a hundred as need the same memory.
    Growth {
        /// Measure only rows whose names begin with ONLY.
        #[arg(default_value = "", hide_default_value = true)]
        only: String,
        /// Count instructions with valgrind instead of measuring time.
        #[arg(long)]
        quick: bool,
    },
    /// Process that `growth --quick` starts under valgrind.
    #[command(hide = true)]
    GrowthCounted {
        /// Measure only rows whose names begin with ONLY.
        only: String,
    },
    /// Instructions of a superstep of two ranks, by the part of the library that they are in, counted with valgrind.
    Superstep,
    /// Process that `superstep` starts under valgrind.
    #[command(hide = true)]
    SuperstepCounted,
    /// Rails between processes of this machine: writes, reads, supersteps, puts, gets, steps of Jacobi.
    Links {
        /// Measure only these rails: `shm`, `packets`, `ofi`.
        #[arg(long = "rail", value_name = "RAIL")]
        rails: Vec<links::Kind>,
        /// Provider of libfabric, PROVIDER[,iface=NAME]; the one that is chosen unasked if it is not given.
        #[arg(long, default_value = "", hide_default_value = true)]
        provider: OfiChoice,
        /// Run few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// Process that `links` starts.
    #[command(hide = true)]
    LinksPeer {
        /// Rail that is measured.
        kind: links::Kind,
        /// Core of the other process.
        core: usize,
        /// Folder of the run.
        run: PathBuf,
        /// Provider of libfabric.
        #[arg(long, default_value = "")]
        provider: OfiChoice,
    },
    /// Process of many that `links` starts.
    #[command(hide = true)]
    LinksMember {
        /// Number of supersteps.
        steps: usize,
    },
    /// Messages between ranks: latency, bandwidth, message rate, matching, collectives.
    TwoSided {
        /// Leave out the MPIs installed on this machine.
        #[arg(long)]
        without_peers: bool,
        /// Run few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// Memory per live task, and memory growth of a long run with few live tasks.
    #[command(allow_negative_numbers = true)]
    Memory {
        /// Tasks of the long run.
        #[arg(long, value_name = "N", default_value_t = 1_000_000,
              value_parser = number_within::<u64>(1..=1_000_000_000))]
        tasks: u64,
        /// Workers of the runtime.
        #[arg(long, value_name = "W", default_value_t = micro::WORKERS,
              value_parser = number_within::<usize>(1..=1024))]
        workers: usize,
        /// Most unfinished tasks; a spawn beyond it waits [default: from TALPF_CONFIG, or 256].
        #[arg(long, value_name = "N", value_parser = number_within::<usize>(1..=1 << 24))]
        throttle: Option<usize>,
    },
    /// Random programs of tasks, puts and messages, checked against a serial run, and hostile
    /// programs that misuse the safe interfaces.
    #[command(allow_negative_numbers = true)]
    Soak {
        /// Seconds after which no new program begins.
        #[arg(long, value_name = "N", default_value_t = 600,
              value_parser = number_within::<u64>(1..=31_536_000))]
        seconds: u64,
        /// Seed of the first program [default: random].
        #[arg(long, value_name = "S", value_parser = number_within::<u64>(0..=u64::MAX))]
        seed: Option<u64>,
        /// Only kinds of programs whose names begin with one of these: `tasks,puts,messages` are
        /// random programs, `puts-shm` those that put between processes that share memory, `hostile` are
        /// hostile ones. An unknown name lists all kinds.
        #[arg(long, value_name = "KINDS", value_delimiter = ',')]
        only: Vec<String>,
        /// Run only the first program, and in this process.
        #[arg(long)]
        once: bool,
    },
    /// Rank that `two-sided` starts under `mpirun`.
    #[cfg(feature = "mpi")]
    #[command(hide = true)]
    MpiRank {
        /// Milliseconds for which each figure is measured.
        budget_ms: u64,
    },
}

/// Returns a parser of whole numbers within `limits`.
fn number_within<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| limits.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            format!("expected a whole number from {} to {}", limits.start(), limits.end())
        })
    }
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
        // Checked before the long run, so that its figures are not lost at the end.
        let is_new = !path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        // The file itself, not a symbolic link to it.
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
        Bench::Ablation { only, policies, rounds, quick } => {
            ablation::run(&ablation::Options { only, policies, rounds, quick })
        }
        Bench::AblationSample { name } => ablation::sample(&name),
        Bench::Growth { only, quick } => growth::run(&growth::Options { only, quick }),
        Bench::GrowthCounted { only } => {
            growth::measure_counted(&only)?;
            Ok(Report::new(""))
        }
        Bench::Superstep => superstep::run(),
        Bench::SuperstepCounted => {
            superstep::measure_counted()?;
            Ok(Report::new(""))
        }
        Bench::Links { rails, provider, quick } => {
            links::run(&links::Options { kinds: rails, choice: provider, quick })
        }
        Bench::LinksPeer { kind, core, run, provider } => {
            links::run_peer(&run, &links::Wanted { kind, choice: provider }, core)?;
            Ok(Report::new(""))
        }
        Bench::LinksMember { steps } => {
            links::run_member(steps)?;
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
