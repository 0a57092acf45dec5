//! The loop of the executor.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::ready::Ready;
use super::state::{EventSource, VirtualState};
use crate::record::{Phase, RecordId, Role, record};
use crate::scheduler::Runner;
use crate::scheduler::policy::depth_first::until_settled;
use crate::scheduler::worker::Worker;
use crate::scheduler::worker_set::WorkerSet;

/// Pause, in real time, before the executor asks again whether threads outside wait.
const OUTSIDE: Duration = Duration::from_micros(20);
/// The same while nothing can happen before a thread outside acts that the runtime does not know.
const UNKNOWN: Duration = Duration::from_millis(1);

/// State of the loop.
struct Executor<'w> {
    worker: &'w Worker,
    time: &'w VirtualState,
    sources: Vec<Arc<dyn EventSource>>,
    /// Groups by the addresses of their heads.
    numbers: HashMap<usize, usize>,
    /// The last address that was asked for, and its number: tasks of one group follow each other.
    last_number: (usize, usize),
    groups: Vec<Ready>,
    /// Groups in which a task may start, each once, the first of them first.
    changed: BinaryHeap<Reverse<usize>>,
    /// Bodies that take time, by their ends.
    ends: BinaryHeap<Reverse<End>>,
    /// Number of tasks that were ready, and of those that took time.
    readied: u64,
    begun: u64,
}

/// End of a body that takes time. Ends at one time differ in their numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct End {
    at_ns: u64,
    number: u64,
    group: usize,
    core: u32,
    task: RecordId,
    began_ns: u64,
}

/// Time that a task keeps a core.
#[derive(Clone, Copy, Default)]
struct TaskTime {
    body_ns: u64,
    overhead_ns: u64,
}

impl Worker {
    /// Takes a task from the queues of all workers.
    fn take_shared(&self) -> Option<RecordId> {
        let WorkerSet { injector, returned, .. } = &*self.set;
        let taken = until_settled(|| injector.steal());
        taken.or_else(|| until_settled(|| returned.steal()))
    }

    /// Returns the time at which a timer is due, or a wait for an idle worker ends.
    fn next_timer_ns(&self) -> Option<u64> {
        let timer_ns = self.set.timers.next_ns();
        timer_ns.into_iter().chain(self.slot().idle_waiters.first_ns()).min()
    }

    /// Runs tasks in virtual time until the runtime ends.
    pub(in crate::scheduler) fn run_in_virtual_time<R: Runner>(&self) {
        let Some(time) = &self.shared.virtual_time else { return };
        Executor::new(self, time).run::<R>();
    }
}

impl<'w> Executor<'w> {
    fn new(worker: &'w Worker, time: &'w VirtualState) -> Self {
        Executor {
            worker,
            time,
            sources: Vec::new(),
            numbers: HashMap::new(),
            last_number: (0, 0),
            groups: Vec::new(),
            changed: BinaryHeap::new(),
            ends: BinaryHeap::new(),
            readied: 0,
            begun: 0,
        }
    }

    fn run<R: Runner>(&mut self) {
        let shared = &self.worker.shared;
        while !shared.stops() {
            if !shared.is_awaited() {
                self.worker.parker.park_timeout(OUTSIDE);
            } else if !self.start_ready::<R>() && !self.attend() && !self.pass_time::<R>() {
                self.stand_still();
            }
        }
    }

    /// Starts the tasks that are ready and have a core. Returns `true` if there was any.
    fn start_ready<R: Runner>(&mut self) -> bool {
        let mut any = self.collect::<R>();
        while let Some(Reverse(group)) = self.changed.pop() {
            self.groups[group].is_changed = false;
            while let Some((task, core)) = self.groups[group].take() {
                any = true;
                match self.time_of(task) {
                    TaskTime { body_ns: 0, overhead_ns: 0 } => {
                        self.worker.note_short_run(task, core);
                        self.execute::<R>(task);
                        self.collect::<R>();
                    }
                    time => self.begin(task, group, core, time),
                }
            }
        }
        any
    }

    /// Takes tasks from the queues of the worker into those of their groups. Runs inline ones.
    /// Returns `true` if there was any.
    fn collect<R: Runner>(&mut self) -> bool {
        let mut any = false;
        loop {
            let next = self.worker.slot().hot.next.take();
            let is_successor = next.is_some();
            let Some(task) = next.or_else(|| self.next_queued()) else {
                // Those that wait for what is counted below go into the queues.
                self.worker.settle();
                if self.worker.slot().hot.next.peek().is_none() && !self.worker.shared.has_ready() {
                    return any;
                }
                continue;
            };
            any = true;
            if record(task).marks().is_inline() {
                self.worker.note_inline_run();
                self.execute::<R>(task);
                continue;
            }
            let group = self.group_of(task);
            self.readied += 1;
            self.groups[group].add(task, is_successor, self.readied);
            self.note_changed(group);
        }
    }

    /// Runs a task, or what follows an `await` of it.
    fn execute<R: Runner>(&self, task: RecordId) {
        let is_service = record(task).role() == Role::Service;
        self.worker.execute::<R>(task, false);
        if !is_service {
            self.time.changes().note();
        }
    }

    fn next_queued(&self) -> Option<RecordId> {
        let priorities = &self.worker.set.priorities;
        let others =
            || self.worker.take_from_affinity_queue().or_else(|| self.worker.take_shared());
        let plain = self.worker.deques.pop_oldest(true).or_else(others);
        plain.or_else(|| priorities.pop_above()).or_else(|| priorities.pop_below())
    }

    fn group_of(&mut self, task: RecordId) -> usize {
        let head = record(task).group().addr();
        if self.last_number.0 != head {
            let (groups, cores) = (&mut self.groups, self.time.cores());
            let number = *self.numbers.entry(head).or_insert_with(|| {
                groups.push(Ready::new(cores));
                groups.len() - 1
            });
            self.last_number = (head, number);
        }
        self.last_number.1
    }

    /// Notes that a task may start in a group.
    fn note_changed(&mut self, group: usize) {
        if !std::mem::replace(&mut self.groups[group].is_changed, true) {
            self.changed.push(Reverse(group));
        }
    }

    /// Returns the time that the task keeps a core. What follows an `await` takes none.
    fn time_of(&self, task: RecordId) -> TaskTime {
        let task = record(task);
        if task.state.phase().1 != Phase::Created {
            return TaskTime::default();
        }
        let overhead_ns = match task.role() {
            Role::Main | Role::Service => 0,
            Role::Member | Role::Cleanup | Role::Replayed => self.time.task_overhead_ns(),
        };
        TaskTime { body_ns: task.marks().virtual_ns(), overhead_ns }
    }

    fn begin(&mut self, task: RecordId, group: usize, core: u32, time: TaskTime) {
        self.groups[group].occupy();
        self.begun += 1;
        self.time.count_task(time.body_ns, time.overhead_ns);
        let now_ns = self.worker.shared.clock.now_ns();
        self.worker.note_kept(task, core);
        let began_ns = now_ns.saturating_add(time.overhead_ns);
        let at_ns = began_ns.saturating_add(time.body_ns);
        self.ends.push(Reverse(End { at_ns, number: self.begun, group, core, task, began_ns }));
    }

    /// Polls for tasks that wait for an idle worker. Returns `true` if any goes on.
    fn attend(&self) -> bool {
        let waiters = &self.worker.slot().idle_waiters;
        if waiters.is_empty() {
            return false;
        }
        self.worker.attend();
        self.worker.shared.has_next() || self.worker.shared.has_ready()
    }

    /// Moves the clock to the next time at which anything happens, and lets the first thing happen.
    /// Returns `false` if nothing will.
    fn pass_time<R: Runner>(&mut self) -> bool {
        let shared = &self.worker.shared;
        self.time.update_sources(&mut self.sources);
        let sources = &self.sources;
        let source_ns = sources.iter().filter_map(|source| source.next_ns()).min();
        let timer_ns = self.worker.next_timer_ns();
        let end_ns = self.ends.peek().map(|Reverse(end)| end.at_ns);
        let Some(next_ns) = [source_ns, timer_ns, end_ns].into_iter().flatten().min() else {
            return false;
        };
        self.time.hand().move_to(next_ns);
        for source in sources {
            shared.call_back("a source of events", || source.advance(next_ns));
        }
        if source_ns.is_some_and(|at_ns| at_ns <= next_ns) {
            self.time.changes().note();
            return true;
        }
        if timer_ns.is_some_and(|at_ns| at_ns <= next_ns) {
            self.worker.wake_due();
            return true;
        }
        if let Some(Reverse(End { group, core, task, began_ns, .. })) = self.ends.pop() {
            self.groups[group].free(core);
            self.note_changed(group);
            self.worker.note_run(task, core, began_ns);
            self.execute::<R>(task);
        }
        true
    }

    /// Reports a hang if no thread outside can end it, and else waits for one in real time.
    #[cold]
    fn stand_still(&self) {
        let shared = &self.worker.shared;
        if shared.hang.report().is_none() && shared.watchdog.is_stuck(shared) {
            shared.watchdog.report_certain(shared);
        } else {
            self.worker.parker.park_timeout(UNKNOWN);
        }
    }
}
