//! Options of all applications.

use std::path::PathBuf;
use std::thread;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ibverbs_sim::bootstrap::PEER_TIMEOUT;
use talpf::Settings;
use talpf_apps::Error;
use talpf_apps::run::processes::Meeting;
use talpf_apps::run::{
    App, Links, Machine, Problem, RankCount, SimulatedLink, Slowdown, Variant, processes,
};

use super::launcher::must_be_alone;
#[cfg(feature = "mpi")]
use super::launcher::must_have_joined;
use super::meeting_options::MeetingOptions;
use super::number_within::number_within;
use super::simulation_options::SimulationOptions;
use super::trace_options::TraceOptions;
use super::transport_option::{ChosenTransport, Transport, TransportParser};

/// Machine to run on, and uses of the result.
#[derive(Args, Debug)]
pub(super) struct RunOptions {
    /// Ranks that share the work; in several processes a multiple of their number [default there: one
    /// in each]
    #[arg(long, value_name = "N", value_parser = number_within(Machine::RANKS))]
    ranks: Option<usize>,

    /// Ranks of each process, in a run of several
    #[arg(long, value_name = "R", conflicts_with = "ranks")]
    #[arg(value_parser = number_within(Machine::RANKS))]
    ranks_per_process: Option<usize>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Record the tasks of a step once, and replay them in all other steps
    #[arg(long)]
    replay: bool,

    /// Transport between the ranks [default: auto in several processes, else verbs]
    #[arg(long, alias = "fabric", value_parser = TransportParser)]
    transport: Option<ChosenTransport>,

    #[command(flatten)]
    meeting: MeetingOptions,

    #[command(flatten)]
    simulation: SimulationOptions,

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

    #[command(flatten)]
    pub(super) trace: TraceOptions,

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
    pub(super) workers: Option<usize>,

    /// Worker threads of each rank alone, in place of workers that the ranks of a process share
    #[arg(long, value_name = "N", conflicts_with = "workers")]
    #[arg(value_parser = number_within(Machine::WORKERS))]
    pub(super) workers_per_rank: Option<usize>,

    /// Make rank R, or `all`, compute FACTOR times more slowly, on simulated cores of its own
    #[arg(long, value_name = "R:FACTOR", value_parser = slowdown)]
    pub(super) slow_rank: Option<Slowdown>,

    /// Hold messages until a link would have brought them, such as latency=2us,bandwidth=10GB/s or a
    /// profile; they may come later. For ranks in one process
    #[arg(long, value_name = "LINK", value_parser = |text: &str| SimulatedLink::parse(text))]
    pub(super) link: Option<SimulatedLink>,

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
        if self.machine.workers_per_rank.is_some() && !variant.has_ranks() {
            let option = "--workers-per-rank";
            return Err(Error::NotTogether { option, with: variant.name() });
        }
        let needs_result = [("--check", self.check), ("--image", self.image.is_some())];
        if let Some((option, _)) = needs_result.into_iter().find(|&(_, is_given)| is_given)
            && self.simulation.has_no_result()
        {
            return Err(Error::NotTogether { option, with: "--execute no" });
        }
        let chosen = self.transport.as_ref();
        let is_mpi = chosen.is_some_and(|chosen| chosen.transport == Transport::Mpi);
        let meeting =
            if is_mpi { self.meeting.meeting_without_pmi() } else { self.meeting.meeting() }?;
        let usual = match &meeting {
            // Two-sided variants need MPI, which the error says.
            Some(Meeting::Pmi { .. } | Meeting::Pmix(_)) if variant.is_two_sided() => {
                Transport::Verbs
            }
            Some(_) => Transport::Auto,
            None => Transport::Verbs,
        };
        let transport = chosen.map_or(usual, |chosen| chosen.transport);
        let option = transport.option();
        if transport != Transport::Verbs {
            self.check_for_processes(variant, option)?;
            if self.simulation.dilation().is_some() {
                return Err(Error::NotTogether { option: "--dilate", with: option });
            }
            if self.machine.link.is_some() {
                return Err(Error::NotTogether { option: "--link", with: option });
            }
        }
        let others = [
            (option, transport != Transport::Verbs),
            ("--slow-rank", self.machine.slow_rank.is_some()),
            ("--workers", self.machine.workers.is_some()),
            ("--workers-per-rank", self.machine.workers_per_rank.is_some()),
            ("--link", self.machine.link.is_some()),
        ];
        let simulation = self.simulation.simulation::<A>(variant, &others)?;
        let numbers = problem.parameters();
        let numbers = numbers.iter().map(|(name, number)| (*name, number.to_string()));
        let numbers: Vec<_> = numbers.collect();
        let mut settings = vec![
            ("talpf", env!("CARGO_PKG_VERSION")),
            ("application", A::NAME),
            ("variant", variant.name()),
        ];
        settings.extend(numbers.iter().map(|(name, number)| (*name, &**number)));
        let machine = match (transport.fabric(), meeting) {
            (None, Some(Meeting::Server(_))) => {
                return Err(Error::NotTogether { option, with: "--server" });
            }
            (None, Some(Meeting::Launched(_))) if transport == Transport::Mpi => {
                return Err(Error::NotTogether { option, with: "talpf launch" });
            }
            (None, meeting) => {
                if let Some(given) = self.meeting.only_for_several() {
                    return Err(Error::NotTogether { option: given, with: option });
                }
                if transport == Transport::Mpi {
                    self.over_mpi(&settings)
                } else {
                    must_be_alone(meeting.as_ref())?;
                    if self.ranks_per_process.is_some() {
                        return Err(Error::NotStarted { option: "--ranks-per-process" });
                    }
                    let fits = A::check_ranks(problem, A::RANKS).is_ok();
                    let usual = A::ranks_of(problem).unwrap_or(if fits { A::RANKS } else { 1 });
                    let ranks = self.ranks.unwrap_or(usual);
                    self.machine.with_ranks(ranks)
                }
            }
            (Some(_), _) if variant.is_two_sided() => {
                return Err(Error::NotTogether { option: variant.name(), with: option });
            }
            (Some(_), None) => return Err(Error::NotStarted { option }),
            (Some(fabric), Some(meeting)) => {
                let peer_timeout = self.meeting.peer_timeout().unwrap_or(PEER_TIMEOUT);
                let choice = chosen.map(|chosen| chosen.choice.clone()).unwrap_or_default();
                let links = Links { fabric, choice, peer_timeout };
                self.of_processes(|ranks, workers| {
                    processes::join(meeting, &links, &settings, ranks, workers)
                })
            }
        }?;
        let machine = simulation.map_or(machine, |simulation| machine.simulated(simulation));
        let machine = machine.dilated(self.simulation.dilation()).replaying(self.replay);
        machine.check_dilation(variant)?;
        let machine = machine.served_by(self.meeting.progress());
        Ok(machine.checking_conflicts(self.check_conflicts))
    }

    /// Checks that `variant` runs in processes, with these options.
    fn check_for_processes(&self, variant: Variant, with: &'static str) -> Result<(), Error> {
        if !variant.has_ranks() {
            return Err(Error::NoRanks { variant: variant.name() });
        }
        if self.graph.is_some() {
            return Err(Error::NotTogether { option: "--graph", with });
        }
        Ok(())
    }

    /// Returns the machine of processes that `join` connects, given the numbers of ranks and workers.
    fn of_processes(
        &self,
        join: impl FnOnce(RankCount, Option<usize>) -> Result<Machine, Error>,
    ) -> Result<Machine, Error> {
        let MachineOptions { workers, workers_per_rank, slow_rank, runtime, .. } = &self.machine;
        let settings = runtime.settings()?;
        let all = self.ranks.map(RankCount::All);
        let ranks = all.or(self.ranks_per_process.map(RankCount::Each)).unwrap_or_default();
        let machine = join(ranks, workers.or(settings.workers()))?;
        let machine = machine.with_workers_per_rank(*workers_per_rank)?;
        Ok(machine.slowed(*slow_rank).set(settings))
    }

    #[cfg(feature = "mpi")]
    fn over_mpi(&self, settings: &[(&str, &str)]) -> Result<Machine, Error> {
        let machine =
            self.of_processes(|ranks, workers| processes::join_mpi(settings, ranks, workers))?;
        must_have_joined(machine.processes())?;
        Ok(machine)
    }

    #[cfg(not(feature = "mpi"))]
    fn over_mpi(&self, _: &[(&str, &str)]) -> Result<Machine, Error> {
        Err(Error::WithoutMpi)
    }
}

impl MachineOptions {
    pub(super) fn with_ranks(&self, ranks: usize) -> Result<Machine, Error> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let settings = self.runtime.settings()?;
        let workers = self.workers.or(settings.workers());
        let workers = workers.unwrap_or(cores.min(*Machine::WORKERS.end()));
        let machine = Machine::new(ranks, workers)?.with_workers_per_rank(self.workers_per_rank)?;
        Ok(machine.slowed(self.slow_rank).linked(self.link).set(settings))
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
