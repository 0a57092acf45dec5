//! Interface between an application and its callers.

use super::{Machine, Observer, Solution, Variant};
use crate::matrix::Matrix;
use crate::{Error, memory};

/// Application: one kernel in several variants.
pub trait App: Sized + 'static {
    /// Name on the command line, in results and of traces.
    const NAME: &'static str;
    /// Variants of the application; [`Variant::Serial`] is the first.
    const VARIANTS: &'static [Variant];
    /// Default variant.
    const USUAL: Variant = Variant::TalpfCached;
    /// Variants that can replay their graphs.
    const REPLAYED: &'static [Variant] = &[];
    /// Labels of the kernel's tasks in traces.
    const KERNELS: &'static [&'static str];
    /// Kinds of work of the kernel's tasks, whose costs a run in virtual time needs; none if the
    /// application does not run in virtual time.
    const WORK: &'static [&'static str] = &[];
    /// Default number of ranks.
    const RANKS: usize = 2;
    /// Type of the problem.
    type Problem: Problem;
    /// Type of the result.
    type Outcome: Outcome;
    /// Function of [`Variant::Serial`].
    const SERIAL: Serial<Self>;
    /// Function of [`Variant::ForkJoin`].
    const FORK_JOIN: ForkJoin<Self>;
    /// Function of the variants with tasks.
    const TASKS: Tasks<Self>;

    /// Returns the largest number of bytes that a run needs at once.
    fn bytes(variant: Variant, problem: &Self::Problem, ranks: usize) -> u64;

    /// Checks that the problem can be distributed to `ranks` ranks.
    ///
    /// **Errors**: the reason why it cannot.
    fn check_ranks(problem: &Self::Problem, ranks: usize) -> Result<(), Error>;

    /// Returns the number of ranks that the problem says it is distributed to, if it does.
    fn ranks_of(_: &Self::Problem) -> Option<usize> {
        None
    }

    /// Checks that a variant can solve the problem on `ranks` ranks.
    ///
    /// **Errors**: the reason why it cannot.
    fn check_variant(_: Variant, _: &Self::Problem, _ranks: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Returns measures of this application beside time and checksum.
    fn measures(_: &Self::Problem, _: &Solution<Self::Outcome>) -> Vec<Measure> {
        Vec::new()
    }
}

/// Function that solves a problem in one thread.
pub type Serial<A> = fn(&<A as App>::Problem, &Observer) -> Solution<<A as App>::Outcome>;
/// Function that solves a problem with threads and barriers.
pub type ForkJoin<A> =
    fn(&<A as App>::Problem, Machine, &Observer) -> Result<Solution<<A as App>::Outcome>, Error>;
/// Function that solves a problem with tasks; the result is `None` in processes without rank 0.
pub type Tasks<A> = fn(
    &<A as App>::Problem,
    Machine,
    Variant,
    &Observer,
) -> Result<Option<Solution<<A as App>::Outcome>>, Error>;

/// Problem of an application.
pub trait Problem: Clone + Send + Sync + 'static {
    /// Returns the parameters, in the order in which results show them.
    fn parameters(&self) -> Vec<(&'static str, usize)>;

    /// Returns the number of steps of a run.
    fn steps(&self) -> usize;

    /// Returns the work of the whole run.
    fn work(&self) -> Work;

    /// Returns the number of bytes of the result.
    fn result_bytes(&self) -> u64;

    /// Returns a problem of the same kind with about `factor` times the work.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    fn scaled(&self, factor: usize) -> Result<Self, Error>;
}

/// Amount of work in a unit of the application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Number of units.
    pub amount: f64,
    /// Unit of the rate, in millions per second: `Mupdates/s`.
    pub unit: &'static str,
    /// Name of that rate in JSON: `mupdates_per_s`.
    pub field: &'static str,
}

/// Number that only one application reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Name in results and in JSON.
    pub name: &'static str,
    /// Value of the measure.
    pub value: f64,
    /// Description of the value.
    pub meaning: &'static str,
}

/// Result of a run.
pub trait Outcome: Send {
    /// Sums all numbers of the result.
    fn checksum(&self) -> f64;

    /// Hashes the exact bits of all numbers of the result.
    fn hash(&self) -> u64;

    /// Returns a description of the first position at which the bits differ from those of
    /// `expected`, and the two values there.
    fn difference(&self, expected: &Self) -> Option<(String, f64, f64)>;

    /// Returns the matrix that a picture of the result shows.
    fn picture(&self) -> Matrix;

    /// Returns the number of steps that were computed, if the result has decided it.
    fn steps(&self) -> Option<usize> {
        None
    }
}

impl Outcome for Matrix {
    fn checksum(&self) -> f64 {
        self.sum()
    }

    fn hash(&self) -> u64 {
        Matrix::hash(self)
    }

    fn difference(&self, expected: &Self) -> Option<(String, f64, f64)> {
        let at = self.first_difference(expected)?;
        Some((format!("row {}, column {}", at.row, at.col), at.found, at.expected))
    }

    fn picture(&self) -> Matrix {
        self.clone()
    }
}

impl<R: Outcome> Solution<R> {
    /// Returns the work of the steps that were computed.
    pub fn work(&self, problem: &impl Problem) -> Work {
        let work = problem.work();
        let share = |steps| steps as f64 / problem.steps() as f64;
        Work { amount: work.amount * self.result.steps().map_or(1.0, share), ..work }
    }
}

/// Returns the largest number of bytes that the data of a run needs at once. Without execution that is
/// the state of the ranks, which grows with their number, and not the contents of arrays.
pub fn bytes<A: App>(variant: Variant, problem: &A::Problem, machine: Machine) -> u64 {
    /// Bytes of a rank, with the tasks of some steps.
    const RANK: u64 = 256 << 10;
    /// Bytes for each rank that could be a peer.
    const PEER: u64 = 64;
    let ranks = machine.ranks() as u64;
    match machine.executes() {
        true => A::bytes(variant, problem, machine.ranks()),
        false => ranks * (RANK + PEER * ranks),
    }
}

/// Solves `problem` and returns its result; if ranks are processes, only at rank 0.
///
/// **Completion**: every thread that was started has ended.
///
/// **Errors**: [`Error::NoSuchVariant`], [`Error::NoReplay`], [`Error::MoreRanks`],
/// those of [`App::check_variant`] and [`Machine::check_dilation`], [`Error::MessagesOfProcesses`],
/// [`Error::Memory`], [`Error::Worker`], [`Error::OutOfRange`] for a slow rank that does not exist,
/// [`Error::Interrupted`] if the observer's interrupt has ended the run, and [`Error::Talpf`] for
/// errors of variants with tasks.
pub fn run<A: App>(
    variant: Variant,
    problem: &A::Problem,
    machine: Machine,
    observer: &Observer,
) -> Result<Option<Solution<A::Outcome>>, Error> {
    if !A::VARIANTS.contains(&variant) {
        return Err(Error::NoSuchVariant { app: A::NAME, variant: variant.name() });
    }
    if machine.replays() && !A::REPLAYED.contains(&variant) {
        return Err(Error::NoReplay {
            app: A::NAME,
            variant: variant.name(),
            replayed: A::REPLAYED,
        });
    }
    machine.check_slow_rank()?;
    machine.check_dilation(variant)?;
    machine.check_messages(variant)?;
    A::check_ranks(problem, machine.ranks())?;
    A::check_variant(variant, problem, machine.ranks())?;
    memory::require(bytes::<A>(variant, problem, machine), variant, machine)?;
    match variant {
        Variant::Serial => Ok(Some(A::SERIAL(problem, observer))),
        Variant::ForkJoin => A::FORK_JOIN(problem, machine, observer).map(Some),
        _ => A::TASKS(problem, machine, variant, observer),
    }
}
