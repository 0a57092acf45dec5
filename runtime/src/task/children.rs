//! Children: tasks spawned inside another one, on the regions that it lends them.
//!
//! A [`Nest`] is their common state. It holds one unit of the parent's completion, which the last
//! of its owners gives up: the handle that spawns, and the children that are not complete.
#![allow(unsafe_code, reason = "gives up the unit of a nest")]

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use talpf_primitives::{AtomicUsize, Mutex, Ordering};
use talpf_traces::counted;

use super::{TaskBuilder, note_wait, run};
use crate::error::{Error, Failure};
use crate::group::GroupInner;
use crate::record::{RecordId, record};
use crate::wakers::Wakers;

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
    nest: Arc<Nest>,
    group: Arc<GroupInner>,
    is_final: bool,
}

impl Children {
    /// Returns a handle for children of the running task. Every call begins a set that is waited
    /// for by itself.
    ///
    /// **Errors**: called outside a task; more than 2^28 sets and pending events of one task.
    pub fn of_current_task() -> Result<Self, Error> {
        let parent = run::current().ok_or(Error::NotInTask("Children::of_current_task"))?;
        // The running body holds a unit.
        record(parent).open.add_kept("number of sets of children of a task")?;
        let group =
            run::current_group().ok_or(Error::NotInTask("Children::of_current_task"))?.keep();
        let is_final = record(parent).marks().is_final();
        Ok(Children { nest: Arc::new(Nest::of(parent)), group, is_final })
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
            let failure = self.nest.failure.lock().take();
            Poll::Ready(failure.map_or(Ok(()), |failure| Err(Error::of_task(failure))))
        })
        .await
    }
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = record(self.nest.parent()).label();
        let outstanding = counted(self.nest.outstanding.load(Ordering::Relaxed), "task");
        write!(f, "Children of `{}` ({outstanding})", parent.text())
    }
}

/// State shared by the children of one handle.
pub(crate) struct Nest {
    /// `None` once the unit of the parent's completion is handed over.
    parent: Option<RecordId>,
    /// Number of children spawned and not yet complete.
    outstanding: AtomicUsize,
    wakers: Wakers,
    /// Failure with the longest chain since the last wait.
    failure: Mutex<Option<Arc<Failure>>>,
}

impl Nest {
    fn of(parent: RecordId) -> Self {
        Nest {
            parent: Some(parent),
            outstanding: AtomicUsize::new(0),
            wakers: Wakers::default(),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn parent(&self) -> RecordId {
        match self.parent {
            Some(parent) => parent,
            None => unreachable!("the unit is taken over with the last owner"),
        }
    }

    pub(super) fn count_spawn(&self) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a child that is complete. Returns the wakers to call.
    ///
    /// **Ordering**: a thread that sees that no child is left sees everything they did.
    fn count_completion(&self) -> Vec<Waker> {
        let last = self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1;
        if last { self.wakers.take() } else { Vec::new() }
    }

    /// Returns `true` if no child is left; otherwise `waker` is called when that is so.
    fn is_quiet_or_wakes(&self, waker: &Waker) -> bool {
        // Before the check: a completion after the check finds the waker.
        self.wakers.add(waker);
        self.outstanding.load(Ordering::Acquire) == 0
    }

    fn note_failure(&self, failure: Arc<Failure>) {
        let depth = |failure: &Arc<Failure>| failure.chain().count();
        let mut known = self.failure.lock();
        if known.as_ref().is_none_or(|known| depth(known) < depth(&failure)) {
            *known = Some(failure);
        }
    }

    /// Counts a complete child of `group`, with its failure. Returns the parent if that is
    /// complete, too.
    pub(super) fn child_completed(
        nest: Arc<Nest>,
        group: &GroupInner,
        failure: Option<Arc<Failure>>,
    ) -> Option<RecordId> {
        failure.into_iter().for_each(|failure| nest.note_failure(failure));
        nest.count_completion().into_iter().for_each(|waiter| group.wake(waiter));
        let mut nest = Arc::into_inner(nest)?;
        let parent = nest.parent.take()?;
        nest.hand_up_failure(parent);
        record(parent).open.take(1).then_some(parent)
    }

    /// Passes a failure that nobody has waited for on to the parent's nest.
    fn hand_up_failure(&self, parent: RecordId) {
        if let Some(failure) = self.failure.lock().take() {
            record(parent).nest().into_iter().for_each(|nest| nest.note_failure(failure.clone()));
        }
    }
}

/// Drop of the last handle, which gives up the unit of the parent; the last child takes it out
/// instead.
impl Drop for Nest {
    fn drop(&mut self) {
        if let Some(parent) = self.parent.take() {
            self.hand_up_failure(parent);
            // SAFETY: the unit that the nest was made with; the last child takes `parent` out and
            // gives up the unit itself.
            unsafe { run::resolve(parent, 1) };
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::wakers::model::Woken;

    #[test]
    fn who_waits_for_children_sees_the_last_or_is_woken() {
        loom::model(|| {
            let mut nest = Nest::of(RecordId::of_test(0));
            nest.parent = None;
            let nest = Arc::new(nest);
            (0..2).for_each(|_| nest.count_spawn());
            let children: Vec<_> = (0..2)
                .map(|_| {
                    let nest = nest.clone();
                    thread::spawn(move || {
                        nest.count_completion().into_iter().for_each(Waker::wake);
                    })
                })
                .collect();
            let (waker, woken) = Woken::waker();
            let quiet = nest.is_quiet_or_wakes(&waker);
            children.into_iter().for_each(|child| child.join().unwrap());
            assert!(quiet || woken.is_woken());
        });
    }
}
