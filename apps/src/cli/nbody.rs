//! Options of a particle problem.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use talpf_apps::Error;
use talpf_apps::nbody::{self, Particles, Problem};

use super::number_within::number_within;
use super::run_options::Preset;

/// Particles, and the number of steps.
#[derive(Args, Debug)]
pub(super) struct ProblemOptions {
    /// Particles to generate [default: 4096]
    #[arg(long, value_name = "N", value_parser = number_within(Particles::COUNTS),
          conflicts_with = "file")]
    particles: Option<usize>,

    /// Particles per block; a task computes the forces between two blocks
    /// [default: four blocks per core, of 64 to 512]
    #[arg(long, value_name = "B", value_parser = number_within(Particles::COUNTS))]
    block: Option<usize>,

    /// Steps to compute [default: 20]
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS))]
    steps: Option<usize>,

    /// Give tasks at the beginning of long chains a higher priority: better with ranks that wait for
    /// a slow one, worse for caches
    #[arg(long, value_enum, default_value_t = Switch::Off)]
    priorities: Switch,

    /// Particles, a text file: x, y, z, vx, vy, vz and mass per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Seed of the generated particles
    #[arg(long, value_name = "S", value_parser = number_within(0..=usize::MAX), default_value_t = 1)]
    seed: usize,

    /// Sizes for options that are not given: 65536 particles in blocks of 512, 100 steps
    #[arg(long, value_enum)]
    preset: Option<Preset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl ProblemOptions {
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        let (particles, usual, steps) = match self.preset {
            None => (4096, None, 20),
            Some(Preset::Thesis) => (65_536, Some(512), 100),
        };
        let block = |count| self.block.or(usual).unwrap_or_else(|| nbody::block(count));
        let steps = self.steps.unwrap_or(steps);
        let seed = self.seed as u64;
        let particles = match &self.file {
            Some(path) => {
                let particles = nbody::load(path)?;
                Particles::new(&particles, block(particles.len()))
            }
            None => {
                let count = self.particles.unwrap_or(particles);
                Particles::generate(count, block(count), seed)
            }
        };
        Problem::new(particles, steps, self.priorities == Switch::On, seed)
    }
}
