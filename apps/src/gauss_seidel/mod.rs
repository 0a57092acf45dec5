//! Heat diffusion on a rectangle with the Gauss-Seidel method: each step replaces every inner
//! cell, row by row from the upper left, by the mean of its four neighbours, of which the upper and
//! the left one are new already.
//!
//! One matrix is enough, and half as many steps do as much as with Jacobi; but a block needs the
//! blocks above and to the left of it in the same step, and those below and to the right in the
//! step before. So work moves over the matrix in wavefronts. How long a rank waits for its
//! neighbours' parts of them is what tells the variants apart; all give bitwise the result of
//! [`serial`].

pub mod fork_join;
pub mod kernel;
pub mod serial;
mod tasks;

use crate::run::{self, App, Machine, Observer, Variant};
use crate::{Error, Matrix};

pub use crate::heat::Problem;

/// A solved problem: the cells with their border (`(rows + 2) x (cols + 2)`).
pub type Solution = run::Solution<Matrix>;

/// The solver, as an application.
#[derive(Debug)]
pub struct GaussSeidel;

impl App for GaussSeidel {
    const NAME: &'static str = "gauss-seidel";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::TalpfDefault,
        Variant::TalpfLanes,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const REPLAYED: &'static [Variant] =
        &[Variant::TalpfDefault, Variant::TalpfLanes, Variant::Tampi, Variant::TampiBlocking];
    const KERNELS: &'static [&'static str] = &["gauss-seidel", "sweep"];
    type Problem = Problem;
    type Outcome = Matrix;

    /// One matrix in parts with halos of their own, and the parts put together.
    fn bytes(variant: Variant, problem: &Problem, ranks: usize) -> u64 {
        match variant {
            Variant::Serial => problem.matrix_bytes(),
            _ => 2 * problem.band_bytes(ranks),
        }
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        problem.check_ranks(ranks)
    }

    fn solve(
        variant: Variant,
        problem: &Problem,
        machine: Machine,
        observer: &Observer,
    ) -> Result<Option<Solution>, Error> {
        match variant.communication() {
            Some(communication) => tasks::solve(problem, machine, communication, observer),
            None if variant == Variant::Serial => Ok(Some(serial::solve(problem, observer))),
            None => fork_join::solve(problem, machine, observer).map(Some),
        }
    }
}

/// Solves `problem` and returns the matrix after the last step.
///
/// **Completion**, **Errors**, and when there is none: those of [`run::run`].
pub fn run(
    variant: Variant,
    problem: &Problem,
    machine: Machine,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    run::run::<GaussSeidel>(variant, problem, machine, observer)
}
