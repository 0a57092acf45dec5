//! Groups: named sets of tasks with their own arrays and their own order of spawns.
//!
//! A program spawns its tasks into a group: its arrays share one dependency domain, it can be
//! waited for, and traces show it under its number.
//!
//! This file is what programs call. The state, `inner.rs`, is below tasks: records know its name,
//! arrays share its domain, and its runtime's workers count in it.

mod cancel;
mod cancellation;
mod closing;
mod counts;
mod inner;
mod lookahead;
mod tally;
mod wait;

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use talpf_traces::counted;

use crate::clock::Clock;
use crate::dump::Dump;
use crate::error::Error;
use crate::hang::Reporter;
use crate::metrics::Metrics;
use crate::record::Role;
use crate::scheduler::{self, Shared, WorkerSet};
use crate::task::{self, JoinHandle, TaskBuilder};

pub use self::cancel::is_cancelled;
pub(crate) use self::closing::Closing;
pub(crate) use self::inner::GroupInner;
pub use self::lookahead::Lookahead;
pub use self::wait::Wait;
pub(crate) use self::wait::{are_finished, finish};

/// A named set of tasks with its own arrays. Clones are handles of the same group.
#[derive(Clone)]
pub struct Group {
    inner: Arc<GroupInner>,
}

impl Group {
    pub(crate) fn new(
        runtime: (&Arc<Shared>, &Arc<WorkerSet>),
        name: String,
        number: u32,
        worker: Option<usize>,
    ) -> Self {
        Group { inner: GroupInner::new(runtime, name, number, worker) }
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

    /// Bounds how far a program is ahead that spawns its tasks step by step: `steps` steps overlap,
    /// at least 1, and no more tasks are outstanding than so many steps have. With tasks that are
    /// [`TaskBuilder::unthrottled`], it is the only bound.
    ///
    /// ```
    /// # use talpf_runtime::{Array, Config, Error, Runtime};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let group = runtime.group("program", 1);
    /// let program = group.clone();
    /// let main = group.spawn_main("main", async move {
    ///     let number = Array::new(&program, vec![0u64], 1)?;
    ///     let mut lookahead = program.lookahead(4);
    ///     for _ in 0..1_000 {
    ///         lookahead.step().await?;
    ///         let task = program.task("add").unthrottled().inout(&number.all());
    ///         task.spawn(|mut number| number[0] += 1)?;
    ///     }
    ///     program.wait().await
    /// })?;
    /// runtime.block_on(main)???;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn lookahead(&self, steps: usize) -> Lookahead {
        Lookahead::new(&self.inner, steps)
    }

    /// Suspends the calling task for `period`, or a little longer.
    pub fn wait_for(&self, period: Duration) -> impl Future<Output = ()> + Send + use<> {
        scheduler::wait_for(Arc::clone(&self.inner), period)
    }

    /// Suspends the calling task until its worker has nothing else to do, or another worker while
    /// that one is in a task, and for `latest` at most. The task goes on earlier if anything else
    /// wakes it.
    #[doc(hidden)]
    pub async fn idle(&self, latest: Duration) {
        // In virtual time a core that has nothing else to do has it at once, and time would stand still.
        match self.is_virtual() {
            true => self.wait_for(latest).await,
            false => scheduler::idle(&self.inner, latest).await,
        }
    }

    /// Calls `poll` until it returns a value, and returns that: in the task at first, then whenever
    /// its worker has nothing else to do, without waking the task for that, and in the task again
    /// if no worker has called it for `latest` or something else wakes the task. Two threads may
    /// call it at the same time; of the values of both, one is returned. A panic of `poll` is
    /// passed on to the task.
    #[doc(hidden)]
    pub fn idle_until<T: Send + 'static>(
        &self,
        latest: Duration,
        poll: impl Fn() -> Option<T> + Send + Sync + 'static,
    ) -> impl Future<Output = T> + Send {
        scheduler::idle_until(&self.inner, latest, poll)
    }

    /// Returns the runtime's clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.shared.clock
    }

    /// Returns `true` if the runtime runs in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.inner.shared.virtual_time.is_some()
    }

    /// Notes, in virtual time, that a service has changed what others may wait for.
    pub(crate) fn note_change(&self) {
        if let Some(virtual_time) = &self.inner.shared.virtual_time {
            virtual_time.changes().note();
        }
    }

    /// Waits, in virtual time, for a task other than a service, an event of a source, or a service that
    /// has found something.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + Send {
        let virtual_time = self.inner.shared.virtual_time.as_deref();
        let since = virtual_time.map(|virtual_time| virtual_time.changes().count());
        poll_fn(move |cx| match virtual_time.zip(since) {
            Some((virtual_time, since)) => virtual_time.changes().poll(since, cx.waker()),
            None => Poll::Ready(()),
        })
    }

    /// Returns the name given at creation.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Returns the number given at creation, under which traces show the group.
    pub fn number(&self) -> u32 {
        self.inner.number()
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
    #[doc(hidden)]
    pub fn is_traced(&self) -> bool {
        self.inner.shared.config.recorder.is_some()
    }

    /// Records an event in the trace of the runtime, if the run is traced: on the row of the calling
    /// worker, or on a row for all threads that are none of the runtime's workers. Only then is
    /// `event` called, with the time.
    ///
    /// **Units**: nanoseconds on the runtime's clock. **Cost**: one branch on a worker that is not
    /// traced; a lock on a thread that is no worker.
    #[inline]
    pub fn trace(&self, event: impl FnOnce(u64) -> talpf_traces::Event) {
        scheduler::trace(&self.inner.shared, event);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outstanding = counted(self.outstanding(), "task");
        write!(f, "Group {} `{}` ({outstanding})", self.number(), self.name())
    }
}
