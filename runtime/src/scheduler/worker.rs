//! Worker threads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crossbeam_utils::{Backoff, CachePadded};
use talpf_primitives::{Ordering, Parker, thread};
use talpf_traces::{LabelId, Recorder, State, Stream};

use super::idleness::{CurrentWatch, OthersTasks};
use super::io::enter_tokio;
use super::meter::{Meter, Sampler};
use super::policy::Policy;
use super::policy::depth_first::Deques;
use super::policy::rest::Thief;
use super::trace_state::TraceState;
use super::virtual_time::CoreStreams;
use super::worker_set::WorkerSet;
use super::worker_slot::WorkerSlot;
#[cfg(feature = "tracing")]
use super::worker_spans::WorkerSpans;
use super::{Runner, Shared, blocked_thread, current};
use crate::callback::catch_panic;
use crate::group::GroupInner;
use crate::idle_policy::IdlePolicy;
use crate::record::{Label, RecordId, Role, record};

/// The state of a worker that only its thread touches.
pub(crate) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) set: Arc<WorkerSet>,
    pub(super) index: usize,
    /// The part that other threads see.
    slot: Arc<CachePadded<WorkerSlot>>,
    pub(super) deques: Deques,
    pub(super) parker: Parker,
    pub(super) is_traced: bool,
    pub(super) traces_edges: bool,
    pub(super) has_next_slot: bool,
    pub(super) is_depth_first: bool,
    /// Stream of the trace; `None` in virtual time.
    pub(super) stream: RefCell<Option<Stream>>,
    /// Streams of virtual cores, in virtual time.
    pub(super) core_streams: Option<CoreStreams>,
    /// `true` while a task runs inside a spawn.
    pub(super) helping: Cell<bool>,
    /// Average time of the tasks that this worker last ran inside a spawn.
    pub(super) grain_ns: Cell<u64>,
    /// Rounds since the thread began, for checks that are made now and then.
    tick: Cell<u32>,
    /// The trace's numbers of the task labels that this worker has met.
    pub(super) labels: RefCell<HashMap<Label, LabelId>>,
    pub(super) trace_state: TraceState,
    #[cfg(feature = "tracing")]
    pub(super) spans: WorkerSpans,
    /// The group of the last tasks that this worker has completed, if somebody may wait for them.
    unsettled: Cell<Option<&'static GroupInner>>,
    pub(super) current_watch: CurrentWatch,
    others_tasks: OthersTasks,
    pub(super) thief: Thief,
    pub(super) sampler: Sampler,
}

/// Rounds between readings of the clock, while something waits for a time.
const CLOCK_ROUNDS: u32 = 4;
/// Rounds between polls of the queues that a chain of successors would starve.
const FAIR_ROUNDS: u32 = 64;
/// Rounds of an idle worker that does not park between checks of whether the runtime hangs.
const WATCH_ROUNDS: u32 = 4096;
/// Pauses between the polls of a worker without work, about 50 ns each: every poll takes the cache
/// lines of the queues from the workers that have work.
const PAUSES: u32 = 8;
/// Name, in reports, of the condition with which a task waits for idleness.
const IDLE_POLL: &str = "a poll of an idle worker";
/// Longest time that a worker parks while another is awake, whose next slot may have to be emptied.
const PARK_BESIDE_BUSY: Duration = Duration::from_micros(500);
/// Time that all workers are parked before one of them checks whether the runtime certainly hangs.
const FIRST_CHECK: Duration = Duration::from_millis(5);
/// Longest pause between such checks.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, index: usize, deques: Deques, parker: Parker) -> Self {
        let recorder = shared.config.recorder.as_ref();
        let core_streams = CoreStreams::new(shared.virtual_time.as_deref(), recorder);
        let own = recorder.filter(|_| core_streams.is_none());
        let stream = own.map(|recorder| recorder.stream(index as u32));
        let thief = Thief::new(shared.workers());
        let others_tasks = OthersTasks::new(shared.slots.len());
        let (slot, set) = (Arc::clone(&shared.slots[index]), Arc::clone(shared.set_of(index).0));
        let policies = shared.config.policies;
        let traces_edges = recorder.is_some_and(Recorder::keeps_edges);
        Worker {
            shared,
            set,
            index,
            slot,
            deques,
            parker,
            is_traced: stream.is_some() || core_streams.is_some(),
            traces_edges,
            has_next_slot: policies.has(Policy::NextSlot),
            is_depth_first: policies.has(Policy::DepthFirst),
            stream: RefCell::new(stream),
            core_streams,
            helping: Cell::new(false),
            grain_ns: Cell::new(u64::MAX),
            tick: Cell::new(0),
            labels: RefCell::default(),
            trace_state: TraceState::default(),
            #[cfg(feature = "tracing")]
            spans: WorkerSpans::default(),
            unsettled: Cell::new(None),
            current_watch: CurrentWatch::default(),
            others_tasks,
            thief,
            sampler: Sampler::new(),
        }
    }

    /// Runs the worker on its thread, until the runtime ends.
    pub(super) fn work<R: Runner>(&self) {
        self.slot().thread.store(blocked_thread::own_id(), Ordering::Relaxed);
        let tokio = enter_tokio(&self.shared.tokio);
        current::enter(self, || {
            // Whatever panics, the tasks of other groups still need this worker.
            let run = || match self.shared.virtual_time.is_some() {
                true => self.run_in_virtual_time::<R>(),
                false => self.run_tasks::<R>(),
            };
            while let Err(reason) = catch_panic(run) {
                self.recover(&reason);
            }
            self.settle();
            for waiter in self.slot().idle_waiters.take_all() {
                self.shared.call_back(IDLE_POLL, || drop(waiter));
            }
        });
        drop(tokio);
        self.stream.borrow_mut().take();
        self.core_streams.iter().for_each(|streams| streams.end(self.shared.clock.now_ns()));
    }

    /// Runs tasks until the runtime ends.
    fn run_tasks<R: Runner>(&self) {
        let oversubscribed = self.shared.is_oversubscribed();
        loop {
            if let Some(task) = self.find() {
                self.execute::<R>(task, false);
            } else if let Some(task) = self.idle::<R>(oversubscribed) {
                self.execute::<R>(task, true);
            } else {
                break;
            }
        }
    }

    /// Restores the state in which no task runs on this worker, after a panic outside all bodies.
    #[cold]
    fn recover(&self, reason: &str) {
        let steps = &self.slot().hot.steps;
        steps.store(steps.load(Ordering::Relaxed).next_multiple_of(2), Ordering::Relaxed);
        self.helping.set(false);
        self.shared.note_panic("a worker", reason);
    }

    #[inline]
    pub(super) fn slot(&self) -> &WorkerSlot {
        &self.slot
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.slot().meter
    }

    #[inline]
    pub(super) fn is_spare(&self) -> bool {
        self.has_nothing_else() && self.shared.is_busy_beside(self.index)
    }

    /// Returns `true` if the running task is all that this worker has to do.
    #[inline]
    pub(super) fn has_nothing_else(&self) -> bool {
        let has_own = self.slot().has_own_ready(&self.deques);
        self.shared.spins() && !has_own && !self.set.has_ready_beside(self.index)
    }

    /// Counts a completed task of this runtime.
    #[inline]
    pub(super) fn count_completion(&self, group: &'static GroupInner, role: Role) {
        let last = self.unsettled.get();
        if !last.is_some_and(|last| std::ptr::eq(last, group)) {
            self.settle();
            self.unsettled.set(Some(group));
        }
        group.count_completion(role, self.index);
    }

    /// Makes sure that nobody waits for the tasks that this worker has completed.
    #[inline]
    pub(super) fn settle(&self) {
        if let Some(group) = self.unsettled.take() {
            group.settle();
        }
    }

    #[inline(always)]
    pub(super) fn execute<R: Runner>(&self, task: RecordId, after_idling: bool) {
        let role = record(task).role();
        let is_other = |group: &GroupInner| !group.is_of(record(task));
        if role != Role::Member || self.unsettled.get().is_some_and(is_other) {
            self.leave_group_for(role);
        }
        if role == Role::Service {
            return self.serve::<R>(task);
        }
        let steps = &self.slot().hot.steps;
        let before = steps.load(Ordering::Relaxed);
        // Already odd if the task runs inside a spawn of another.
        let nested = before % 2;
        steps.store(before.wrapping_add(1 + nested), Ordering::Relaxed);
        if after_idling {
            self.set.keep_watch();
        }
        R::run(task);
        let inside = steps.load(Ordering::Relaxed);
        steps.store(inside.wrapping_add(1 - nested), Ordering::Relaxed);
    }

    /// Leaves the members of one group for any other task.
    #[cold]
    fn leave_group_for(&self, role: Role) {
        self.settle();
        if role == Role::Main {
            self.forget_theft();
        }
    }

    /// Runs a pass of a service, which is no progress.
    #[cold]
    fn serve<R: Runner>(&self, task: RecordId) {
        self.meter().count_poll_pass();
        self.in_state(State::Polling, || R::run(task));
    }

    #[inline]
    fn find(&self) -> Option<RecordId> {
        let tick = self.tick.get().wrapping_add(1);
        self.tick.set(tick);
        if tick.is_multiple_of(CLOCK_ROUNDS) {
            self.wake_due();
            self.measure_stolen();
        }
        let next = &self.slot().hot.next;
        if tick.is_multiple_of(FAIR_ROUNDS) {
            self.sampler.arm();
            let returned = || self.take_returned().or_else(|| self.take_from_affinity_queue());
            let fair = self.take_injected().or_else(returned);
            if let Some(task) = fair.or_else(|| self.deques.pop_oldest(tick / FAIR_ROUNDS % 2 == 1))
            {
                return Some(task);
            }
        }
        self.set
            .priorities
            .pop_above()
            .or_else(|| next.take())
            .or_else(|| self.deques.pop())
            .or_else(|| self.take_from_affinity_queue())
            .or_else(|| self.find_shared())
    }

    fn find_shared(&self) -> Option<RecordId> {
        self.settle();
        // A task that waited for what is settled is in the next slot.
        let next = self.slot().hot.next.take();
        next.or_else(|| self.take_injected())
            .or_else(|| self.steal())
            .or_else(|| self.last_resort())
    }

    /// Takes a task of a priority below 0, unless another task has come meanwhile.
    fn last_resort(&self) -> Option<RecordId> {
        let task = self.set.priorities.pop_below()?;
        let better = self.take_injected();
        if better.is_some() {
            self.set.priorities.push(record(task).urgency(), task);
        }
        better.or(Some(task))
    }

    /// Takes a task that other threads have made ready for this worker.
    #[inline]
    pub(super) fn take_from_affinity_queue(&self) -> Option<RecordId> {
        self.take_some(&self.slot().affinity_queue)
    }

    /// Wakes the tasks that wait for a time that has come. Returns `true` if there were any.
    pub(super) fn wake_due(&self) -> bool {
        let timer = self.set.timers.next_ns();
        let mut slots = self.set.slots();
        if timer.is_none() && slots.all(|slot| slot.idle_waiters.is_empty()) {
            return false;
        }
        let now_ns = self.shared.clock.now_ns();
        let is_due = timer.is_some_and(|due_ns| due_ns <= now_ns);
        if is_due {
            let due = self.set.timers.take_due(now_ns);
            due.for_each(|waker| self.wake(waker));
        }
        let late = self.set.slots().filter(|slot| slot.idle_waiters.is_late(now_ns));
        let late = late.flat_map(|slot| slot.idle_waiters.take_late(now_ns));
        late.fold(is_due, |_, waiter| {
            self.shared.call_back(IDLE_POLL, || waiter.wake());
            true
        })
    }

    pub(super) fn wake(&self, waker: Waker) {
        self.shared.call_back("a waker", || waker.wake());
    }

    /// Polls for a task that waits for this worker to be idle, and takes over one that waits for a
    /// worker which is in a task, a long one if this worker polls already. Returns `true` if there
    /// is any.
    pub(super) fn attend(&self) -> bool {
        let attend = || self.slot().idle_waiters.attend(self.meter(), &self.current_watch);
        let own = self.shared.call_back(IDLE_POLL, attend).unwrap_or_else(|| {
            self.shared.call_back(IDLE_POLL, || drop(self.current_watch.take()));
            true
        });
        let mut others = self.set.beside(self.index).filter(|(other, slot)| {
            !slot.idle_waiters.is_empty()
                && slot.hot.is_in_task()
                && (!own || self.others_tasks.lasts(*other, slot.hot.steps.load(Ordering::Relaxed)))
        });
        let adopted = others.find_map(|(_, slot)| slot.idle_waiters.pop());
        let any = own || adopted.is_some();
        adopted.into_iter().for_each(|waiter| self.slot().idle_waiters.add(waiter));
        any
    }

    /// Searches for work until there is some, as the idle policy says. `None`: the runtime ends.
    #[cold]
    fn idle<R: Runner>(&self, oversubscribed: bool) -> Option<RecordId> {
        let clock = &self.shared.clock;
        let spin_ns = match self.shared.config.idle {
            IdlePolicy::Spin => u64::MAX,
            IdlePolicy::Adaptive { .. } if oversubscribed => 0,
            IdlePolicy::Adaptive { spin } => spin.as_nanos() as u64,
            IdlePolicy::Park => 0,
        };
        let mut since_ns = clock.now_ns();
        let mut now_ns = since_ns;
        self.meter().begin_idle(since_ns);
        self.note_ready_at_others(true);
        self.measure_all_stolen();
        let (mut polls, mut spins, mut rounds) = (false, true, 0u32);
        let backoff = Backoff::new();
        loop {
            if self.shared.stops() {
                self.end_idle(clock.now_ns());
                return None;
            }
            if let Some(task) = self.find() {
                if record(task).role() != Role::Service {
                    // The last search in vain is long ago if the worker has polled since.
                    self.end_idle(if polls { clock.now_ns() } else { now_ns });
                    self.thief.note_idle(0);
                    return Some(task);
                }
                polls = true;
                self.begin_polls();
                self.execute::<R>(task, false);
                continue;
            }
            // Not by ticks: the searches in vain may all have an odd number.
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(WATCH_ROUNDS) {
                self.shared.watchdog.watch(&self.shared);
            }
            if self.attend() {
                polls = true;
                self.begin_polls();
                continue;
            }
            if self.wake_due() {
                continue;
            }
            now_ns = clock.now_ns();
            polls = false;
            self.end_polls(now_ns);
            self.note_ready_at_others(false);
            self.thief.note_idle(now_ns.saturating_sub(since_ns));
            if self.rests(now_ns) || spins && now_ns.saturating_sub(since_ns) < spin_ns {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            } else if oversubscribed && spins && !backoff.is_completed() {
                backoff.snooze();
                thread::yield_now();
            } else {
                spins = self.in_state(State::Blocked, || self.park());
                since_ns = clock.now_ns();
                now_ns = since_ns;
                backoff.reset();
            }
        }
    }

    /// Parks, unless there is something to do. Returns `false` if the park has ended by itself, as at the end
    /// of a nap, and no task lies in a next slot: the worker then does not spin before it parks again.
    fn park(&self) -> bool {
        self.meter().count_park();
        self.set.enter_idle(self.index);
        let mut hangs = false;
        let has_work = self.shared.stops() || self.set.has_work();
        if !has_work {
            let timer = self.set.timers.next_ns().map(|due_ns| {
                Duration::from_nanos(due_ns.saturating_sub(self.shared.clock.now_ns()))
            });
            let beside_busy = self.set.is_any_awake().then_some(PARK_BESIDE_BUSY);
            let watch = self.shared.hang.period(&self.shared.config);
            let watches = timer.is_some() || beside_busy.is_some();
            if watches {
                self.set.watch(true);
            }
            match [timer, beside_busy, watch].into_iter().flatten().min() {
                Some(longest) if self.index == 0 && !watches => {
                    hangs = self.park_and_check(longest)
                }
                Some(longest) => self.parker.park_timeout(longest),
                None => self.parker.park(),
            }
            if watches {
                self.set.watch(false);
            }
        }
        let was_woken = !self.set.leave_idle(self.index);
        match hangs {
            true => self.shared.watchdog.report_certain(&self.shared),
            false => self.shared.watchdog.watch(&self.shared),
        }
        has_work || was_woken || self.set.has_next()
    }

    /// Parks, and checks now and then. Returns `true` if the runtime certainly hangs.
    fn park_and_check(&self, longest: Duration) -> bool {
        let (mut pause, mut parked, mut seen) = (FIRST_CHECK, Duration::ZERO, None);
        while parked < longest {
            self.parker.park_timeout(pause.min(longest - parked));
            if self.shared.stops() || !self.set.is_idle(self.index) {
                return false;
            }
            if self.shared.watchdog.is_certain(&self.shared, &mut seen) {
                return true;
            }
            parked += pause;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        false
    }
}
