//! Gravity between all pairs of particles.
//!
//! Particles are kept in blocks. In each step a block needs the forces of all blocks, itself
//! included, one after the other: a *chain* of tasks for each block. The blocks of other ranks go
//! round a ring. Priorities decide which chain proceeds first: without priorities, a chain is
//! followed as far as possible, and the last one has the machine to itself; with priorities, chains
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

/// Particles after the last step.
pub type Solution = run::Solution<Particles>;

/// Returns the default number of particles per block of `count` particles: four blocks for each
/// core. With fewer than 64 particles the overhead of a task dominates, with more than 512 two
/// blocks fill the first-level cache (32 KiB).
pub fn block(count: usize) -> usize {
    (count / (4 * cores())).clamp(64, 512)
}

/// Simulation as an application.
#[derive(Debug)]
pub struct Nbody;

/// Kind of work of a pair of particles.
pub(crate) const WORK: &str = "nbody";

impl App for Nbody {
    const WORK: &'static [&'static str] = &[WORK];
    const NAME: &'static str = "nbody";
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
    const KERNELS: &'static [&'static str] = &["pull", "move"];
    type Problem = Problem;
    type Outcome = Particles;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts the particles at the start, at work, twice in the ring, and as a result.
    fn bytes(_: Variant, problem: &Problem, _: usize) -> u64 {
        5 * problem.particle_bytes()
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.particles().blocks(), "blocks of particles")
    }

    /// Returns energy and momentum, which are conserved in nature.
    fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
        measures::measures(problem.particles(), &solution.result)
    }
}
