//! What the workers of a runtime share.

use std::sync::{Arc, OnceLock};

use crossbeam_deque::Injector;
use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Parker, Unparker};

use super::block_on::Blocked;
use super::blocked_thread::is_locked_out;
use super::census::Census;
use super::current::goes_on_anywhere;
use super::deques::Deques;
use super::idle_set::IdleSet;
use super::priority::PriorityQueue;
use super::queues::Seat;
use super::steal_delay::StealDelay;
use super::time::Timers;
use super::worker::Worker;
use crate::clock::Clock;
use crate::config::Config;
use crate::cores::cores;
use crate::group::{Closing, GroupInner};
use crate::hang::Hang;
use crate::idle_policy::IdlePolicy;
use crate::replay;
use crate::task::{RecordId, record};

/// The state of a runtime that all its threads see.
pub(crate) struct Shared {
    pub(crate) config: Config,
    oversubscribed: bool,
    pub(crate) clock: Clock,
    pub(crate) hang: Hang,
    pub(super) seats: Box<[Arc<CachePadded<Seat>>]>,
    pub(super) injector: Injector<RecordId>,
    /// Tasks that thieves have given back.
    pub(super) returned: Injector<RecordId>,
    pub(super) priorities: PriorityQueue,
    pub(super) timers: Timers,
    pub(super) tokio: tokio::runtime::Handle,
    idle: IdleSet,
    unparkers: Box<[Unparker]>,
    /// Threads outside that block on a future.
    pub(super) blocked: Mutex<Vec<Arc<Blocked>>>,
    /// Polls of their futures by those threads.
    pub(super) blocked_polls: AtomicU64,
    groups: Mutex<Vec<Arc<GroupInner>>>,
    /// What the groups had counted when they were given up.
    ended: OnceLock<Ended>,
    pub(crate) closing: Closing,
    stop: AtomicBool,
    pub(super) steal_delay: StealDelay,
    /// Parked workers that wake by themselves to look after the others.
    watchers: AtomicUsize,
}

/// Tasks of a runtime that has ended, and when it did.
struct Ended {
    created: u64,
    completed: u64,
    at_ns: u64,
}

/// A worker that has not started: it is made before its thread, which takes it along.
pub(crate) struct Seated {
    shared: Arc<Shared>,
    index: usize,
    deques: Deques,
    parker: Parker,
}

impl Seated {
    /// Works until the runtime ends.
    pub(crate) fn start(self) {
        Worker::new(self.shared, self.index, self.deques, self.parker).work();
    }
}

/// Makes the shared state and the workers of a runtime.
pub(crate) fn prepare(config: Config, tokio: tokio::runtime::Handle) -> (Arc<Shared>, Vec<Seated>) {
    let own: Vec<_> = (0..config.workers).map(|_| (Deques::new(), Parker::new())).collect();
    let seats = own.iter().map(|(deques, _)| Arc::new(Seat::new(deques.stealers()))).collect();
    let unparkers = own.iter().map(|(_, parker)| parker.unparker().clone()).collect();
    let shared = Arc::new(Shared::new(config, tokio, seats, unparkers));
    let seated = own.into_iter().enumerate().map(|(index, (deques, parker))| {
        let shared = Arc::clone(&shared);
        Seated { shared, index, deques, parker }
    });
    let seated = seated.collect();
    (shared, seated)
}

impl Shared {
    fn new(
        config: Config,
        tokio: tokio::runtime::Handle,
        seats: Box<[Arc<CachePadded<Seat>>]>,
        unparkers: Box<[Unparker]>,
    ) -> Self {
        let oversubscribed = config.workers > cores();
        let steal_delay = StealDelay::new(config.idle, oversubscribed);
        Shared {
            oversubscribed,
            config,
            clock: Clock::start(),
            hang: Hang::default(),
            seats,
            injector: Injector::new(),
            returned: Injector::new(),
            priorities: PriorityQueue::default(),
            timers: Timers::new(),
            tokio,
            idle: IdleSet::default(),
            unparkers,
            blocked: Mutex::default(),
            blocked_polls: AtomicU64::new(0),
            groups: Mutex::default(),
            ended: OnceLock::new(),
            closing: Closing::default(),
            stop: AtomicBool::new(false),
            steal_delay,
            watchers: AtomicUsize::new(0),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.seats.len()
    }

    /// Begins the shutdown: from now on only tasks that are not complete may spawn.
    pub(crate) fn begin_closing(&self) {
        self.closing.begin();
    }

    /// Makes a parked worker look for work that was just made outside the workers' deques.
    pub(super) fn wake_one(&self) {
        if let Some(worker) = self.idle.after_shared_push(None) {
            self.unparkers[worker].unpark();
        }
    }

    /// Makes a parked worker look for work that worker `pusher` has just put into its deque.
    #[inline]
    pub(super) fn wake_another(&self, pusher: usize) {
        if let Some(worker) = self.idle.after_push(&self.seats[pusher].pulse.pushes) {
            self.unparkers[worker].unpark();
        }
    }

    /// A worker goes to work: if others are parked, one of them has to keep watch over it.
    pub(super) fn keep_watch(&self) {
        // One that parks just now sees this worker awake, and keeps watch by itself.
        if self.idle.len() > 0 && self.watchers.load(Ordering::SeqCst) == 0 {
            self.wake_one();
        }
    }

    pub(super) fn watch(&self, watches: bool) {
        match watches {
            true => self.watchers.fetch_add(1, Ordering::SeqCst),
            false => self.watchers.fetch_sub(1, Ordering::SeqCst),
        };
    }

    pub(super) fn enter_idle(&self, worker: usize) {
        self.idle.enter(worker);
    }

    /// Returns whether a worker is still in the idle set: nobody has taken it off to wake it.
    pub(super) fn is_idle(&self, worker: usize) -> bool {
        self.idle.contains(worker)
    }

    /// Whether a worker is neither parked nor about to park.
    pub(super) fn is_any_awake(&self) -> bool {
        self.idle.len() < self.workers()
    }

    pub(super) fn leave_idle(&self, worker: usize) {
        self.idle.leave(worker);
    }

    /// Whether a worker that is about to park would find anything to do.
    pub(super) fn has_work(&self) -> bool {
        self.stops()
            || !self.injector.is_empty()
            || !self.returned.is_empty()
            || !self.priorities.is_empty()
            || self.seats.iter().any(|seat| seat.has_work())
    }

    /// Queues a task where every worker looks.
    pub(super) fn inject(&self, task: RecordId) {
        self.injector.push(task);
        self.wake_one();
    }

    /// Queues a task where worker `home` looks, and others that have nothing else to do.
    pub(super) fn send_home(&self, home: usize, task: RecordId) {
        self.seats[home].mail.push(task);
        if let Some(worker) = self.idle.after_shared_push(Some(home)) {
            self.unparkers[worker].unpark();
        }
    }

    /// Queues a task that a thief gives back, or where every worker looks if it may be long.
    pub(super) fn give_back(&self, task: RecordId) {
        if goes_on_anywhere(task) {
            return self.inject(task);
        }
        if let Some(home) = replay::home(record(task)) {
            return self.send_home(home, task);
        }
        self.returned.push(task);
        self.wake_one();
    }

    /// Whether a task is ready that any worker may run.
    pub(crate) fn has_ready(&self) -> bool {
        !self.injector.is_empty()
            || !self.returned.is_empty()
            || !self.priorities.is_empty()
            || self.seats.iter().any(|seat| seat.has_ready())
    }

    /// Whether a worker has a task that it runs next.
    pub(crate) fn has_next(&self) -> bool {
        self.seats.iter().any(|seat| seat.pulse.next.peek().is_some())
    }

    #[inline]
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn add_group(&self, group: Arc<GroupInner>) {
        self.groups.lock().push(group);
    }

    /// The groups so far.
    pub(crate) fn groups(&self) -> Vec<Arc<GroupInner>> {
        self.groups.lock().clone()
    }

    /// How often workers have begun or ended a task that counts as progress, and whether one is in
    /// such a task now.
    pub(crate) fn progress(&self) -> (u64, bool) {
        let mut sum = 0u64;
        let mut busy = false;
        for seat in &self.seats {
            let steps = seat.pulse.steps.load(Ordering::Relaxed);
            sum = sum.wrapping_add(steps);
            busy |= steps % 2 == 1;
        }
        (sum, busy)
    }

    /// Counts how often anything was begun: tasks, passes of services, looks for those who wait for
    /// idleness, polls of blocked threads.
    pub(crate) fn activity(&self) -> u64 {
        let passes = self.seats.iter().map(|seat| seat.meter.poll_passes());
        let polls = self.blocked_polls.load(Ordering::Relaxed);
        passes.fold(self.progress().0.wrapping_add(polls), u64::wrapping_add)
    }

    /// Returns whether all workers are parked, with nothing to do and no time to wait for.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.idle.count() == self.workers()
            && !self.has_work()
            && !self.has_next()
            && self.timers.next_ns().is_none()
    }

    /// The threads of the process that are neither workers nor on the list of those that block, as
    /// [`Census::take`].
    pub(crate) fn other_threads(&self) -> Option<Census> {
        let workers = self.seats.iter().map(|seat| seat.thread.load(Ordering::Relaxed));
        let blocked = self.blocked.lock().iter().map(|blocked| blocked.id()).collect::<Vec<_>>();
        Census::take(&workers.chain(blocked).collect::<Vec<_>>())
    }

    /// Returns whether all workers that are in a task wait there for another thread, for as long as
    /// that takes, and one of them inside a spawn.
    ///
    /// **Cost**: a file of the system for each of them.
    pub(crate) fn is_locked_out(&self) -> bool {
        let busy = || self.seats.iter().filter(|seat| seat.pulse.is_in_task());
        busy().any(|seat| seat.pulse.help().is_some())
            && busy().all(|seat| is_locked_out(seat.thread.load(Ordering::Relaxed)))
    }

    /// Returns whether a worker waits in a task for another thread.
    pub(crate) fn is_worker_locked_out(&self, worker: usize) -> bool {
        let seat = &self.seats[worker];
        seat.pulse.is_in_task() && is_locked_out(seat.thread.load(Ordering::Relaxed))
    }

    /// Pairs of a task that spawns and one that runs inside the spawn.
    pub(crate) fn helps(&self) -> Vec<[RecordId; 2]> {
        self.seats.iter().filter_map(|seat| seat.pulse.help()).collect()
    }

    /// Workers that are in a task that counts as progress.
    pub(crate) fn busy_workers(&self) -> usize {
        self.seats.iter().filter(|seat| seat.pulse.is_in_task()).count()
    }

    /// Whether a worker other than this is in a task that counts as progress.
    pub(super) fn is_busy_beside(&self, index: usize) -> bool {
        let busy =
            |seat: &Seat| seat.pulse.is_in_task() && !seat.pulse.catches_up.load(Ordering::Relaxed);
        self.seats.iter().enumerate().any(|(other, seat)| other != index && busy(seat))
    }

    /// Whether there are more workers than cores.
    pub(super) fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Whether idle workers look on for a while before they park.
    pub(super) fn spins(&self) -> bool {
        self.config.idle != IdlePolicy::Park && !self.oversubscribed
    }

    /// Notes that tasks with tiles of so many bytes are queued for one worker.
    pub(crate) fn note_tile(&self, bytes: usize) {
        self.steal_delay.note_tile(bytes);
    }

    pub(crate) fn wake_blocked(&self) {
        self.blocked.lock().iter().for_each(|blocked| blocked.unpark());
    }

    /// What the blocked threads wait for; `None` for something the runtime knows nothing of.
    pub(crate) fn blocked_on(&self) -> Vec<Option<&'static str>> {
        self.blocked.lock().iter().map(|blocked| blocked.waits_for()).collect()
    }

    /// Lets the workers end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.unparkers.iter().for_each(Unparker::unpark);
    }

    /// Gives up the groups, whose tasks are all complete, and so the cycle they make with this.
    pub(crate) fn forget_groups(&self) {
        let (created, completed, _) = self.counted();
        let _ = self.ended.set(Ended { created, completed, at_ns: self.clock.now_ns() });
        let groups = std::mem::take(&mut *self.groups.lock());
        drop(groups);
    }

    /// Tasks that were spawned and that are complete, and when the runtime ended if it has.
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
