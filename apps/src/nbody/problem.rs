//! Particle problem.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Particles, kernel};
use crate::Error;
use crate::run::{self, Work};

/// Particles and a number of steps. Clones share the particles.
#[derive(Clone, Debug)]
pub struct Problem {
    particles: Arc<Particles>,
    steps: usize,
    priorities: bool,
    seed: u64,
}

impl Problem {
    /// Limits of the number of steps.
    pub const STEPS: RangeInclusive<usize> = 1..=1_000_000_000;

    /// Creates a problem of `steps` steps. With `priorities` tasks have priorities; `seed`
    /// generates the particles of a [scaled](run::Problem::scaled) problem.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(
        particles: Particles,
        steps: usize,
        priorities: bool,
        seed: u64,
    ) -> Result<Self, Error> {
        Particles::check(particles.len(), particles.block())?;
        let steps = Error::check_range("steps", steps, Self::STEPS)?;
        Ok(Self { particles: Arc::new(particles), steps, priorities, seed })
    }

    /// Returns the particles before the first step.
    pub fn particles(&self) -> &Particles {
        &self.particles
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns `true` if tasks have priorities.
    pub fn priorities(&self) -> bool {
        self.priorities
    }

    /// Returns the bytes of all particles with their sums of forces.
    pub(super) fn particle_bytes(&self) -> u64 {
        let places = (self.particles.blocks() * self.particles.block()) as u64;
        places * ((7 + 3 * kernel::LIMBS) * size_of::<f64>()) as u64
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("particles", self.particles.len()),
            ("block", self.particles.block()),
            ("steps", self.steps),
            ("priorities", usize::from(self.priorities)),
        ]
    }

    fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of pairs of particles.
    fn work(&self) -> Work {
        let amount = (self.particles.len() as f64).powi(2) * self.steps as f64;
        Work { amount, unit: "Mpairs/s", field: "mpairs_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        self.particle_bytes()
    }

    /// Generates more particles: as many as have `factor` times the pairs.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        if factor == 1 {
            return Ok(self.clone());
        }
        let len = (self.particles.len() as f64 * (factor as f64).sqrt()).round() as usize;
        let block = self.particles.block();
        Particles::check(len, block)?;
        let particles = Particles::generate(len, block, self.seed);
        Self::new(particles, self.steps, self.priorities, self.seed)
    }
}
