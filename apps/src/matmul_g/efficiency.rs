//! Efficiency of a run.

use talpf_runtime::{Clock, cores};

use super::peak;
use crate::Matrix;
use crate::matmul::kernel::{self, Factor, Term};
use crate::matmul::{Problem, Solution, panels};
use crate::run::{self, Measure};

const REPETITIONS: usize = 5;

/// Returns the efficiencies of `solution` on the cores that its workers had.
///
/// **Source**: MPPA run-time paper, section 5.
pub(super) fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
    let used = solution.machine.workers().min(cores()) as f64;
    let flops = run::Problem::work(problem).amount;
    let side = solution.machine.ranks().isqrt();
    let against = |flops_per_s: f64| flops / (flops_per_s * used * solution.seconds.max(1e-9));
    vec![
        Measure {
            name: "tile_efficiency",
            value: against(tile_flops_per_s(problem, side)),
            meaning: "of the time of the tile products alone",
        },
        Measure {
            name: "bound_efficiency",
            value: against(peak::flops_per_s()),
            meaning: "of the rate of multiplication and addition",
        },
    ]
}

/// Measures the rate of a core in the task of a tile product, the best of several samples.
fn tile_flops_per_s(problem: &Problem, side: usize) -> f64 {
    let tile = problem.size().div_ceil(side);
    let rows = problem.block().min(tile);
    let a = kernel::initial(Factor::A, 0..rows, 0..tile);
    let b = panels::pack(kernel::initial(Factor::B, 0..tile, 0..tile).view());
    let mut c = Matrix::zeros(rows, tile);
    let rates = (0..REPETITIONS).map(|_| {
        let clock = Clock::start();
        kernel::multiply(a.view(), &b, c.view_mut(), Term::ONLY);
        2.0 * (rows * tile * tile) as f64 / clock.now().as_secs_f64()
    });
    rates.fold(0.0, f64::max)
}
