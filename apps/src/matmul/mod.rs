//! Repeated multiplication of matrices: `A` becomes `A B` in every iteration.
//!
//! Every rank owns a slice of rows of `A`, and one of `B` that goes round a ring. Numbers are whole
//! numbers modulo a prime, held as `f64`: all sums are exact in every order, so every variant gives
//! bitwise the result of [`serial`], and the numbers do not grow. The kernel does not rely on that;
//! it multiplies any `f64` matrices.
//!
//! `B` does not change, so it is packed for the kernel once, before the first multiplication, and
//! goes round packed.

pub mod fork_join;
pub mod kernel;
pub mod panels;
mod problem;
pub mod serial;
mod tasks;

use talpf_runtime::cores;

use crate::run::{self, App, ForkJoin, Serial, Tasks, Variant};
use crate::{Error, Matrix};

pub use problem::Problem;

/// Last product.
pub type Solution = run::Solution<Matrix>;

/// Returns the default number of rows of a block of matrices of `size x size`: two blocks of the
/// product for each core. With fewer than 64 rows every number of the product is read and written
/// for few products; more than 256 measured slower, and leave fewer blocks to distribute.
pub fn block(size: usize) -> usize {
    (size / (2 * cores())).clamp(64, 256)
}

/// Multiplication on a ring, as an application.
#[derive(Debug)]
pub struct Matmul;

/// Kind of work of a multiplication and an addition.
pub(crate) const WORK: &str = "matmul";

impl App for Matmul {
    const WORK: &'static [&'static str] = &[WORK];
    const NAME: &'static str = "matmul";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::Lpf,
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const REPLAYED: &'static [Variant] = &[
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const KERNELS: &'static [&'static str] = &["multiply"];
    type Problem = Problem;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts `A`, `B` and the product; with ranks also the buffers of the ring, and the result
    /// twice while it is assembled.
    fn bytes(variant: Variant, problem: &Problem, _: usize) -> u64 {
        let matrices = match variant {
            Variant::Serial => 3,
            Variant::ForkJoin => 4,
            _ => 7,
        };
        matrices * problem.matrix_bytes()
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.blocks(), "row blocks")
    }
}
