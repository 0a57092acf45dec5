//! Options of all applications.

use std::path::PathBuf;
use std::thread;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use talpf::Settings;
use talpf_apps::Error;
use talpf_apps::run::{App, Machine, Slowdown, Variant};

use super::launcher::must_be_alone;
#[cfg(feature = "mpi")]
use super::launcher::must_have_joined;
use super::number_within::number_within;

/// Machine to run on, and uses of the result.
#[derive(Args, Debug)]
pub(super) struct RunOptions {
    /// Ranks that share the work
    #[arg(long, value_name = "N", value_parser = number_within(Machine::RANKS))]
    ranks: Option<usize>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Record the tasks of a step once, and replay them in all other steps
    #[arg(long)]
    replay: bool,

    /// Transport between the ranks
    #[arg(long, value_enum, alias = "fabric", default_value_t)]
    transport: Transport,

    /// Compare the result with serial, bit by bit
    #[arg(long)]
    pub(super) check: bool,

    /// Fail if a round of talpf-* reads and writes the same location
    #[arg(long)]
    check_conflicts: bool,

    /// Write a picture of the result
    #[arg(long, value_name = "FILE.png")]
    pub(super) image: Option<PathBuf>,

    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Write a Paraver trace to this folder: <application>.prv, .pcf and .row
    #[arg(long, value_name = "DIR")]
    pub(super) trace: Option<PathBuf>,

    /// Draw the graph of the tasks (at most the first 2000)
    #[arg(long, value_name = "FILE.svg")]
    pub(super) graph: Option<PathBuf>,

    /// Show no progress bar
    #[arg(long)]
    pub(super) quiet: bool,
}

/// Machine without its ranks.
#[derive(Args, Debug)]
pub(super) struct MachineOptions {
    /// Worker threads of all ranks together [default: from the runtime's file, or one per core]
    #[arg(long, value_name = "W", value_parser = number_within(Machine::WORKERS))]
    workers: Option<usize>,

    /// Make rank R, or `all`, compute FACTOR times more slowly, on simulated cores of its own
    #[arg(long, value_name = "R:FACTOR", value_parser = slowdown)]
    slow_rank: Option<Slowdown>,

    #[command(flatten)]
    runtime: RuntimeOptions,
}

/// Settings of the runtime.
#[derive(Args, Debug)]
pub(super) struct RuntimeOptions {
    /// Settings file: workers, idle, throttle, polling, check_conflicts [default: from
    /// TALPF_CONFIG]
    #[arg(long, value_name = "FILE.toml")]
    runtime_config: Option<PathBuf>,
}

impl RuntimeOptions {
    pub(super) fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings::load(self.runtime_config.as_deref())?)
    }
}

/// Transport between the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Transport {
    /// Software verbs, with all ranks in this process
    #[default]
    Verbs,
    /// MPI, with one rank per process that mpirun has started
    Mpi,
}

/// Sizes of published measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// Large reference input of chapter 7 of the thesis
    Thesis,
}

impl RunOptions {
    /// Returns the machine to run `variant` of `problem` on.
    pub(super) fn machine<A: App>(
        &self,
        variant: Variant,
        problem: &A::Problem,
    ) -> Result<Machine, Error> {
        if self.graph.is_some() && !variant.has_ranks() {
            return Err(Error::NotTogether { option: "--graph", with: variant.name() });
        }
        let machine = match self.transport {
            Transport::Verbs => {
                must_be_alone()?;
                let fits = A::check_ranks(problem, A::RANKS).is_ok();
                let usual = A::ranks_of(problem).unwrap_or(if fits { A::RANKS } else { 1 });
                let ranks = self.ranks.unwrap_or(usual);
                self.machine.with_ranks(ranks)
            }
            Transport::Mpi if !variant.has_ranks() => {
                Err(Error::NoRanks { variant: variant.name() })
            }
            Transport::Mpi if self.trace.is_some() => {
                Err(Error::NotTogether { option: "--trace", with: "--transport mpi" })
            }
            Transport::Mpi if self.graph.is_some() => {
                Err(Error::NotTogether { option: "--graph", with: "--transport mpi" })
            }
            Transport::Mpi => self.processes(),
        }?;
        Ok(machine.replaying(self.replay).checking_conflicts(self.check_conflicts))
    }

    #[cfg(feature = "mpi")]
    fn processes(&self) -> Result<Machine, Error> {
        let MachineOptions { workers, slow_rank, runtime } = &self.machine;
        let settings = runtime.settings()?;
        let workers = workers.or(settings.workers());
        let machine = talpf_apps::run::processes::join(self.ranks, workers)?;
        must_have_joined(machine.ranks())?;
        Ok(machine.slowed(*slow_rank).set(settings))
    }

    #[cfg(not(feature = "mpi"))]
    fn processes(&self) -> Result<Machine, Error> {
        Err(Error::WithoutMpi)
    }
}

impl MachineOptions {
    pub(super) fn with_ranks(&self, ranks: usize) -> Result<Machine, Error> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let settings = self.runtime.settings()?;
        let workers = self.workers.or(settings.workers());
        let workers = workers.unwrap_or(cores.min(*Machine::WORKERS.end()));
        Ok(Machine::new(ranks, workers)?.slowed(self.slow_rank).set(settings))
    }
}

/// Returns a parser of the variants of an application.
pub(super) fn variant_of<A: App>() -> impl TypedValueParser<Value = Variant> {
    let values = A::VARIANTS
        .iter()
        .map(|variant| PossibleValue::new(variant.name()).help(variant.description()));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
        .map(|name| Variant::by_name(&name, A::VARIANTS).expect("one of the possible values"))
}

fn slowdown(text: &str) -> Result<Slowdown, String> {
    let (least, most) = (Slowdown::FACTORS.start(), Slowdown::FACTORS.end());
    let parse = || {
        let (rank, factor) = text.split_once(':')?;
        let rank = if rank == "all" { None } else { Some(rank.parse().ok()?) };
        let factor = factor.parse().ok().filter(|factor| Slowdown::FACTORS.contains(factor))?;
        Some(Slowdown { rank, factor })
    };
    parse().ok_or_else(|| {
        format!("expected a rank or `all`, a colon, and a factor from {least} to {most}")
    })
}
