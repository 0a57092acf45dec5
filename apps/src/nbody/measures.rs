//! Conserved quantities: energy and momentum.

use super::kernel::{SOFTENING, potential};
use super::{Particle, Particles};
use crate::run::Measure;

/// Returns energy and momentum at the end, and the drift of the energy since the start.
///
/// **Cost**: that of two steps in one thread.
pub(super) fn measures(start: &Particles, end: &Particles) -> Vec<Measure> {
    let (before, after) = (energy(start), energy(end));
    let drift = if before == 0.0 { 0.0 } else { (after - before) / before };
    vec![
        Measure { name: "energy", value: after, meaning: "kinetic and potential" },
        Measure { name: "drift", value: drift, meaning: "of the energy since the start" },
        Measure { name: "momentum", value: momentum(end), meaning: "of all particles" },
    ]
}

fn energy(particles: &Particles) -> f64 {
    let half_squares = |p: &Particle| 0.5 * p.velocity.iter().map(|v| v * v).sum::<f64>();
    let kinetic: f64 = particles.iter().map(|p| p.mass * half_squares(&p)).sum();
    // Every pair counts twice, and every particle once with itself.
    let own: f64 = particles.iter().map(|p| p.mass * p.mass / SOFTENING.sqrt()).sum();
    let blocks = || particles.bodies().chunks(4 * particles.block());
    let pairs = blocks().flat_map(|targets| blocks().map(move |sources| (targets, sources)));
    let double: f64 = pairs.map(|(targets, sources)| potential(targets, sources)).sum();
    kinetic + (double + own) / 2.0
}

fn momentum(particles: &Particles) -> f64 {
    let along = |axis: usize| particles.iter().map(|p| p.mass * p.velocity[axis]).sum::<f64>();
    (0..3).map(|axis| along(axis).powi(2)).sum::<f64>().sqrt()
}
