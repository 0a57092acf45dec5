//! State shared by the workers of a runtime.

use std::sync::atomic::AtomicU64 as PlainU64;
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, AtomicU64, Mutex, Ordering, Parker, Unparker};

use super::block_on::Blocked;
use super::blocked_thread::is_locked_out;
use super::census::Census;
use super::outside_trace::OutsideTrace;
use super::policy::Policy;
use super::policy::depth_first::Deques;
use super::policy::steal_batch::most_stolen;
use super::policy::steal_delay::StealDelay;
use super::virtual_time::VirtualState;
use super::worker::Worker;
use super::worker_set::WorkerSet;
use super::worker_slot::WorkerSlot;
use super::{Runner, Watchdog};
use crate::callback;
use crate::clock::Clock;
use crate::config::Config;
use crate::cores::cores;
use crate::group::{Closing, GroupInner};
use crate::hang::Hang;
use crate::idle_policy::IdlePolicy;
use crate::record::RecordId;

/// Number of runtimes that were made.
static NUMBERS: PlainU64 = PlainU64::new(0);

/// State of a runtime that all its threads see.
pub(crate) struct Shared {
    pub(crate) config: Config,
    oversubscribed: bool,
    pub(crate) clock: Clock,
    /// State of the executor in virtual time, in place of workers in real time.
    pub(crate) virtual_time: Option<Box<VirtualState>>,
    /// Number of the runtime, which no other of the process has.
    pub(crate) number: u64,
    pub(crate) hang: Hang,
    pub(super) watchdog: &'static dyn Watchdog,
    pub(super) slots: Box<[Arc<CachePadded<WorkerSlot>>]>,
    sets: Box<[Arc<WorkerSet>]>,
    pub(super) tokio: tokio::runtime::Handle,
    /// Threads outside that block on a future.
    pub(super) blocked: Mutex<Vec<Arc<Blocked>>>,
    /// Polls of futures by threads outside.
    pub(super) blocked_polls: AtomicU64,
    groups: Mutex<Vec<Arc<GroupInner>>>,
    /// Counts of the groups when they were released.
    ended: OnceLock<Ended>,
    pub(crate) closing: Closing,
    stop: AtomicBool,
    pub(super) outside_trace: OutsideTrace,
}

/// Task counts of a runtime that has ended, and the time of its end.
struct Ended {
    created: u64,
    completed: u64,
    at_ns: u64,
}

/// A worker that has not started, made before its thread.
pub(crate) struct UnstartedWorker {
    shared: Arc<Shared>,
    index: usize,
    deques: Deques,
    parker: Parker,
}

impl UnstartedWorker {
    /// Runs the worker until the runtime ends.
    pub(crate) fn start<R: Runner>(self) {
        Worker::new(self.shared, self.index, self.deques, self.parker).work::<R>();
    }
}

/// Makes the shared state and the workers of a runtime.
pub(crate) fn prepare(
    config: Config,
    tokio: tokio::runtime::Handle,
    watchdog: &'static dyn Watchdog,
) -> (Arc<Shared>, Vec<UnstartedWorker>) {
    let batch = most_stolen(config.policies);
    let own: Vec<_> = (0..config.workers).map(|_| (Deques::new(batch), Parker::new())).collect();
    let slots =
        own.iter().map(|(deques, _)| Arc::new(WorkerSlot::new(deques.stealers()))).collect();
    let unparkers: Vec<_> = own.iter().map(|(_, parker)| parker.unparker().clone()).collect();
    let shared = Arc::new(Shared::new(config, tokio, watchdog, slots, &unparkers));
    let workers = own.into_iter().enumerate().map(|(index, (deques, parker))| {
        let shared = Arc::clone(&shared);
        UnstartedWorker { shared, index, deques, parker }
    });
    let workers = workers.collect();
    (shared, workers)
}

impl Shared {
    fn new(
        config: Config,
        tokio: tokio::runtime::Handle,
        watchdog: &'static dyn Watchdog,
        slots: Box<[Arc<CachePadded<WorkerSlot>>]>,
        unparkers: &[Unparker],
    ) -> Self {
        let oversubscribed = config.workers > cores();
        let policies = config.policies;
        let steals_at_once = oversubscribed || !policies.has(Policy::StealDelay);
        let sets = (0..config.worker_sets).map(|number| {
            let first = |number| number * config.workers / config.worker_sets;
            let (first, end) = (first(number), first(number + 1));
            let steal_delay = StealDelay::new(config.idle, steals_at_once);
            let (slots, unparkers) = (&slots[first..end], &unparkers[first..end]);
            Arc::new(WorkerSet::new(first, slots, unparkers, steal_delay, policies))
        });
        let sets = sets.collect();
        let virtual_time = config.virtual_time.clone().map(VirtualState::new);
        if let (Some(recorder), None) = (&config.recorder, &virtual_time) {
            recorder.prepare();
        }
        let (clock, virtual_time) = match virtual_time {
            Some((clock, state)) => (clock, Some(Box::new(state))),
            None => (Clock::start(), None),
        };
        Shared {
            oversubscribed,
            config,
            clock,
            virtual_time,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            hang: Hang::default(),
            watchdog,
            slots,
            sets,
            tokio,
            blocked: Mutex::default(),
            blocked_polls: AtomicU64::new(0),
            groups: Mutex::default(),
            ended: OnceLock::new(),
            closing: Closing::default(),
            stop: AtomicBool::new(false),
            outside_trace: OutsideTrace::default(),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.slots.len()
    }

    /// Begins the shutdown: from then on only tasks that are not complete may spawn.
    pub(crate) fn begin_closing(&self) {
        self.closing.begin();
    }

    /// Returns a set of workers, by its number modulo the number of sets.
    pub(crate) fn set(&self, number: usize) -> &Arc<WorkerSet> {
        &self.sets[number % self.sets.len()]
    }

    /// Returns the set of a worker, by its number modulo the number of workers, and that number.
    pub(crate) fn set_of(&self, worker: usize) -> (&Arc<WorkerSet>, usize) {
        let worker = worker % self.workers();
        let set = self.sets.partition_point(|set| set.workers().end <= worker);
        (&self.sets[set], worker)
    }

    /// Iterates over the sets of workers.
    pub(crate) fn sets(&self) -> impl ExactSizeIterator<Item = &Arc<WorkerSet>> {
        self.sets.iter()
    }

    /// Returns `true` if a task is ready that any worker of its set may run.
    pub(crate) fn has_ready(&self) -> bool {
        self.sets().any(|set| set.has_ready())
    }

    /// Returns `true` if a worker has a task in its next slot.
    pub(crate) fn has_next(&self) -> bool {
        self.sets().any(|set| set.has_next())
    }

    #[inline]
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn add_group(&self, group: Arc<GroupInner>) {
        self.groups.lock().push(group);
    }

    /// Returns the groups so far.
    pub(crate) fn groups(&self) -> Vec<Arc<GroupInner>> {
        self.groups.lock().clone()
    }

    /// Counts how often workers have begun or ended a task that counts as progress. The second
    /// value is `true` if one is in such a task.
    pub(crate) fn progress(&self) -> (u64, bool) {
        let mut sum = 0u64;
        let mut busy = false;
        for slot in &self.slots {
            let steps = slot.hot.steps.load(Ordering::Relaxed);
            sum = sum.wrapping_add(steps);
            busy |= steps % 2 == 1;
        }
        (sum, busy)
    }

    /// Counts how often anything was begun: tasks, passes of services, polls for tasks that wait
    /// for idleness, polls by blocked threads.
    pub(crate) fn activity(&self) -> u64 {
        let passes = self.slots.iter().map(|slot| slot.meter.poll_passes());
        let polls = self.blocked_polls.load(Ordering::Relaxed);
        passes.fold(self.progress().0.wrapping_add(polls), u64::wrapping_add)
    }

    /// Returns `true` if all workers are parked, with nothing to do and no timer pending.
    pub(crate) fn is_at_rest(&self) -> bool {
        let has_any =
            |set: &WorkerSet| set.has_work() || set.has_next() || set.timers.next_ns().is_some();
        // One set after another: a worker that makes work for another set meanwhile shows in the
        // activity.
        self.sets().all(|set| set.are_all_idle())
            && !self.stops()
            && !self.sets().any(|set| has_any(set))
    }

    /// Takes a census of the threads of the process that are neither workers nor on the list of
    /// blocked threads: see [`Census::take`].
    pub(crate) fn other_threads(&self) -> Option<Census> {
        let workers = self.slots.iter().map(|slot| slot.thread.load(Ordering::Relaxed));
        let blocked = self.blocked.lock().iter().map(|blocked| blocked.id()).collect::<Vec<_>>();
        Census::take(&workers.chain(blocked).collect::<Vec<_>>())
    }

    /// Returns `true` if all workers that are in a task wait there for another thread, without a
    /// time limit, and one of them inside a spawn.
    ///
    /// **Cost**: reads a file of the system for each of them.
    pub(crate) fn is_locked_out(&self) -> bool {
        let busy = || self.slots.iter().filter(|slot| slot.hot.is_in_task());
        busy().any(|slot| slot.hot.help().is_some())
            && busy().all(|slot| is_locked_out(slot.thread.load(Ordering::Relaxed)))
    }

    /// Returns `true` if a worker waits in a task for another thread.
    pub(crate) fn is_worker_locked_out(&self, worker: usize) -> bool {
        let slot = &self.slots[worker];
        slot.hot.is_in_task() && is_locked_out(slot.thread.load(Ordering::Relaxed))
    }

    /// Returns the pairs of a task that spawns and a task that runs inside the spawn.
    pub(crate) fn helps(&self) -> Vec<[RecordId; 2]> {
        self.slots.iter().filter_map(|slot| slot.hot.help()).collect()
    }

    /// Counts the workers that are in a task that counts as progress.
    pub(crate) fn busy_workers(&self) -> usize {
        self.slots.iter().filter(|slot| slot.hot.is_in_task()).count()
    }

    /// Returns `true` if a worker other than `index` is in a task that counts as progress.
    pub(super) fn is_busy_beside(&self, index: usize) -> bool {
        self.slots.iter().enumerate().any(|(other, slot)| other != index && slot.hot.is_busy())
    }

    /// Returns `true` if there are more workers than cores.
    pub(super) fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Returns `true` if idle workers spin for a while before they park.
    pub(super) fn spins(&self) -> bool {
        self.config.idle != IdlePolicy::Park && !self.oversubscribed
    }

    pub(crate) fn wake_blocked(&self) {
        self.blocked.lock().iter().for_each(|blocked| blocked.unpark());
    }

    /// Returns the reasons why the blocked threads wait; `None` for a reason unknown to the
    /// runtime.
    pub(crate) fn blocked_on(&self) -> Vec<Option<&'static str>> {
        self.blocked.lock().iter().map(|blocked| blocked.waits_for()).collect()
    }

    /// Returns `true` if threads outside wait for the runtime, and none of them goes on.
    pub(super) fn is_awaited(&self) -> bool {
        let blocked = self.blocked.lock();
        !blocked.is_empty() && blocked.iter().all(|blocked| blocked.is_waiting())
    }

    /// Ends the workers.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.sets().for_each(|set| set.unpark_all());
    }

    /// Releases the groups, whose tasks are all complete, and so breaks the reference cycle with
    /// them.
    pub(crate) fn forget_groups(&self) {
        let (created, completed, _) = self.counted();
        let _ = self.ended.set(Ended { created, completed, at_ns: self.clock.now_ns() });
        let groups = std::mem::take(&mut *self.groups.lock());
        drop(groups);
    }

    /// Returns the numbers of tasks spawned and complete, and the time at which the runtime ended,
    /// if it has.
    pub(super) fn counted(&self) -> (u64, u64, Option<u64>) {
        if let Some(ended) = self.ended.get() {
            return (ended.created, ended.completed, Some(ended.at_ns));
        }
        let groups = self.groups();
        // Completions first: a snapshot never has more of them.
        let completed = groups.iter().map(|group| group.completed()).sum();
        (groups.iter().map(|group| group.spawned()).sum(), completed, None)
    }
}

impl Shared {
    /// Calls `work`, which belongs to no group. If it panics the first group fails, and the result
    /// is `None`.
    #[inline]
    pub(crate) fn call_back<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> Option<R> {
        callback::call(what, work).map_err(|reason| self.note_panic(what, &reason)).ok()
    }

    /// Notes a panic for the waits for the first group and for the shutdown.
    #[cold]
    pub(crate) fn note_panic(&self, what: &str, reason: &str) {
        // After the shutdown there is no group, and nothing waits.
        self.groups().first().into_iter().for_each(|first| first.note_panic(what, reason));
    }
}
