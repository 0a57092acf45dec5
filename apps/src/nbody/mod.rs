//! Gravity between particles, all pairs of them.
//!
//! Particles are kept in blocks. In each step a block needs the forces of all blocks, itself
//! included, one after the other: a *chain* of tasks for each block. The blocks of other ranks come
//! round a ring. Which of the chains goes on first is a matter of priorities: without, a chain is
//! followed as far as it goes, and the last of them has the machine to itself; with them, chains
//! advance side by side.
//!
//! Forces are summed as fixed-point numbers, whose sums do not depend on their order. So every
//! variant gives bitwise the result of [`serial`].

pub mod fork_join;
pub mod kernel;
mod measures;
mod particle_file;
mod particles;
mod problem;
pub mod serial;
mod tasks;

use talpf_runtime::cores;

use crate::Error;
use crate::run::{self, App, ForkJoin, Measure, Serial, Tasks, Variant};

pub use particle_file::{load, parse};
pub use particles::{Particle, Particles};
pub use problem::Problem;

/// The particles after the last step.
pub type Solution = run::Solution<Particles>;

/// Particles of a block of `count` where nobody says how many: four blocks for each core. With fewer
/// than 64 a task does little but begin, with more than 512 two blocks fill the nearest cache (32 KiB).
pub fn block(count: usize) -> usize {
    (count / (4 * cores())).clamp(64, 512)
}

/// The simulation, as an application.
#[derive(Debug)]
pub struct Nbody;

impl App for Nbody {
    const NAME: &'static str = "nbody";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
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
    const KERNELS: &'static [&'static str] = &["pull", "move"];
    type Problem = Problem;
    type Outcome = Particles;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// The particles at the start, at work, passing by twice, and as a result.
    fn bytes(_: Variant, problem: &Problem, _: usize) -> u64 {
        5 * problem.particle_bytes()
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.particles().blocks(), "blocks of particles")
    }

    /// Energy and momentum, which do not change in nature.
    fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
        measures::measures(problem.particles(), &solution.result)
    }
}
