//! Repetition of a step on all ranks until it has lasted long enough.

use std::time::{Duration, Instant};

use tampi_shim::{Communicator, Error, Rank, Tag};

/// Counter of repetitions: batches grow until one lasts as long as the budget. Rank 0 decides.
///
/// Batches before the last one warm up and do not count.
pub(super) struct Repeat<'a> {
    world: &'a Communicator,
    budget: Duration,
    repetitions: u64,
    start: Option<Instant>,
    spent: Duration,
}

/// Tag of rank 0's decisions.
const DECISION: Tag = Tag::MAX;

impl<'a> Repeat<'a> {
    pub(super) fn new(world: &'a Communicator, budget: Duration) -> Self {
        Repeat { world, budget, repetitions: 1, start: None, spent: Duration::ZERO }
    }

    /// Begins the next batch and returns its number of repetitions; `None` after the last batch.
    pub(super) async fn next(&mut self) -> Result<Option<u64>, Error> {
        if let Some(start) = self.start {
            self.spent = self.decide(start.elapsed()).await?;
            // The first repetition sets up connections and wakes workers, unlike all later ones.
            if self.spent >= self.budget && self.repetitions > 1 {
                return Ok(None);
            }
            let missing = 1.2 * self.budget.as_secs_f64() / self.spent.as_secs_f64().max(1e-9);
            self.repetitions *= missing.clamp(2.0, 10.0) as u64;
        }
        self.start = Some(Instant::now());
        Ok(Some(self.repetitions))
    }

    /// Returns seconds per repetition of the last batch.
    pub(super) fn seconds(&self) -> f64 {
        self.spent.as_secs_f64() / self.repetitions as f64
    }

    /// Agrees on the time that rank 0 measured.
    async fn decide(&self, spent: Duration) -> Result<Duration, Error> {
        if self.world.rank() != Rank(0) {
            let (nanos, _) = self.world.recv(vec![0u64], Rank(0), DECISION).await?;
            return Ok(Duration::from_nanos(nanos[0]));
        }
        for other in 1..self.world.size() {
            let nanos = vec![spent.as_nanos() as u64];
            self.world.send(nanos, Rank(other), DECISION).await?;
        }
        Ok(Duration::from_nanos(spent.as_nanos() as u64))
    }
}
