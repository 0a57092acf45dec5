//! The counters of a worker, and the tasks whose delay it measures.
//!
//! The counters are written by their worker alone. Every 64 rounds, or spawns, it is *armed*: the
//! next task of priority 0 that it queues is the *sample*, and its delay is measured when this
//! worker begins it. A sample that another worker has run, or that has failed before it could run,
//! is dropped when the worker is armed again.

use std::cell::Cell;
use std::time::Duration;

use talpf_primitives::{AtomicU64, Ordering};

use super::Shared;
use super::worker::Worker;
use crate::metrics::{CLASSES, Delays, Metrics, QueueDepths, class_of};
use crate::record::{Phase, RecordId, Role, record};

/// The counters of one worker.
pub(super) struct Meter {
    poll_passes: Counter,
    steals: Counter,
    parks: Counter,
    idle_ns: Counter,
    /// Time at which the worker became idle; 0 while it is not.
    idle_since_ns: AtomicU64,
    delays: [Counter; CLASSES],
}

/// A counter that one thread writes.
pub(super) struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    #[inline]
    fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Meter {
    pub(super) fn new() -> Self {
        Meter {
            poll_passes: Counter::new(),
            steals: Counter::new(),
            parks: Counter::new(),
            idle_ns: Counter::new(),
            idle_since_ns: AtomicU64::new(0),
            delays: std::array::from_fn(|_| Counter::new()),
        }
    }

    #[inline]
    pub(super) fn count_poll_pass(&self) {
        self.poll_passes.add(1);
    }

    pub(super) fn poll_passes(&self) -> u64 {
        self.poll_passes.read()
    }

    pub(super) fn count_steal(&self) {
        self.steals.add(1);
    }

    pub(super) fn count_park(&self) {
        self.parks.add(1);
    }

    pub(super) fn begin_idle(&self, now_ns: u64) {
        self.idle_since_ns.store(now_ns.max(1), Ordering::Relaxed);
    }

    /// Ends an idle time at `now_ns`. Returns its begin.
    pub(super) fn end_idle(&self, now_ns: u64) -> u64 {
        let since_ns = self.idle_since_ns.load(Ordering::Relaxed);
        self.idle_ns.add(now_ns.saturating_sub(since_ns));
        self.idle_since_ns.store(0, Ordering::Relaxed);
        since_ns
    }

    fn idle(&self, now_ns: u64) -> Duration {
        let since_ns = self.idle_since_ns.load(Ordering::Relaxed);
        let present_ns = if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) };
        Duration::from_nanos(self.idle_ns.read() + present_ns)
    }
}

/// The sample of a worker.
pub(super) struct Sampler {
    armed: Cell<bool>,
    task: Cell<Option<RecordId>>,
    generation: Cell<u32>,
    ready_ns: Cell<u64>,
}

impl Sampler {
    pub(super) fn new() -> Self {
        Sampler {
            armed: Cell::new(false),
            task: Cell::new(None),
            generation: Cell::new(0),
            ready_ns: Cell::new(0),
        }
    }

    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.armed.get()
    }

    /// Returns `true` if `task` has the record of the sample.
    #[inline]
    pub(super) fn has(&self, task: RecordId) -> bool {
        self.task.get() == Some(task)
    }

    /// Returns `true` if no worker has begun the sample yet.
    fn waits(&self) -> bool {
        self.task.get().is_some_and(|task| {
            let (generation, phase) = record(task).state.phase();
            generation == self.generation.get()
                && matches!(phase, Phase::Created | Phase::Scheduled)
        })
    }

    /// Makes the next task that this worker queues the sample, unless a sample still waits.
    #[cold]
    pub(super) fn arm(&self) {
        if !self.waits() {
            self.task.set(None);
            self.armed.set(true);
        }
    }
}

impl Worker {
    /// Makes a task that this worker has queued the sample.
    #[cold]
    pub(super) fn begin_sample(&self, task: RecordId) {
        if record(task).role() != Role::Service {
            let sampler = &self.sampler;
            sampler.armed.set(false);
            sampler.task.set(Some(task));
            sampler.generation.set(record(task).generation());
            sampler.ready_ns.set(self.shared.clock.now_ns());
        }
    }

    /// Measures the delay of the sample, as this worker begins a task with its record.
    #[cold]
    pub(super) fn end_sample(&self, task: RecordId) {
        let sampler = &self.sampler;
        sampler.task.set(None);
        if sampler.generation.get() == record(task).generation() {
            let delay_ns = self.shared.clock.now_ns().saturating_sub(sampler.ready_ns.get());
            self.meter().delays[class_of(delay_ns)].add(1);
        }
    }
}

impl Shared {
    /// Returns the counts of all workers so far.
    pub(crate) fn metrics(&self) -> Metrics {
        let slots = || self.slots.iter();
        let sum = |count: fn(&Meter) -> &Counter| -> u64 {
            slots().map(|slot| count(&slot.meter).read()).sum()
        };
        let (created, completed, ended_ns) = self.counted();
        let now_ns = ended_ns.unwrap_or_else(|| self.clock.now_ns());
        let mut delays = Delays::default();
        for slot in &self.slots {
            for (class, counter) in slot.meter.delays.iter().enumerate() {
                delays.add(class, counter.read());
            }
        }
        let sets = || self.sets();
        let queued = QueueDepths {
            next: slots().filter(|slot| slot.hot.next.peek().is_some()).count() as u64,
            own: slots().map(|slot| (slot.stealers.len() + slot.affinity_queue.len()) as u64).sum(),
            shared: sets().map(|set| (set.injector.len() + set.returned.len()) as u64).sum(),
            priorities: sets().map(|set| set.priorities.len() as u64).sum(),
        };
        // Odd while a task runs, which has been begun.
        let begun = |steps: u64| steps.div_ceil(2);
        let runs = slots().map(|slot| begun(slot.hot.steps.load(Ordering::Relaxed))).sum::<u64>();
        let poll_passes = sum(|meter| &meter.poll_passes);
        Metrics {
            created,
            completed,
            made_ready: runs + poll_passes + queued.total(),
            runs,
            poll_passes,
            steals: sum(|meter| &meter.steals),
            parks: sum(|meter| &meter.parks),
            queued,
            delays,
            elapsed: Duration::from_nanos(now_ns),
            idle: match self.virtual_time {
                Some(_) => Vec::new(),
                None => slots().map(|slot| slot.meter.idle(now_ns)).collect(),
            },
            core_times: self.virtual_time.as_ref().map(|time| time.core_times()),
        }
    }
}
