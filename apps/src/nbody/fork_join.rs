//! Bulk-synchronous threads: some blocks per worker, a barrier when all forces are summed and
//! another when all particles have moved.

use std::sync::Barrier;

use parking_lot::RwLock;
use talpf_runtime::Clock;
use talpf_traces::State;

use super::{Problem, Solution, kernel};
use crate::Error;
use crate::partition::share;
use crate::run::{Machine, Observer, team};

/// Moves the particles of `problem` in one rank on the workers of `machine`, or on one worker per
/// block if there are fewer blocks.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let particles = problem.particles();
    let machine = machine.at_most(1, particles.blocks());
    let (workers, axes_of) = (machine.workers(), 3 * particles.block());
    let sums_of = kernel::LIMBS * axes_of;
    // All workers read all blocks while none is written, so these locks never block.
    let blocks: Vec<_> = particles
        .bodies()
        .chunks(4 * particles.block())
        .map(|block| RwLock::new(block.to_vec()))
        .collect();
    let barrier = Barrier::new(workers);
    let clock = Clock::start();

    let work = |worker: usize| {
        let mine = share(blocks.len(), worker, workers);
        let velocities = &particles.velocities()[mine.start * axes_of..mine.end * axes_of];
        let mut velocities = velocities.to_vec();
        let mut sums = vec![0.0; kernel::LIMBS * velocities.len()];
        let mut trace = observer.thread(worker, &clock, "pull");
        barrier.wait();
        let start = clock.now();
        for _ in 0..problem.steps() {
            trace.task(|| {
                for (targets, sums) in mine.clone().zip(sums.chunks_mut(sums_of)) {
                    let targets = blocks[targets].read();
                    for sources in &blocks {
                        kernel::pull(&targets, &sources.read(), sums);
                    }
                }
            });
            trace.enter(State::Synchronization);
            barrier.wait();
            let moving = mine.clone().zip(velocities.chunks_mut(axes_of));
            for ((block, velocities), sums) in moving.zip(sums.chunks_mut(sums_of)) {
                kernel::advance(&mut blocks[block].write(), velocities, sums);
            }
            barrier.wait();
            if worker == 0 {
                observer.progress.advance();
            }
        }
        (velocities, (clock.now() - start).as_secs_f64())
    };
    let parts = team::run(workers, work)?;

    let seconds = parts[0].1;
    let velocities = parts.into_iter().flat_map(|(velocities, _)| velocities).collect();
    let bodies = blocks.into_iter().flat_map(RwLock::into_inner).collect();
    Ok(Solution { result: particles.moved(bodies, velocities), seconds, machine })
}
