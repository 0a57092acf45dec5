//! What is run, and who runs it.

use std::sync::Arc;
use std::time::Duration;

use super::checksum::{begin, fold};
use super::{Graph, Kernel};
use crate::error::Error;

/// A graph whose tasks each run `iterations` of a kernel.
#[derive(Clone, Debug)]
pub struct Work {
    /// The graph.
    pub graph: Arc<Graph>,
    /// What a task computes.
    pub kernel: Kernel,
    /// How often.
    pub iterations: u64,
}

/// A run of all tasks.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// From the creation of the first task to the end of the last.
    pub elapsed: Duration,
    /// The checksum of the rows that the run left.
    pub checksum: u64,
}

/// Somebody who runs graphs, on all cores.
pub trait Contender {
    /// The name in reports.
    fn name(&self) -> &'static str;

    /// Runs every task once, in an order that the dependences allow.
    ///
    /// **Errors**: those of whoever runs them. The caller checks the result.
    fn run(&mut self, work: &Work) -> Result<Run, Error>;

    /// Iterations a second on all cores without tasks, with the contender's own compiler.
    ///
    /// **Errors**: those of a peer's program.
    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error>;
}

/// A number of a row, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Cell<T>(pub T);

/// What the body of a task needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    kernel: Kernel,
    iterations: u64,
    step: usize,
    point: usize,
}

impl Work {
    /// The task of a point.
    #[inline]
    pub fn task(&self, step: usize, point: usize) -> Task {
        Task { kernel: self.kernel, iterations: self.iterations, step, point }
    }
}

impl Task {
    /// Runs the kernel. Gives what belongs into the task's cell, given what is there.
    #[inline]
    pub fn run(self, cell: u64, inputs: impl Iterator<Item = u64>) -> u64 {
        let sum = inputs.fold(begin(cell, self.step, self.point), fold);
        self.kernel.run(self.iterations);
        sum
    }
}
