//! Machine of a run: ranks, workers and settings.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use ibverbs_sim::{LinkModel, LinkModelError};
use talpf::{PollingFrequency, Profile, Progress, Settings};
use talpf_traces::counted;

use super::{Transport, Variant};
use crate::Error;

/// Ranks, the worker threads that they share, and the settings of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    ranks: usize,
    workers: usize,
    /// Workers of each rank, if ranks share none.
    workers_per_rank: Option<usize>,
    slowdown: Option<Slowdown>,
    transport: Transport,
    progress: Progress,
    settings: Settings,
    replay: bool,
    check_conflicts: bool,
    link: Option<SimulatedLink>,
    simulation: Option<Simulation>,
    dilation: Option<Dilation>,
}

/// Model of the link between ranks that run in real time: messages arrive no earlier than it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedLink {
    /// Model as the user has written it.
    pub text: &'static str,
    /// Times of messages.
    pub model: &'static LinkModel,
}

impl SimulatedLink {
    /// Reads a model, as [`LinkModel::parse`]. It lives as long as the process.
    ///
    /// **Errors**: those of [`LinkModel::parse`].
    pub fn parse(text: &str) -> Result<Self, LinkModelError> {
        let model = Box::leak(Box::new(LinkModel::parse(text)?));
        Ok(Self { text: Box::leak(text.into()), model })
    }
}

/// Virtual machine of a run in virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulation {
    /// Links and costs.
    pub profile: &'static Profile,
    /// Cores of each rank.
    pub cores: u32,
    /// `true` if the bodies of kernels are executed; otherwise arrays have no contents, and there is no
    /// result.
    pub executes: bool,
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, cores, executes } = self;
        write!(f, "profile {}, {} a rank", profile.name(), counted(*cores, "core"))?;
        if *executes { Ok(()) } else { f.write_str(", without execution") }
    }
}

impl Simulation {
    /// Limits of the number of cores of a rank.
    pub const CORES: RangeInclusive<usize> = 1..=1024;
}

/// Virtual cores of all ranks in real time, which is dilated: a task holds a core of its rank for a multiple of
/// the time that it takes, so that few workers compute for many cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dilation {
    /// Cores of each rank, in [`Simulation::CORES`].
    pub cores: u32,
    /// Factor by which the time of computations is multiplied.
    pub factor: f64,
}

impl Dilation {
    /// Limits of the factor.
    pub const FACTORS: RangeInclusive<f64> = 1.0..=1_000_000.0;
}

impl fmt::Display for Dilation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, factor } = self;
        write!(f, "dilated {factor}, {} a rank", counted(*cores, "core"))
    }
}

/// Ranks with slower cores than the machine's. Variants without ranks ignore it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Slow rank, or `None` for all ranks.
    pub rank: Option<usize>,
    /// Factor by which the time of computations is multiplied.
    pub factor: f64,
}

impl Slowdown {
    /// Limits of the factor.
    pub const FACTORS: RangeInclusive<f64> = 1.0..=1000.0;
}

impl Machine {
    /// Limits of the number of ranks.
    pub const RANKS: RangeInclusive<usize> = 1..=4096;
    /// Limits of the number of processes.
    pub const PROCESSES: RangeInclusive<usize> = 1..=1024;
    /// Limits of the number of workers.
    pub const WORKERS: RangeInclusive<usize> = 1..=1024;

    /// Machine of one rank on one worker.
    pub const ONE: Self = Self {
        ranks: 1,
        workers: 1,
        workers_per_rank: None,
        slowdown: None,
        transport: Transport::Verbs,
        progress: Progress::Workers,
        settings: Settings::NONE,
        replay: false,
        check_conflicts: false,
        link: None,
        simulation: None,
        dilation: None,
    };

    /// Creates a machine of `ranks` ranks on `workers` worker threads.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(ranks: usize, workers: usize) -> Result<Self, Error> {
        Ok(Self {
            ranks: Error::check_range("ranks", ranks, Self::RANKS)?,
            workers: Error::check_range("workers", workers, Self::WORKERS)?,
            workers_per_rank: None,
            slowdown: None,
            transport: Transport::Verbs,
            progress: Progress::Workers,
            settings: Settings::NONE,
            replay: false,
            check_conflicts: false,
            link: None,
            simulation: None,
            dilation: None,
        })
    }

    /// Returns the same machine with `each` workers for every rank, which run no tasks of others, in place of
    /// workers that the ranks of a process share, or as it is.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn with_workers_per_rank(self, each: Option<usize>) -> Result<Self, Error> {
        let Some(each) = each else { return Ok(self) };
        let workers = each.saturating_mul(self.ranks_here().len());
        let workers = Error::check_range("ranks times workers per rank", workers, Self::WORKERS)?;
        Ok(Self { workers, workers_per_rank: Some(each), ..self })
    }

    /// Returns the same machine with other settings of the runtime and of polling; the number of
    /// workers stays.
    pub fn set(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Returns the same machine with its ranks connected by `transport`.
    pub(super) fn over(self, transport: Transport) -> Self {
        Self { transport, ..self }
    }

    /// Returns the same machine with other processes served by workers or by a thread.
    pub fn served_by(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Returns what serves other processes.
    pub fn progress(self) -> Progress {
        self.progress
    }

    /// Returns the same machine with graphs recorded in one step and replayed in the others, or
    /// not.
    pub fn replaying(self, replay: bool) -> Self {
        Self { replay, ..self }
    }

    /// Returns the same machine with rounds that fail if they read and write the same location, or
    /// as its settings say.
    pub fn checking_conflicts(self, check_conflicts: bool) -> Self {
        Self { check_conflicts, ..self }
    }

    /// Returns the same machine with slow ranks.
    pub fn slowed(self, slowdown: Option<Slowdown>) -> Self {
        Self { slowdown, ..self }
    }

    /// Returns the same machine with ranks of one process connected by a link that a model describes, or by
    /// memory.
    pub fn linked(self, link: Option<SimulatedLink>) -> Self {
        Self { link, ..self }
    }

    /// Returns the model of the link in real time, if there is one.
    pub fn link(self) -> Option<SimulatedLink> {
        self.link
    }

    /// Returns the model of the link whose messages are held: in dilated time that of a link on which everything
    /// takes as many times as long.
    pub(super) fn link_model(self) -> Option<LinkModel> {
        let model = self.link?.model;
        Some(self.dilation.map_or_else(|| model.clone(), |dilation| model.slowed(dilation.factor)))
    }

    /// Returns the same machine in virtual time.
    pub fn simulated(self, simulation: Simulation) -> Self {
        Self { simulation: Some(simulation), ..self }
    }

    /// Returns the same machine with virtual cores in dilated time, or without.
    pub fn dilated(self, dilation: Option<Dilation>) -> Self {
        Self { dilation, ..self }
    }

    /// Returns the virtual cores in dilated time, if there are any.
    pub fn dilation(self) -> Option<Dilation> {
        self.dilation
    }

    /// Returns the polling frequency: that which the user sets, or that of the profile of a run in
    /// virtual time, or the default.
    ///
    /// **Errors**: an invalid setting in the environment.
    pub fn polling(self) -> Result<PollingFrequency, Error> {
        let profile = self.simulation.and_then(|simulation| simulation.profile.polling());
        match profile.filter(|_| !self.settings.sets_polling()) {
            Some(polling) => Ok(polling),
            None => Ok(self.settings.polling()?),
        }
    }

    /// Returns the virtual machine, if the run takes virtual time.
    pub fn simulation(self) -> Option<Simulation> {
        self.simulation
    }

    /// Returns `true` if the bodies of kernels are executed: always in real time.
    pub fn executes(self) -> bool {
        self.simulation.is_none_or(|simulation| simulation.executes)
    }

    /// Returns the part of this machine that a variant can use; both numbers must be at least one.
    pub fn at_most(self, ranks: usize, workers: usize) -> Self {
        let (ranks, workers) = (self.ranks.min(ranks), self.workers.min(workers));
        Self { ranks, workers, ..self }
    }

    /// Returns the number of ranks.
    pub fn ranks(self) -> usize {
        self.ranks
    }

    /// Returns the number of worker threads of all ranks of a process together.
    pub fn workers(self) -> usize {
        self.workers
    }

    /// Returns the number of workers of each rank, if ranks share none.
    pub fn workers_per_rank(self) -> Option<usize> {
        self.workers_per_rank
    }

    /// Returns the number of workers, or of virtual cores, that a trace has rows of for each rank.
    pub fn workers_of_rank(self) -> usize {
        self.simulation.map_or(self.workers, |simulation| simulation.cores as usize)
    }

    /// Returns the number of tasks of a rank that can run at a time: on its virtual cores, or on the workers that
    /// it has or shares with the others.
    pub fn cores_of_rank(self) -> usize {
        let dilated = self.dilation.map(|dilation| dilation.cores as usize);
        dilated.or(self.workers_per_rank).unwrap_or_else(|| self.workers_of_rank())
    }

    /// Returns the slow ranks, if there are any.
    pub fn slowdown(self) -> Option<Slowdown> {
        self.slowdown
    }

    /// Returns the transport between the ranks.
    pub fn transport(self) -> Transport {
        self.transport
    }

    /// Returns the number of processes.
    pub fn processes(self) -> usize {
        self.transport.process().map_or(1, |(_, processes)| processes)
    }

    /// Returns the ranks of this process.
    pub fn ranks_here(self) -> Range<usize> {
        let (process, processes) = self.transport.process().unwrap_or((0, 1));
        let each = self.ranks / processes;
        process * each..(process + 1) * each
    }

    /// Returns `true` if graphs are replayed.
    pub fn replays(self) -> bool {
        self.replay
    }

    /// Returns `true` if rounds fail that read and write the same location.
    ///
    /// **Errors**: an invalid setting in the environment.
    pub fn checks_conflicts(self) -> Result<bool, Error> {
        Ok(self.check_conflicts || self.settings.check_conflicts()?)
    }

    /// Returns the settings of the runtime and of polling.
    pub fn settings(self) -> Settings {
        self.settings
    }

    /// Checks that `variant` can run in dilated time on this machine, if it is to.
    ///
    /// **Errors**: [`Error::OutOfRange`], [`Error::NotTogether`]; [`Error::Dilation`] if the workers could not
    /// compute what all virtual cores hold.
    pub fn check_dilation(self, variant: Variant) -> Result<(), Error> {
        const DILATE: &str = "--dilate";
        let Some(Dilation { cores, factor }) = self.dilation else { return Ok(()) };
        let excluded = [
            (variant.name(), !variant.has_ranks()),
            ("--replay", self.replay),
            ("--simulate", self.simulation.is_some()),
            ("several processes", self.transport != Transport::Verbs),
        ];
        if let Some((option, _)) = excluded.into_iter().find(|(_, is_excluded)| *is_excluded) {
            return Err(Error::NotTogether { option, with: DILATE });
        }
        Error::check_range("cores of a rank", cores as usize, Simulation::CORES)?;
        let workers = self.workers.min(talpf_runtime::cores());
        let virtual_cores = self.ranks * cores as usize;
        let least = virtual_cores as f64 / workers as f64;
        // False for a factor that is no number.
        if factor >= least.max(*Dilation::FACTORS.start()) {
            return Ok(());
        }
        Err(Error::Dilation { factor, least, ranks: self.ranks, cores, workers })
    }

    /// Checks that the ranks of `variant` can be in processes of these numbers: messages of MPI are from one
    /// process to another, and know no ranks within.
    ///
    /// **Errors**: [`Error::MessagesOfProcesses`].
    pub(super) fn check_messages(self, variant: Variant) -> Result<(), Error> {
        let (ranks, processes) = (self.ranks, self.processes());
        if self.transport.is_mpi() && variant.is_two_sided() && ranks > processes {
            return Err(Error::MessagesOfProcesses { variant: variant.name(), ranks, processes });
        }
        Ok(())
    }

    /// Checks that the slow rank is one of the ranks.
    pub(super) fn check_slow_rank(self) -> Result<(), Error> {
        if let Some(Slowdown { rank: Some(rank), .. }) = self.slowdown {
            Error::check_range("slow rank", rank, 0..=self.ranks - 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_holds_on_both_sides() {
        for (ranks, workers) in [(1, 1), (4096, 1024)] {
            assert!(Machine::new(ranks, workers).is_ok());
        }
        for bad in [0, 4097] {
            let ranks = Machine::new(bad, 1).unwrap_err().to_string();
            assert_eq!(ranks, format!("ranks is {bad}, expected 1 to 4096"));
        }
        for bad in [0, 1025] {
            let workers = Machine::new(1, bad).unwrap_err().to_string();
            assert_eq!(workers, format!("workers is {bad}, expected 1 to 1024"));
        }
    }

    #[test]
    fn workers_of_all_ranks_together_are_limited() {
        let machine = Machine::new(4, 1).unwrap();
        let of = |each| machine.with_workers_per_rank(each).map(|machine| machine.workers());
        assert_eq!([of(None).unwrap(), of(Some(1)).unwrap(), of(Some(256)).unwrap()], [1, 4, 1024]);
        for (bad, workers) in [(0, 0), (257, 1028), (usize::MAX, usize::MAX)] {
            let error = of(Some(bad)).unwrap_err().to_string();
            let says = "expected 1 to 1024";
            assert_eq!(error, format!("ranks times workers per rank is {workers}, {says}"));
        }
    }

    #[test]
    fn slow_rank_is_one_of_the_ranks() {
        let machine = Machine::new(3, 1).unwrap();
        let slow = |rank| machine.slowed(Some(Slowdown { rank, factor: 2.0 })).check_slow_rank();
        assert!(slow(None).is_ok() && slow(Some(2)).is_ok());
        let error = slow(Some(3)).unwrap_err().to_string();
        assert_eq!(error, "slow rank is 3, expected 0 to 2");
    }
}
