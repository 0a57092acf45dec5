//! Multiplication on a square of ranks, each of which fetches the tiles that it needs: MatMulG of
//! Gerbessiotis.
//!
//! Rank `(i, j)` owns tile `(i, j)` of `A`, `B` and the product. In each of `q` rounds it gets one
//! tile of its row of `A` and one of its column of `B`, a different one than all others of that row
//! and column, and adds their product. Problems, kernel, serial and fork-join are those of
//! [`matmul`](crate::matmul).
//!
//! Two efficiencies are reported beside the time: relative to the time of the tile products alone,
//! which shows the cost of communication and tasks, and relative to the rate at which the machine
//! can add and multiply, which includes the cost of the kernel.

mod efficiency;
mod peak;
mod tasks;

use crate::matmul::{Problem, Solution, fork_join, serial};
use crate::run::{App, ForkJoin, Measure, Serial, Tasks, Variant};
use crate::{Error, Matrix};

/// Multiplication on a square of ranks, as an application.
#[derive(Debug)]
pub struct MatmulG;

impl App for MatmulG {
    const NAME: &'static str = "matmul-g";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const REPLAYED: &'static [Variant] =
        &[Variant::TalpfGet, Variant::Tampi, Variant::TampiBlocking];
    const USUAL: Variant = Variant::TalpfGet;
    const RANKS: usize = 4;
    const KERNELS: &'static [&'static str] = &["multiply"];
    type Problem = Problem;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts `A`, `B` and the product; with ranks also two fetched tiles of `A` and of `B`, and
    /// the result twice while it is assembled.
    fn bytes(variant: Variant, problem: &Problem, _: usize) -> u64 {
        let matrices = match variant {
            Variant::Serial => 3,
            Variant::ForkJoin => 4,
            _ => 9,
        };
        matrices * problem.matrix_bytes()
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        let side = ranks.isqrt();
        if side * side != ranks {
            return Err(Error::NotSquare { ranks });
        }
        Error::check_ranks(side, problem.size(), "rows, for each row of ranks")
    }

    /// Returns both efficiencies.
    fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
        efficiency::measures(problem, solution)
    }
}
