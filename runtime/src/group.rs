//! Groups: named sets of tasks with their own arrays and their own order of spawns.
//!
//! A program spawns its tasks into a group: its arrays share one dependency domain, it can be
//! waited for, and traces show it under its number.
#![allow(unsafe_code, reason = "follows the group pointer in task records")]

mod affinity;
mod cancel;
mod closing;
mod counts;
mod tally;
mod wait;

use std::fmt;
use std::future::Future;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ndarray::Ix1;
use talpf_primitives::Mutex;
use talpf_traces::counted;

use crate::access::Domain;
use crate::clock::Clock;
use crate::data::{ArrayCore, Region};
use crate::dump::Dump;
use crate::error::{Error, Failure};
use crate::hang::Reporter;
use crate::metrics::Metrics;
use crate::record::{Record, Role};
use crate::replay::RecordedPlan;
use crate::scheduler::{self, Shared};
use crate::task::{self, JoinHandle, TaskBuilder};

use self::affinity::Affinity;
use self::cancel::Cancellation;
pub use self::cancel::is_cancelled;
pub(crate) use self::closing::Closing;
use self::tally::Tally;
pub use self::wait::Wait;
pub(crate) use self::wait::{are_finished, finish};

/// A named set of tasks with its own arrays. Clones are handles of the same group.
#[derive(Clone)]
pub struct Group {
    inner: Arc<GroupInner>,
}

pub(crate) struct GroupInner {
    /// Pointer to the `Arc` of the group, from which `keep` makes new counts.
    me: Weak<GroupInner>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) domain: Mutex<Domain>,
    /// Plan of the last graph that was iterated.
    pub(crate) last_plan: Mutex<Option<Arc<RecordedPlan>>>,
    name: String,
    number: u32,
    affinity: Affinity,
    tally: Tally,
    /// The failure with the longest chain since the last wait.
    failure: Mutex<Option<Arc<Failure>>>,
    cancellation: Cancellation,
}

impl Group {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        name: String,
        number: u32,
        worker: Option<usize>,
    ) -> Self {
        let inner = Arc::new_cyclic(|me| GroupInner {
            me: Weak::clone(me),
            shared: Arc::clone(shared),
            domain: Mutex::default(),
            last_plan: Mutex::default(),
            name,
            number,
            affinity: Affinity::new(worker),
            tally: Tally::new(shared.workers()),
            failure: Mutex::default(),
            cancellation: Cancellation::default(),
        });
        shared.add_group(Arc::clone(&inner));
        Group { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<GroupInner> {
        &self.inner
    }

    /// Begins the declaration of a task.
    ///
    /// **Scheduling**: other tasks may run inside the spawn, so hold no lock that they take (see
    /// [`Config::throttle`](crate::Config::throttle)).
    #[inline]
    pub fn task(&self, label: &'static str) -> TaskBuilder<'_> {
        TaskBuilder::new(&self.inner, label)
    }

    /// Runs a program of this group on the workers: a future that spawns tasks and may wait for
    /// them. Waits for the group do not wait for it; shutdown does.
    ///
    /// **Errors**: a runtime that has shut down.
    pub fn spawn_main<R: Send + 'static>(
        &self,
        label: &'static str,
        program: impl Future<Output = R> + Send + 'static,
    ) -> Result<JoinHandle<R>, Error> {
        task::spawn_future(&self.inner, label, Role::Main, program)
    }

    /// Runs a service of this group, such as a poller, on the workers. Waits for the group do not
    /// wait for it; shutdown does. Its runs do not count as progress, so a service does not keep
    /// the runtime from reporting a hang.
    ///
    /// **Errors**: a runtime that has shut down.
    pub fn spawn_service<R: Send + 'static>(
        &self,
        label: &'static str,
        service: impl Future<Output = R> + Send + 'static,
    ) -> Result<JoinHandle<R>, Error> {
        task::spawn_future(&self.inner, label, Role::Service, service)
    }

    /// Waits until every task of the group is complete.
    ///
    /// **Errors**: the group was cancelled, or a task failed, since the last wait (R4): both are
    /// cleared and the group's data counts as defined again. Of several failures the one with the
    /// longest chain is reported, and a cancellation rather than failures. A hang.
    pub fn wait(&self) -> Wait {
        Wait { inner: Arc::clone(&self.inner), registered: false }
    }

    /// Waits as [`Group::wait`] does, blocking the thread.
    ///
    /// **Errors**: those of [`Group::wait`]; a call in a task.
    pub fn wait_blocking(&self) -> Result<(), Error> {
        scheduler::block_on(&self.inner.shared, "wait_blocking", self.wait())?
    }

    /// Waits, if [`Config::throttle`](crate::Config::throttle) tasks of the group or more are
    /// outstanding, until half as many are: the throttle of a spawner that awaits, such as a main,
    /// for tasks that are [`TaskBuilder::unthrottled`]. The caller must not hold regions or locks
    /// that those tasks need, and counts as outstanding itself if it is a task of the group other
    /// than a main.
    ///
    /// ```
    /// # use talpf_runtime::{Config, Error, Runtime};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let group = runtime.group("program", 1);
    /// let program = group.clone();
    /// let main = group.spawn_main("main", async move {
    ///     for _ in 0..10_000 {
    ///         program.room().await?;
    ///         program.task("task").unthrottled().spawn(|| ())?;
    ///     }
    ///     program.wait().await
    /// })?;
    /// runtime.block_on(main)???;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Errors**: a hang. **Cost**: reads the counts of every worker.
    pub async fn room(&self) -> Result<(), Error> {
        self.inner.room().await
    }

    /// Suspends the calling task for `period`, or a little longer.
    pub fn wait_for(&self, period: Duration) -> impl Future<Output = ()> + Send + use<> {
        scheduler::wait_for(Arc::clone(&self.inner.shared), period)
    }

    /// Suspends the calling task until its worker has nothing else to do, or another worker while
    /// that one is in a task, and for `latest` at most. The task goes on earlier if anything else
    /// wakes it.
    pub fn idle(&self, latest: Duration) -> impl Future<Output = ()> + Send {
        scheduler::idle(&self.inner.shared, latest)
    }

    /// Calls `poll` until it returns a value, and returns that: in the task at first, then whenever
    /// its worker has nothing else to do, without waking the task for that, and in the task again
    /// if no worker has called it for `latest` or something else wakes the task. Two threads may
    /// call it at the same time; of the values of both, one is returned. A panic of `poll` is
    /// passed on to the task.
    pub fn idle_until<T: Send + 'static>(
        &self,
        latest: Duration,
        poll: impl Fn() -> Option<T> + Send + Sync + 'static,
    ) -> impl Future<Output = T> + Send {
        scheduler::idle_until(&self.inner.shared, latest, poll)
    }

    /// Returns the runtime's clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.shared.clock
    }

    /// Returns the name given at creation.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the number given at creation, under which traces show the group.
    pub fn number(&self) -> u32 {
        self.inner.number
    }

    /// Counts the spawned tasks that are not complete, without mains and services. A snapshot.
    pub fn outstanding(&self) -> u64 {
        self.inner.outstanding()
    }

    /// Adds a text to every hang report and every dump. `describe` must not wait for anything: it
    /// may be called while the program runs, by any thread. The text is removed when the returned
    /// value drops. A dump that `describe` takes has no such texts.
    pub fn on_hang(&self, describe: impl Fn(&mut String) + Send + Sync + 'static) -> Reporter {
        self.inner.shared.hang.add_reporter(Arc::new(describe))
    }

    /// Returns the counts of all workers of the runtime so far.
    pub fn metrics(&self) -> Metrics {
        self.inner.shared.metrics()
    }

    /// Takes a snapshot of all tasks of the runtime, with their states and the accesses that they
    /// wait for. The program goes on meanwhile.
    ///
    /// **Cost**: reads every task record ever used, on the calling thread.
    pub fn dump(&self) -> Dump {
        Dump::take(&self.inner.shared)
    }

    /// Returns `true` if the run is traced.
    pub fn is_traced(&self) -> bool {
        self.inner.shared.config.recorder.is_some()
    }

    /// Records an event in the trace of the calling thread, if that is a worker and the run is
    /// traced. Only then is `event` called, with the time.
    ///
    /// **Units**: nanoseconds on the runtime's clock. **Cost**: one branch when not traced.
    #[inline]
    pub fn trace(&self, event: impl FnOnce(u64) -> talpf_traces::Event) {
        scheduler::trace(event);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outstanding = counted(self.outstanding(), "task");
        write!(f, "Group {} `{}` ({outstanding})", self.number(), self.name())
    }
}

impl GroupInner {
    /// Returns the preferred worker of the group's tasks, if there is one.
    #[inline]
    pub(crate) fn affinity(&self) -> Option<usize> {
        self.affinity.worker()
    }

    /// Notes that an array of the group has tiles of `bytes`.
    pub(crate) fn note_tile(&self, bytes: usize) {
        if self.affinity.note_tile(bytes) {
            self.shared.note_tile(bytes);
        }
    }

    /// Returns the group of a task that is not complete: the runtime keeps its groups until all
    /// their tasks are.
    ///
    /// # Safety
    /// The caller has a unit of the task's completion as long as it uses the result.
    #[inline]
    pub(crate) unsafe fn of_live_task(record: &Record) -> &'static GroupInner {
        // SAFETY: the pointer was set from a reference when the task was created, and its group is
        // there by the contract of this function.
        unsafe { &*record.group() }
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
        // SAFETY: every `GroupInner` is made inside an `Arc`, in `Group::new`, and this one lives.
        unsafe { Arc::increment_strong_count(self.me.as_ptr()) };
        // SAFETY: the count was added above.
        unsafe { Arc::from_raw(self.me.as_ptr()) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
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

    /// Returns, as an error, the cancellation of the group, or the failure with the longest chain
    /// if any task failed, and clears both.
    pub(crate) fn take_failure(&self) -> Result<(), Error> {
        let cancelled = self.take_cancellation();
        let longest = self.failure.lock().take();
        // A task of another group may have poisoned an array of this one.
        let poisoned = self.domain.lock().forgive();
        let failed = || longest.or(poisoned).map(Error::TaskFailed);
        cancelled.or_else(failed).map_or(Ok(()), Err)
    }

    /// Frees an array once every access to it has closed. Accesses that a hang leaves open keep the
    /// memory.
    ///
    /// **Ordering**: an access that is open behind the fence of `hold_open` is of a task whose
    /// completion, if the shutdown sees it, comes with the count of this call: so the task that
    /// frees the array is spawned before the shutdown ends, on whichever thread.
    #[cold]
    pub(crate) fn retire(self: &Arc<Self>, core: NonNull<ArrayCore>) {
        let _open = self.hold_open();
        let core = Retired(core);
        // SAFETY: nobody else frees the array: the task below does, once its access has closed, or
        // this function if there is no such task or it is complete first.
        let array = unsafe { ArrayCore::of_open_access(core.0.as_ptr()) };
        if !self.domain.lock().any_open(array.map_index()) {
            return core.free();
        }
        let region = Region::<'_, (), Ix1>::new(array, array.extent());
        let task = TaskBuilder::new(self, "free").role(Role::Cleanup).inout(&region);
        // The spawn borrows the array, and the task may be complete before the spawn returns.
        let core = Arc::new(core);
        let of_task = Arc::clone(&core);
        let spawned = task.spawn(move |guard| {
            drop(guard);
            Arc::into_inner(of_task).into_iter().for_each(Retired::free);
        });
        if spawned.is_ok() {
            Arc::into_inner(core).into_iter().for_each(Retired::free);
        }
    }
}

/// An array without handles, about to be freed.
struct Retired(NonNull<ArrayCore>);

// SAFETY: stands for a `Box<ArrayCore>`, which is `Send`.
unsafe impl Send for Retired {}
// SAFETY: as above; nothing can be done with a shared one.
unsafe impl Sync for Retired {}

impl Retired {
    /// Frees the array, whose last access has closed.
    fn free(self) {
        // SAFETY: the last handle has leaked the box, none is left to declare an access with, and
        // the last one that was declared has closed.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
