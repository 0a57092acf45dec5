//! Children: tasks spawned inside another one, on the regions that it lends them.
//!
//! A [`Nest`] is their common state, which the handle and its children own together.
#![allow(unsafe_code, reason = "gives up the unit of a nest")]

use std::fmt;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::Poll;

use talpf_traces::counted;

use super::run::complete;
use super::{TaskBuilder, current_group};
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::{Nest, note_wait, record, running};

/// The children of a task: a handle with which its body spawns tasks on the regions that it lends.
///
/// Children are ordered among themselves as they are spawned, and with other tasks as their parent
/// is: before the tasks spawned after it. A child declares parts of the regions that its parent
/// lends, and no others: see [`Lend`](crate::Lend). The parent is complete when its children are,
/// and lent regions are released as they release them.
///
/// ```
/// use talpf_runtime::{Array, Children, Config, Error, InOut, Runtime};
///
/// fn sort(mut numbers: InOut<u64>) -> Result<(), Error> {
///     if numbers.len() <= 100 {
///         numbers.sort_unstable();
///         return Ok(());
///     }
///     let middle = numbers.len() / 2;
///     numbers.select_nth_unstable(middle);
///     let (children, numbers) = (Children::of_current_task()?, numbers.lend());
///     for half in [numbers.region(..middle), numbers.region(middle..)] {
///         children.task("sort").inout(&half).spawn(|half| sort(half).unwrap())?;
///     }
///     Ok(())
/// }
///
/// let runtime = Runtime::new(Config::default())?;
/// let numbers = Array::new(&runtime, (0..10_000).rev().collect(), 100)?;
/// runtime.task("sort").inout(&numbers.all()).spawn(|numbers| sort(numbers).unwrap())?;
/// runtime.task("check").input(&numbers.all()).spawn(|numbers| assert!(numbers.is_sorted()))?;
/// runtime.wait_blocking()?;
/// # Ok::<(), Error>(())
/// ```
pub struct Children {
    nest: ManuallyDrop<Arc<Nest>>,
    group: Arc<GroupInner>,
    is_final: bool,
}

impl Children {
    /// Returns a handle for children of the running task. Every call begins a set that is waited
    /// for by itself.
    ///
    /// **Errors**: called outside a task; more than 2^28 sets and pending events of one task.
    pub fn of_current_task() -> Result<Self, Error> {
        let parent = running::current().ok_or(Error::NotInTask("Children::of_current_task"))?;
        // The running body holds a unit.
        record(parent).open.add_kept("number of sets of children of a task")?;
        let group = current_group().ok_or(Error::NotInTask("Children::of_current_task"))?.keep();
        let is_final = record(parent).marks().is_final();
        let nest = ManuallyDrop::new(Arc::new(Nest::of(parent)));
        Ok(Children { nest, group, is_final })
    }

    /// Returns `true` if the parent is final, and so are the children: see
    /// [`TaskBuilder::final_if`](crate::TaskBuilder::final_if).
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Begins the declaration of a child. It belongs to the group of its parent.
    ///
    /// **Scheduling**: other tasks may run inside the spawn, so hold no lock that they take (see
    /// [`Config::throttle`](crate::Config::throttle)); a child of a final task does.
    pub fn task(&self, label: &'static str) -> TaskBuilder<'_> {
        let child = TaskBuilder::new(&self.group, label).child_in(&self.nest);
        child.final_if(self.is_final).deferred_if(!self.is_final)
    }

    /// Waits until every child that was spawned with this handle is complete.
    ///
    /// **Errors**: a child failed, or was cancelled, since the last wait, or a task inside a child
    /// that has not waited for it (R4). The data stays poisoned until the group is waited for. A
    /// hang.
    pub async fn wait(&self) -> Result<(), Error> {
        poll_fn(|cx| {
            if !self.nest.is_quiet_or_wakes(cx.waker()) {
                if let Some(report) = self.group.shared.hang.report() {
                    return Poll::Ready(Err(Error::Hang(report)));
                }
                note_wait("its children");
                return Poll::Pending;
            }
            let failure = self.nest.take_failure();
            Poll::Ready(failure.map_or(Ok(()), |failure| Err(Error::of_task(failure))))
        })
        .await
    }
}

/// The last owner of the nest gives up the unit of the parent.
impl Drop for Children {
    fn drop(&mut self) {
        // SAFETY: taken once, as this drops.
        let nest = unsafe { ManuallyDrop::take(&mut self.nest) };
        if let Some(parent) = nest.leave() {
            complete(parent);
        }
    }
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = record(self.nest.parent()).label();
        let outstanding = counted(self.nest.outstanding(), "task");
        write!(f, "Children of `{}` ({outstanding})", parent.text())
    }
}
