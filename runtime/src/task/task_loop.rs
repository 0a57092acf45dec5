//! Loops of tasks: an index range cut into chunks, with a task for each.

use std::fmt;
use std::ops::Range;

use super::{Children, Once, TaskBuilder};
use crate::error::Error;
use crate::group::Group;

/// Number of chunks for each worker unless a grain is given.
const CHUNKS_PER_WORKER: usize = 4;

impl Group {
    /// Begins the declaration of a loop: tasks that go through an index range, a chunk each.
    ///
    /// ```
    /// use talpf_runtime::operator::Sum;
    /// use talpf_runtime::{Array, Config, Runtime};
    ///
    /// let runtime = Runtime::new(Config::default())?;
    /// let x = Array::new(&runtime, vec![2.0; 1000], 128)?;
    /// let y = Array::new(&runtime, vec![1.0; 1000], 128)?;
    /// let dot = Array::new(&runtime, vec![0.0], 1)?;
    /// runtime.task_loop("axpy", 0..1000).grain(128).for_each(|task, chunk| {
    ///     let task = task.input(&x.region(chunk.clone())).inout(&y.region(chunk));
    ///     task.spawn(|x, mut y| y.iter_mut().zip(&*x).for_each(|(y, x)| *y += 0.5 * x))
    /// })?;
    /// runtime.task_loop("dot", 0..1000).grain(256).for_each(|task, chunk| {
    ///     let task = task.input(&x.region(chunk.clone())).input(&y.region(chunk));
    ///     let task = task.reduction(&dot.all(), Sum);
    ///     task.spawn(|x, y, mut dot| dot[0] += x.iter().zip(&*y).map(|(x, y)| x * y).sum::<f64>())
    /// })?;
    /// let dot = runtime.task("read").input(&dot.all()).run(|dot| dot[0])?;
    /// assert_eq!(runtime.block_on(dot)??, 4000.0);
    /// # Ok::<(), talpf_runtime::Error>(())
    /// ```
    pub fn task_loop(&self, label: &'static str, range: Range<usize>) -> TaskLoop<'_> {
        TaskLoop::new(self.task(label), range)
    }
}

impl Children {
    /// Begins the declaration of a loop as [`Group::task_loop`] does, of children.
    pub fn task_loop(&self, label: &'static str, range: Range<usize>) -> TaskLoop<'_> {
        TaskLoop::new(self.task(label), range)
    }
}

/// A loop of tasks that is being declared.
#[must_use = "a loop exists once its tasks are spawned"]
pub struct TaskLoop<'a, S = Once> {
    /// Declaration of the task of every chunk.
    chunk: TaskBuilder<'a, (), (), S>,
    range: Range<usize>,
    grain: Option<usize>,
}

impl<'a, S: Copy> TaskLoop<'a, S> {
    pub(crate) fn new(chunk: TaskBuilder<'a, (), (), S>, range: Range<usize>) -> Self {
        TaskLoop { chunk, range, grain: None }
    }

    /// Sets the number of indices of a chunk; the last chunk may have fewer. By default there are
    /// up to four chunks for every worker of the group. Chunks that are tiles of the arrays they use are the
    /// cheapest.
    pub fn grain(mut self, indices: usize) -> Self {
        self.grain = Some(indices);
        self
    }

    /// Calls `declare` with a task and its chunk, for all chunks in order: it declares the accesses
    /// of the task and spawns it. The tasks are ordered by their accesses, like
    /// any others. An empty range has no chunks.
    ///
    /// **Completion**: returns when all tasks are spawned. **Scheduling**: other tasks may run
    /// inside the spawns, so hold no lock that they take (see
    /// [`Config::throttle`](crate::Config::throttle)). **Errors**: a grain of 0; the first error of
    /// `declare`, after which no further chunk is declared.
    pub fn for_each<E: From<Error>>(
        self,
        mut declare: impl FnMut(TaskBuilder<'a, (), (), S>, Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let TaskLoop { chunk, range, grain } = self;
        let chunks = CHUNKS_PER_WORKER * chunk.workers();
        let grain = grain.unwrap_or_else(|| range.len().div_ceil(chunks).max(1));
        if grain == 0 {
            return Err(Error::Size { what: "grain of a task loop", value: 0, limit: 1 }.into());
        }
        let mut start = range.start;
        while start < range.end {
            let end = start.saturating_add(grain).min(range.end);
            declare(chunk.again(), start..end)?;
            start = end;
        }
        Ok(())
    }
}

impl<S> fmt::Debug for TaskLoop<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskLoop over {:?}", self.range)
    }
}
