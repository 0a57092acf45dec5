//! The state of a group, as its executor uses it.
#![allow(unsafe_code, reason = "follows the group pointer in task records")]

use std::sync::{Arc, Weak};
use std::task::Waker;

use talpf_primitives::Mutex;

use super::cancellation::Cancellation;
use super::tally::Tally;
use crate::callback;
use crate::data::ArrayMemory;
use crate::dependency::Arrays;
use crate::error::{Error, Failure};
use crate::record::{GroupHead, Record};
use crate::replay::RecordedPlan;
use crate::scheduler::{Affinity, Policy, Shared, WorkerSet};

/// A group: what its records know of it, its arrays, and what its runtime counts and keeps for it.
#[repr(C)]
pub(crate) struct GroupInner {
    /// The part that records know, first, so that their pointers lead to the whole.
    head: GroupHead,
    /// Pointer to the `Arc` of the group, from which `keep` makes new counts.
    me: Weak<GroupInner>,
    pub(crate) shared: Arc<Shared>,
    /// Workers that run the tasks of the group.
    pub(crate) set: Arc<WorkerSet>,
    pub(crate) arrays: Arc<Arrays>,
    /// Plan of the last graph that was iterated.
    pub(crate) last_plan: Mutex<Option<Arc<RecordedPlan>>>,
    affinity: Affinity,
    pub(super) tally: Tally,
    /// The failure with the longest chain since the last wait.
    failure: Mutex<Option<Arc<Failure>>>,
    pub(super) cancellation: Cancellation,
}

impl GroupInner {
    /// Makes a group of a runtime, which keeps it until its tasks are complete. They are run by the
    /// workers of `set`, of which `worker` is one.
    pub(super) fn new(
        (shared, set): (&Arc<Shared>, &Arc<WorkerSet>),
        name: String,
        number: u32,
        worker: Option<usize>,
    ) -> Arc<Self> {
        let has_affinity = shared.config.policies.has(Policy::GroupAffinity);
        let inner = Arc::new_cyclic(|me| GroupInner {
            head: GroupHead::new(name, number),
            me: Weak::clone(me),
            shared: Arc::clone(shared),
            set: Arc::clone(set),
            arrays: Arc::new(Arrays::new(shared.number, shared.workers())),
            last_plan: Mutex::default(),
            affinity: Affinity::new(worker.filter(|_| has_affinity)),
            tally: Tally::new(shared.workers()),
            failure: Mutex::default(),
            cancellation: Cancellation::default(),
        });
        shared.add_group(Arc::clone(&inner));
        inner
    }

    /// Returns the preferred worker of the group's tasks, if there is one.
    #[inline]
    pub(crate) fn affinity(&self) -> Option<usize> {
        self.affinity.worker()
    }

    /// Returns the source of the memory of arrays, if it is not the allocator.
    pub(crate) fn memory(&self) -> Option<&dyn ArrayMemory> {
        self.shared.config.memory.as_deref()
    }

    /// Notes that an array of the group has tiles of `bytes`.
    pub(crate) fn note_tile(&self, bytes: usize) {
        if self.affinity.note_tile(bytes) {
            self.set.note_tile(bytes);
        }
    }

    /// Returns the group of a task that is not complete: the runtime keeps its groups until all
    /// their tasks are.
    ///
    /// # Safety
    /// The caller has a unit of the task's completion as long as it uses the result.
    #[inline]
    pub(crate) unsafe fn of_live_task(record: &Record) -> &'static GroupInner {
        // SAFETY: `for_records` has made the pointer, and its group is there by the contract of this
        // function.
        unsafe { &*record.group().cast() }
    }

    /// Returns the pointer by which records refer to the group.
    #[inline]
    pub(crate) fn for_records(self: &Arc<Self>) -> *const GroupHead {
        Arc::as_ptr(self).cast()
    }

    pub(crate) fn head(&self) -> &GroupHead {
        &self.head
    }

    /// Returns `true` if a record refers to this group.
    pub(crate) fn is_of(&self, record: &Record) -> bool {
        std::ptr::addr_eq(self, record.group())
    }

    /// Returns this group for a worker of its runtime, which keeps its groups until its workers
    /// have ended.
    ///
    /// # Safety
    /// This thread is such a worker, and uses the result as long as it is.
    #[inline]
    pub(crate) unsafe fn of_worker(&self) -> &'static GroupInner {
        // SAFETY: by the contract of this function.
        unsafe { &*std::ptr::from_ref(self) }
    }

    /// Returns a new count of the `Arc` of this group.
    pub(crate) fn keep(&self) -> Arc<GroupInner> {
        // SAFETY: every `GroupInner` is made inside an `Arc`, in `new`, and this one lives.
        unsafe { Arc::increment_strong_count(self.me.as_ptr()) };
        // SAFETY: the count was added above.
        unsafe { Arc::from_raw(self.me.as_ptr()) }
    }

    pub(crate) fn name(&self) -> &str {
        self.head.name()
    }

    pub(crate) fn number(&self) -> u32 {
        self.head.number()
    }

    /// Notes that a task of the group is complete and has failed.
    #[cold]
    pub(crate) fn note_failure(&self, task: &Record, failure: Arc<Failure>) {
        if let Some(graph) = &self.shared.config.graph {
            graph.note_failure(task, &failure);
        }
        self.keep_failure(failure);
    }

    /// Keeps a failure for the next wait, unless it has one with a longer chain.
    pub(crate) fn keep_failure(&self, failure: Arc<Failure>) {
        let mut longest = self.failure.lock();
        if longest.as_ref().is_none_or(|longest| longest.depth <= failure.depth) {
            *longest = Some(failure);
        }
    }

    /// Returns, as an error, the cancellation of the group or its failure, and leaves both.
    pub(super) fn check_failure(&self) -> Result<(), Error> {
        let failed = || self.failure.lock().clone().map(Error::TaskFailed);
        self.cancellation().or_else(failed).map_or(Ok(()), Err)
    }

    /// Returns, as an error, the cancellation of the group, or the failure with the longest chain
    /// if any task failed, and clears both.
    pub(crate) fn take_failure(&self) -> Result<(), Error> {
        let cancelled = self.take_cancellation();
        let longest = self.failure.lock().take();
        // A task of another group may have poisoned an array of this one.
        let poisoned = self.arrays.domain.lock().forgive();
        let failed = || longest.or(poisoned).map(Error::TaskFailed);
        cancelled.or_else(failed).map_or(Ok(()), Err)
    }

    /// Calls `work`, for which no task can fail. If it panics the group fails, and the result is
    /// `None`.
    #[inline]
    pub(crate) fn call_back<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> Option<R> {
        callback::call(what, work).map_err(|reason| self.note_panic(what, &reason)).ok()
    }

    /// Calls a waker of a wait for the group.
    pub(crate) fn wake(&self, waker: Waker) {
        self.call_back("a waker", || waker.wake());
    }

    /// Notes a panic for the waits for the group.
    #[cold]
    pub(crate) fn note_panic(&self, what: &str, reason: &str) {
        let reason = format!("{what} panicked: {reason}");
        self.keep_failure(Failure::outside_tasks(self.name(), reason).into());
    }
}
