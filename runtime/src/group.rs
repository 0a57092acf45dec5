//! Groups: named sets of tasks with their own arrays and their own order of spawns.
//!
//! A group is what one program spawns into: its arrays share one dependency domain, it can be
//! waited for, and traces show it under its number. Spawned and completed tasks are counted apart
//! and for every worker apart, so that spawner and workers share no line; a wait adds them up,
//! completions first: if they are as many as the spawns read afterwards, there was an instant at
//! which every task was complete.
#![allow(unsafe_code, reason = "follows the group pointer in task records")]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use ndarray::Ix1;
use parking_lot::Mutex;

use crate::access::Domain;
use crate::clock::Clock;
use crate::data::{ArrayCore, Region};
use crate::error::{Error, Failure};
use crate::hang::Reporter;
use crate::scheduler::{self, Shared};
use crate::task::{self, JoinHandle, Record, Role, TaskBuilder, note_wait};

/// A named set of tasks with its own arrays. Clones are handles of the same group.
#[derive(Clone)]
pub struct Group {
    inner: Arc<GroupInner>,
}

/// Failures that a wait reports are kept up to this number; all are counted.
const FAILURES_KEPT: usize = 16;

pub(crate) struct GroupInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) domain: Mutex<Domain>,
    name: String,
    number: u32,
    /// One a worker, and a last one for all other threads.
    counts: Box<[CachePadded<Counts>]>,
    waiting: AtomicUsize,
    waiters: Mutex<Vec<Waker>>,
    failures: Mutex<Vec<Arc<Failure>>>,
}

#[derive(Default)]
struct Counts {
    members: Count,
    /// Mains and services.
    others: Count,
}

#[derive(Default)]
struct Count {
    spawned: AtomicU64,
    completed: AtomicU64,
}

impl Group {
    pub(crate) fn new(shared: &Arc<Shared>, name: String, number: u32) -> Self {
        let counts = (0..=shared.workers()).map(|_| CachePadded::default()).collect();
        let inner = Arc::new(GroupInner {
            shared: Arc::clone(shared),
            domain: Mutex::default(),
            name,
            number,
            counts,
            waiting: AtomicUsize::new(0),
            waiters: Mutex::default(),
            failures: Mutex::default(),
        });
        shared.add_group(Arc::clone(&inner));
        Group { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<GroupInner> {
        &self.inner
    }

    /// Begins the declaration of a task.
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
    /// wait for it; shutdown does. That it runs is no sign that anything gets done, so a service
    /// does not keep the runtime from saying that it hangs.
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
    /// **Errors**: a task failed since the last wait (R4): the failures are forgotten and the
    /// group's data counts as defined again. A hang.
    pub fn wait(&self) -> Wait {
        Wait { inner: Arc::clone(&self.inner), registered: false }
    }

    /// As [`Group::wait`], blocking the thread.
    ///
    /// **Errors**: also when called from a task.
    pub fn wait_blocking(&self) -> Result<(), Error> {
        scheduler::block_on(&self.inner.shared, "wait_blocking", self.wait())?
    }

    /// Suspends the calling task for `period`, or a little longer.
    pub fn wait_for(&self, period: Duration) -> impl Future<Output = ()> + Send + use<> {
        scheduler::wait_for(Arc::clone(&self.inner.shared), period)
    }

    /// Suspends the calling task until its worker has nothing else to do, or for `latest`. It goes
    /// on earlier if anything else wakes it.
    pub fn idle(&self, latest: Duration) -> impl Future<Output = ()> + Send + use<> {
        scheduler::idle(Arc::clone(&self.inner.shared), latest)
    }

    /// The runtime's clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.shared.clock
    }

    /// The name given at creation.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The number given at creation, which traces show the group under.
    pub fn number(&self) -> u32 {
        self.inner.number
    }

    /// Spawned and not yet complete tasks, mains and services not counted. A snapshot.
    pub fn outstanding(&self) -> u64 {
        self.inner.outstanding()
    }

    /// Adds a text to every hang report. `describe` is called while nothing runs and must not
    /// wait for anything. It goes when the returned value drops.
    pub fn on_hang(&self, describe: impl Fn(&mut String) + Send + Sync + 'static) -> Reporter {
        self.inner.shared.hang.add_reporter(Arc::new(describe))
    }

    /// Records an event in the trace of the thread that calls, if this is a worker and the run is
    /// traced. `event` is called with the time only then.
    ///
    /// **Units**: nanoseconds on the runtime's clock. **Cost**: one branch when not traced.
    #[inline]
    pub fn trace(&self, event: impl FnOnce(u64) -> talpf_traces::Event) {
        scheduler::trace(event);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outstanding = self.outstanding();
        write!(f, "Group {} `{}` ({outstanding} tasks)", self.number(), self.name())
    }
}

impl GroupInner {
    /// The group of a task that is not complete.
    #[inline]
    pub(crate) fn of_live_task(record: &Record) -> &'static GroupInner {
        // SAFETY: the runtime keeps its groups until all their tasks are complete. Callers own a
        // unit of the task's completion, so it is not; the lifetime is not handed out.
        unsafe { &*record.group() }
    }

    /// A count of this group.
    pub(crate) fn keep(&self) -> Arc<GroupInner> {
        // SAFETY: every `GroupInner` is made inside an `Arc`, in `Group::new`.
        unsafe { Arc::increment_strong_count(self) };
        // SAFETY: the count was added above.
        unsafe { Arc::from_raw(self) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The count of this thread, and whether no other thread writes it.
    #[inline]
    fn mine(&self, role: Role) -> (&Count, bool) {
        let worker = scheduler::worker_index(&self.shared);
        let counts = &self.counts[worker.unwrap_or(self.counts.len() - 1)];
        match role {
            Role::Member | Role::Cleanup => (&counts.members, worker.is_some()),
            Role::Main | Role::Service => (&counts.others, worker.is_some()),
        }
    }

    /// Counts a task before it is looked whether the runtime still accepts tasks.
    ///
    /// **Ordering**: off the workers, either the shutdown sees this or this thread the shutdown. A
    /// worker spawns inside a task, and is seen together with the completion of that.
    #[inline]
    pub(crate) fn count_spawn(&self, role: Role) {
        let (count, alone) = self.mine(role);
        if alone {
            let spawned = count.spawned.load(Ordering::Relaxed);
            count.spawned.store(spawned + 1, Ordering::Release);
        } else {
            count.spawned.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// **Ordering**: either this sees the waiter or the waiter sees this completion.
    #[inline]
    pub(crate) fn count_completion(&self, role: Role) {
        self.mine(role).0.completed.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake_waiters();
        }
    }

    #[cold]
    fn wake_waiters(&self) {
        // Mains and services count here too: whoever waits for less looks again.
        if self.is_quiet() {
            let mut waiters = self.waiters.lock();
            self.waiting.store(0, Ordering::SeqCst);
            waiters.drain(..).for_each(Waker::wake);
        }
    }

    /// Whether anybody waits for the group.
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Wakes everybody who waits for the group, to find that it hangs.
    pub(crate) fn wake_all(&self) {
        let waiters = std::mem::take(&mut *self.waiters.lock());
        waiters.into_iter().for_each(Waker::wake);
    }

    fn sum(&self, count: impl Fn(&Counts) -> u64) -> u64 {
        self.counts.iter().map(|counts| count(counts)).sum()
    }

    fn members_completed(&self) -> u64 {
        self.sum(|counts| counts.members.completed.load(Ordering::SeqCst))
    }

    fn members_spawned(&self) -> u64 {
        self.sum(|counts| counts.members.spawned.load(Ordering::SeqCst))
    }

    /// Spawned and not yet complete tasks, mains and services not counted.
    pub(crate) fn outstanding(&self) -> u64 {
        // Completions first: see the module text.
        let completed = self.members_completed();
        self.members_spawned() - completed
    }

    fn is_quiet(&self) -> bool {
        self.outstanding() == 0
    }

    /// Tasks that are complete, mains and services too.
    pub(crate) fn completed(&self) -> u64 {
        let others = self.sum(|counts| counts.others.completed.load(Ordering::SeqCst));
        others + self.members_completed()
    }

    /// Tasks that were spawned, mains and services too.
    pub(crate) fn spawned(&self) -> u64 {
        let others = self.sum(|counts| counts.others.spawned.load(Ordering::SeqCst));
        others + self.members_spawned()
    }

    /// Whether every task is complete, mains and services too.
    fn is_finished(&self) -> bool {
        let completed = self.completed();
        completed == self.spawned()
    }

    pub(crate) fn wake_at_completion(&self, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        if !waiters.iter().any(|known| known.will_wake(waker)) {
            waiters.push(waker.clone());
        }
        self.waiting.store(waiters.len(), Ordering::SeqCst);
    }

    #[cold]
    pub(crate) fn note_failure(&self, failure: Arc<Failure>) {
        let mut failures = self.failures.lock();
        if failures.len() < FAILURES_KEPT {
            failures.push(failure);
        }
    }

    /// The failure with the longest chain, if any task failed.
    fn take_failure(&self) -> Result<(), Error> {
        let failures = std::mem::take(&mut *self.failures.lock());
        let deepest = failures.into_iter().max_by_key(|failure| failure.chain().count());
        // A task of another group may have spoilt an array of this one.
        let spoilt = self.domain.lock().forgive();
        deepest.or(spoilt).map_or(Ok(()), |failure| Err(Error::TaskFailed(failure)))
    }

    /// Frees an array once every access to it has closed.
    ///
    /// After a shutdown the spawn is refused; what a hang has left open then keeps its memory.
    pub(crate) fn retire(self: &Arc<Self>, core: Box<ArrayCore>) {
        let core = Retired(Box::into_raw(core));
        let array = ArrayCore::of_open_access(core.0);
        let region = Region::<'_, (), Ix1>::new(array, array.extent());
        let task = TaskBuilder::new(self, "free").role(Role::Cleanup).inout(&region);
        let _ = task.spawn(move |guard| {
            drop(guard);
            let core = core;
            // SAFETY: the pointer is from `Box::into_raw` above, no handle of the array is left to
            // declare an access with, and the last one that was declared has closed.
            drop(unsafe { Box::from_raw(core.0) });
        });
    }
}

/// An array without handles, on its way to be freed.
struct Retired(*mut ArrayCore);

// SAFETY: stands for a `Box<ArrayCore>`, which is `Send`.
unsafe impl Send for Retired {}

impl GroupInner {
    /// Waits until every task is complete, mains and services too.
    pub(crate) async fn finish(self: Arc<Self>) -> Result<(), Error> {
        std::future::poll_fn(|cx| {
            self.wake_at_completion(cx.waker());
            if self.is_finished() {
                return Poll::Ready(());
            }
            note_wait("all tasks of a group");
            Poll::Pending
        })
        .await;
        self.take_failure()
    }
}

/// The future of [`Group::wait`].
#[must_use = "a future waits when it is awaited"]
pub struct Wait {
    inner: Arc<GroupInner>,
    registered: bool,
}

impl Future for Wait {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.registered || !self.inner.is_quiet() {
            if let Some(report) = self.inner.shared.hang.report() {
                return Poll::Ready(Err(Error::Hang(report)));
            }
            self.inner.wake_at_completion(cx.waker());
            self.registered = true;
        }
        if self.inner.is_quiet() {
            return Poll::Ready(self.inner.take_failure());
        }
        note_wait("its group's tasks");
        Poll::Pending
    }
}
