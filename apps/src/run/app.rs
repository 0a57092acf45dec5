//! The interface between an application and whoever runs it.

use super::{Machine, Observer, Solution, Variant};
use crate::matrix::Matrix;
use crate::{Error, memory};

/// An application: one kernel, several ways to run it.
pub trait App: Sized + 'static {
    /// The name on the command line, in results and of traces.
    const NAME: &'static str;
    /// The ways to run it; [`Variant::Serial`] is the first.
    const VARIANTS: &'static [Variant];
    /// The one where nobody names one.
    const USUAL: Variant = Variant::TalpfCached;
    /// Those of them that can replay their graphs.
    const REPLAYED: &'static [Variant] = &[];
    /// The labels in traces of the work that a kernel does.
    const KERNELS: &'static [&'static str];
    /// Ranks where nobody says how many.
    const RANKS: usize = 2;
    /// What is to be solved.
    type Problem: Problem;
    /// What a run gives.
    type Outcome: Outcome;
    /// How [`Variant::Serial`] solves a problem.
    const SERIAL: Serial<Self>;
    /// How [`Variant::ForkJoin`] does.
    const FORK_JOIN: ForkJoin<Self>;
    /// How the variants with tasks do.
    const TASKS: Tasks<Self>;

    /// Bytes that a run needs at its largest.
    fn bytes(variant: Variant, problem: &Self::Problem, ranks: usize) -> u64;

    /// How many ranks the problem can be cut for.
    ///
    /// **Errors**: why `ranks` are none of them.
    fn check_ranks(problem: &Self::Problem, ranks: usize) -> Result<(), Error>;

    /// What else there is to say about a result.
    fn measures(_: &Self::Problem, _: &Solution<Self::Outcome>) -> Vec<Measure> {
        Vec::new()
    }
}

/// One thread solves it.
pub type Serial<A> = fn(&<A as App>::Problem, &Observer) -> Solution<<A as App>::Outcome>;
/// Threads with barriers solve it.
pub type ForkJoin<A> =
    fn(&<A as App>::Problem, Machine, &Observer) -> Result<Solution<<A as App>::Outcome>, Error>;
/// Tasks solve it; there is a result where rank 0 is.
pub type Tasks<A> = fn(
    &<A as App>::Problem,
    Machine,
    Variant,
    &Observer,
) -> Result<Option<Solution<<A as App>::Outcome>>, Error>;

/// A problem of an application.
pub trait Problem: Clone + Send + Sync + 'static {
    /// Its numbers, in the order in which results show them.
    fn parameters(&self) -> Vec<(&'static str, usize)>;

    /// Steps that a run counts.
    fn steps(&self) -> usize;

    /// The work of the whole run.
    fn work(&self) -> Work;

    /// Bytes of the result.
    fn result_bytes(&self) -> u64;

    /// A problem of the same kind with about `factor` times the work.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    fn scaled(&self, factor: usize) -> Result<Self, Error>;
}

/// An amount of work in the unit that is the application's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// How much.
    pub amount: f64,
    /// Of what, in millions a second: `Mupdates/s`.
    pub unit: &'static str,
    /// The name of that rate in JSON: `mupdates_per_s`.
    pub field: &'static str,
}

/// A number that one application alone reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Its name, in results and in JSON.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What the value is, in words.
    pub meaning: &'static str,
}

/// The result of a run, as something to compare, to sum up and to look at.
pub trait Outcome: Send {
    /// The sum of all its numbers.
    fn checksum(&self) -> f64;

    /// A hash of the exact bits of all its numbers.
    fn hash(&self) -> u64;

    /// Where this result differs first from the `expected` one in its bits, in words, and the two
    /// values there.
    fn difference(&self, expected: &Self) -> Option<(String, f64, f64)>;

    /// What a picture of it shows.
    fn picture(&self) -> Matrix;
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

/// Solves `problem` and returns its result; where ranks are processes, at rank 0 alone.
///
/// **Completion**: every thread that was started has ended.
///
/// **Errors**: [`Error::NoSuchVariant`], [`Error::NoReplay`], [`Error::MoreRanks`], [`Error::Memory`],
/// [`Error::Worker`], [`Error::OutOfRange`] for a slow rank that does not exist,
/// [`Error::Interrupted`] if the observer's interrupt has ended it, and [`Error::Talpf`] for what a
/// variant with tasks can run into.
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
    A::check_ranks(problem, machine.ranks())?;
    let data = A::bytes(variant, problem, machine.ranks());
    memory::require(data, variant, machine)?;
    match variant {
        Variant::Serial => Ok(Some(A::SERIAL(problem, observer))),
        Variant::ForkJoin => A::FORK_JOIN(problem, machine, observer).map(Some),
        _ => A::TASKS(problem, machine, variant, observer),
    }
}
