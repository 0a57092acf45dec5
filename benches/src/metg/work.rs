//! Work of a run, and the interface of the contenders that run it.

use std::sync::Arc;
use std::time::Duration;

use super::checksum::{begin, fold};
use super::{Graph, Kernel};
use crate::error::Error;

/// Graph whose tasks each run `iterations` of a kernel.
#[derive(Clone, Debug)]
pub struct Work {
    /// Graph of the tasks.
    pub graph: Arc<Graph>,
    /// Kernel of every task.
    pub kernel: Kernel,
    /// Iterations of the kernel per task.
    pub iterations: u64,
}

/// Result of one run of all tasks.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Time from the creation of the first task to the end of the last.
    pub elapsed: Duration,
    /// Checksum of the rows that the run left.
    pub checksum: u64,
}

/// Runtime that runs graphs on all cores.
pub trait Contender {
    /// Returns the name in reports.
    fn name(&self) -> &'static str;

    /// Runs every task once, in an order that the dependences allow.
    ///
    /// **Errors**: those of the contender. The caller checks the result.
    fn run(&mut self, work: &Work) -> Result<Run, Error>;

    /// Measures iterations per second on all cores without tasks, with the contender's own
    /// compiler.
    ///
    /// **Errors**: those of a peer's program.
    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error>;
}

/// Number of a row, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Cell<T>(pub T);

/// Parameters of the body of a task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    kernel: Kernel,
    iterations: u64,
    step: usize,
    point: usize,
}

impl Work {
    /// Returns the task of a point.
    #[inline]
    pub fn task(&self, step: usize, point: usize) -> Task {
        Task { kernel: self.kernel, iterations: self.iterations, step, point }
    }
}

impl Task {
    /// Runs the kernel. Returns the new value of the task's cell, given the previous one.
    #[inline]
    pub fn run(self, cell: u64, inputs: impl Iterator<Item = u64>) -> u64 {
        let sum = inputs.fold(begin(cell, self.step, self.point), fold);
        self.kernel.run(self.iterations);
        sum
    }
}
