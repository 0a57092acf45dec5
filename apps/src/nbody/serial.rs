//! Reference: one thread.

use talpf_runtime::Clock;

use super::{Problem, Solution, kernel};
use crate::run::{Machine, Observer};

/// Moves the particles of `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let particles = problem.particles();
    let (bodies_of, axes_of) = (4 * particles.block(), 3 * particles.block());
    let sums_of = kernel::LIMBS * axes_of;
    let mut bodies = particles.bodies().to_vec();
    let mut velocities = particles.velocities().to_vec();
    let mut sums = vec![0.0; kernel::LIMBS * velocities.len()];
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "pull");
    for _ in 0..problem.steps() {
        trace.task(|| {
            for (targets, sums) in bodies.chunks(bodies_of).zip(sums.chunks_mut(sums_of)) {
                for sources in bodies.chunks(bodies_of) {
                    kernel::pull(targets, sources, sums);
                }
            }
            let blocks = bodies.chunks_mut(bodies_of).zip(velocities.chunks_mut(axes_of));
            for ((bodies, velocities), sums) in blocks.zip(sums.chunks_mut(sums_of)) {
                kernel::advance(bodies, velocities, sums);
            }
        });
        observer.progress.advance();
    }
    let seconds = clock.now().as_secs_f64();
    Solution { result: particles.moved(bodies, velocities), seconds, machine: Machine::ONE }
}
