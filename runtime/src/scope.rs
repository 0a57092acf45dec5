//! Scopes: where tasks are declared.

use std::ops::Range;

use crate::group::Group;
use crate::replay::{Each, Iteration};
use crate::task::{Children, TaskBuilder, TaskLoop};

/// A group, the children of a task, or an iteration: a program that is generic over its scope
/// declares the tasks of a step once, to be spawned anew or to be replayed. Arrays live for `'r`.
///
/// ```
/// use talpf_runtime::{Array, Config, Error, Runtime, Scope};
///
/// fn double<'r>(scope: &impl Scope<'r>, numbers: &'r Array<u64>) -> Result<(), Error> {
///     scope.task("double").inout(&numbers.all()).spawn(|mut numbers| numbers[0] *= 2)
/// }
///
/// let runtime = Runtime::new(Config::default())?;
/// let numbers = Array::new(&runtime, vec![1], 1)?;
/// double(&*runtime, &numbers)?;
/// runtime.iterate(3, |iteration| double(iteration, &numbers))?;
/// let last = runtime.task("read").input(&numbers.all()).run(|numbers| numbers[0])?;
/// assert_eq!(runtime.block_on(last)??, 16);
/// # Ok::<(), Error>(())
/// ```
pub trait Scope<'r> {
    /// Begins the declaration of a task. Its body is an `Fn`, since an [`Iteration`] calls it once
    /// in every step.
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>>;

    /// Begins the declaration of a loop, as [`Group::task_loop`] does.
    fn task_loop(&self, label: &'static str, range: Range<usize>) -> TaskLoop<'_, Each<'_, 'r>> {
        TaskLoop::new(self.task(label), range)
    }
}

impl<'r> Scope<'r> for Group {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        self.task(label).running(Each(None))
    }
}

impl<'r> Scope<'r> for Children {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        self.task(label).running(Each(None))
    }
}

impl<'r> Scope<'r> for Iteration<'r> {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        self.task(label)
    }
}
