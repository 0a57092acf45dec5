//! Event lines: the events of a thread at each moment.
//!
//! A sync may begin on one worker and end on another, and several may be open at once. It is drawn
//! on the thread where it began; that thread shows the latest one that is still open. As that
//! hides others, each leaves its own times where it ends.

use std::collections::{HashMap, HashSet};

use super::causes::Causes;
use super::communications::{Arrival, Half};
use super::entry::{Edge, Entry};
use super::layout::{Layout, Location, Thread};
use super::owners::Owners;
use super::slices::{RunningTask, Slices};
use super::timeline::Timeline;
use crate::paraver::{EXACT_LIMIT, EventKind, FIRST_COUNTER};
use crate::{Event, LabelId, MessageKind, SyncMode, ValueKind};

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointKind {
    /// Type of our own.
    Own(EventKind),
    /// Number of the program with this name.
    Counter(LabelId),
}

impl PointKind {
    /// Returns the number in the trace.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Own(kind) => kind.number(),
            Self::Counter(label) => FIRST_COUNTER.saturating_add(label.index() as u32),
        }
    }
}

/// Event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) thread: Thread,
    pub(super) kind: PointKind,
    pub(super) value: i64,
}

impl Point {
    /// Returns `true` if the event belongs to the half of a message or to an edge, and is not its first.
    pub(super) fn continues(&self) -> bool {
        let [_, sent @ ..] = EventKind::SENT;
        let [_, received @ ..] = EventKind::RECEIVED;
        match self.kind {
            PointKind::Own(EventKind::ReadyBy) => true,
            PointKind::Own(kind) => sent.contains(&kind) || received.contains(&kind),
            PointKind::Counter(_) => false,
        }
    }
}

/// Rank, lane and round.
type SyncKey = (u32, u32, u64);

#[derive(Clone, Copy, Debug)]
struct OpenSync {
    key: SyncKey,
    asked_ns: u64,
    mode: SyncMode,
    expected: Option<u32>,
}

/// Converter of records into events, in the order of the timeline.
#[derive(Debug)]
pub(super) struct Points<'a> {
    layout: Layout,
    label_count: usize,
    slices: Slices<'a>,
    owners: Owners,
    /// Task that each worker is shown to run.
    shown: Vec<Option<RunningTask>>,
    /// Span that each worker is shown to be in, and the row.
    shown_spans: Vec<Option<(Thread, LabelId)>>,
    /// Thread where each open sync began.
    sync_threads: HashMap<SyncKey, Thread>,
    /// Open syncs of each thread, the latest last.
    open_syncs: Vec<Vec<OpenSync>>,
    /// Number of open syncs of each rank.
    rounds_open: Vec<i64>,
    causes: Causes<'a>,
    /// Rows whose queues are shown to have tasks, and ranks shown to have tasks that are not done.
    ready: HashSet<Thread>,
    not_done: HashSet<u32>,
    moment: Vec<Point>,
}

impl<'a> Points<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>, label_count: usize) -> Self {
        let layout = timeline.layout();
        let threads = layout.thread_count() as usize;
        Self {
            label_count,
            slices: Slices::new(layout.streams()),
            owners: Owners::new(timeline),
            shown: vec![None; layout.streams() as usize],
            shown_spans: vec![None; layout.streams() as usize],
            sync_threads: HashMap::new(),
            open_syncs: vec![Vec::new(); threads],
            rounds_open: vec![0; layout.ranks as usize],
            causes: Causes::new(timeline),
            ready: HashSet::new(),
            not_done: HashSet::new(),
            moment: Vec::new(),
            layout,
        }
    }

    /// Adds the events of one entry to the moment.
    pub(super) fn add(&mut self, entry: Entry<'a>) {
        self.slices.apply(entry);
        if let Some(left) = self.owners.follow(entry.worker, &self.slices) {
            self.show_ready(left, 0);
        }
        self.causes.apply(entry);
        match entry.record.event {
            Event::TaskSlice { starts, rank, label, .. } => {
                self.show_running(entry.worker);
                if starts && entry.edge == Edge::Begin {
                    let kind = self.task_type(label);
                    self.show(entry.thread(rank), EventKind::TaskStarted, kind);
                }
            }
            Event::Mark { label } => {
                let name = self.task_type(label);
                self.show(self.owners.thread(entry.worker), EventKind::Mark, name);
            }
            Event::Counter { label, value } => {
                let kind = PointKind::Counter(label);
                let thread = self.owners.thread(entry.worker);
                self.moment.push(Point { thread, kind, value });
            }
            Event::Ready { rank, task, by } => {
                let thread = entry.thread(rank);
                self.show(thread, EventKind::TaskReady, number_of(task));
                let by = if by == 0 { 0 } else { number_of(by) };
                self.show(thread, EventKind::ReadyBy, by);
            }
            Event::SyncBegin { rank, lane, round, mode, expected } => {
                let asked_ns = entry.time_ns();
                let sync = OpenSync { key: (rank, lane, round), asked_ns, mode, expected };
                self.begin_sync(entry.thread(rank), sync);
            }
            Event::SyncEnd { rank, lane, round, posted, arrived } => {
                let thread = entry.thread(rank);
                self.show(thread, EventKind::SyncEnded, from_one(round));
                self.show(thread, EventKind::SyncOwnWorkDone, posted.as_nanos() as i64);
                self.show(thread, EventKind::SyncArrivalsComplete, arrived.as_nanos() as i64);
                if let Some(sync) = self.end_sync((rank, lane, round)) {
                    let asked_ns = (entry.time_ns() - sync.asked_ns) as i64;
                    self.show(thread, EventKind::SyncAsked, asked_ns);
                    self.show(thread, EventKind::SyncEndedMode, sync.mode.number());
                }
            }
            Event::Value { rank, kind, value } => {
                let first = self.layout.first_thread(rank);
                match kind {
                    ValueKind::TasksReady => self.show_ready(entry.thread(rank), value),
                    ValueKind::TasksNotDone => self.show_not_done(rank, value),
                    ValueKind::PollCompletions | ValueKind::ReceivePosted | ValueKind::Step => {
                        self.show(entry.thread(rank), kind.into(), value);
                    }
                    ValueKind::OutstandingRequests
                    | ValueKind::TimedPart
                    | ValueKind::SlowCores => {
                        self.show(first, kind.into(), value);
                    }
                }
            }
            // Where a worker becomes idle its queues are empty.
            Event::Idle { .. } if entry.edge == Edge::Begin => {
                self.show_ready(self.owners.thread(entry.worker), 0);
            }
            _ => {}
        }
        if matches!(entry.record.event, Event::TaskSlice { .. } | Event::SpanSlice { .. }) {
            self.show_span(entry.worker);
        }
    }

    /// Adds an arrival to the moment.
    pub(super) fn add_arrival(&mut self, arrival: &Arrival) {
        self.show(arrival.at, EventKind::MessageKind, arrival.kind.number());
        if let Some(lane) = arrival.lane {
            self.show(arrival.at, EventKind::MessageLane, from_one(lane.into()));
        }
        if arrival.kind == MessageKind::Put {
            self.show(arrival.at, EventKind::PutLatency, arrival.latency_ns as i64);
            self.show(arrival.at, EventKind::WindowWait, arrival.waited_ns as i64);
        }
    }

    /// Adds the half of a message to the moment.
    pub(super) fn add_half(&mut self, half: &Half) {
        half.values.iter().for_each(|(kind, value)| self.show(half.at, *kind, *value));
    }

    /// Returns the next time at which the cause of idleness of a worker may change beside entries.
    pub(super) fn next_change_ns(&self) -> Option<u64> {
        self.causes.next_change_ns()
    }

    /// Adds what has changed up to `now`, after the entries of the moment.
    pub(super) fn add_changes(&mut self, now: u64) {
        for rank in self.causes.advance(now) {
            self.show_not_done(rank, 0);
        }
        let (owners, moment) = (&self.owners, &mut self.moment);
        self.causes.update(owners, |thread, value| {
            let kind = PointKind::Own(EventKind::IdleBecause);
            moment.push(Point { thread, kind, value });
        });
    }

    /// Ends all open syncs.
    pub(super) fn close_all(&mut self) {
        for thread in self.layout.threads() {
            if !std::mem::take(&mut self.open_syncs[self.layout.index(thread)]).is_empty() {
                self.show_sync(thread, None);
            }
        }
        self.sync_threads.clear();
    }

    /// Returns the events of the moment by row, each in order, with the location of the row: on no
    /// cpu unless it shows its worker after the moment.
    pub(super) fn moment(&mut self) -> impl Iterator<Item = (Location, &[Point])> {
        self.moment.sort_by_key(|point| point.thread);
        self.moment.chunk_by(|a, b| a.thread == b.thread).map(|points| {
            let thread = points[0].thread;
            let is_shown = self.owners.thread(thread.worker) == thread;
            let layout = &self.layout;
            (if is_shown { layout.on_cpu(thread) } else { layout.on_no_cpu(thread) }, points)
        })
    }

    /// Begins the next moment.
    pub(super) fn clear_moment(&mut self) {
        self.moment.clear();
    }

    fn begin_sync(&mut self, thread: Thread, sync: OpenSync) {
        self.end_sync(sync.key);
        self.sync_threads.insert(sync.key, thread);
        self.open_syncs[self.layout.index(thread)].push(sync);
        self.show_sync(thread, Some(sync));
        self.count_open(sync.key.0, 1);
    }

    /// Ends a sync, and returns it if it was open.
    fn end_sync(&mut self, key: SyncKey) -> Option<OpenSync> {
        let thread = self.sync_threads.remove(&key)?;
        let open = &mut self.open_syncs[self.layout.index(thread)];
        let position = open.iter().rposition(|sync| sync.key == key)?;
        let was_shown = position + 1 == open.len();
        let ended = open.remove(position);
        if was_shown {
            let shown = open.last().copied();
            self.show_sync(thread, shown);
        }
        self.count_open(key.0, -1);
        Some(ended)
    }

    /// Changes the number of open syncs of a rank.
    fn count_open(&mut self, rank: u32, change: i64) {
        let open = &mut self.rounds_open[rank as usize];
        *open += change;
        let open = *open;
        self.show(self.layout.first_thread(rank), EventKind::RoundsOpen, open);
    }

    /// Shows the number of tasks in the queues of a worker, if it or the one before is not 0.
    fn show_ready(&mut self, thread: Thread, ready: i64) {
        let was_shown =
            if ready == 0 { self.ready.remove(&thread) } else { self.ready.insert(thread) };
        if was_shown || ready != 0 {
            self.show(thread, EventKind::TasksReady, ready);
        }
    }

    /// Shows the number of tasks of a rank that are not done, if it or the one before is not 0.
    fn show_not_done(&mut self, rank: u32, not_done: i64) {
        let known = &mut self.not_done;
        let was_shown = if not_done == 0 { known.remove(&rank) } else { known.insert(rank) };
        if was_shown || not_done != 0 {
            self.show(self.layout.first_thread(rank), EventKind::TasksNotDone, not_done);
        }
    }

    /// Shows the task that a worker runs now, if that has changed.
    fn show_running(&mut self, worker: u32) {
        let running = self.slices.task(worker);
        let before = std::mem::replace(&mut self.shown[worker as usize], running);
        if before == running {
            return;
        }
        let rank = running.map(|running| running.rank);
        if let Some(before) = before.filter(|before| Some(before.rank) != rank) {
            self.show_task(Thread { rank: before.rank, worker }, 0, 0);
        }
        if let Some(RunningTask { rank, task, label }) = running {
            self.show_task(Thread { rank, worker }, number_of(task), self.task_type(label));
        }
    }

    /// Shows the span that a worker is in, if that or its row has changed.
    fn show_span(&mut self, worker: u32) {
        let thread = self.owners.thread(worker);
        let span = self.slices.span(worker).map(|label| (thread, label));
        let before = std::mem::replace(&mut self.shown_spans[worker as usize], span);
        if before == span {
            return;
        }
        if let Some((left, _)) = before.filter(|(row, _)| span.is_none() || *row != thread) {
            self.show(left, EventKind::Span, 0);
        }
        if let Some((_, label)) = span {
            let name = self.task_type(label);
            self.show(thread, EventKind::Span, name);
        }
    }

    fn show_task(&mut self, thread: Thread, task: i64, kind: i64) {
        self.show(thread, EventKind::TaskId, task);
        self.show(thread, EventKind::TaskType, kind);
    }

    /// Returns the value of a label, from 1.
    fn task_type(&self, label: LabelId) -> i64 {
        let is_known = label.index() < self.label_count;
        (if is_known { label } else { LabelId::UNNAMED }).index() as i64 + 1
    }

    fn show_sync(&mut self, thread: Thread, sync: Option<OpenSync>) {
        let (lane, round) = sync.map_or((0, 0), |OpenSync { key: (_, lane, round), .. }| {
            (from_one(lane.into()), from_one(round))
        });
        self.show(thread, EventKind::SyncMode, sync.map_or(0, |sync| sync.mode.number()));
        self.show(thread, EventKind::SyncLane, lane);
        self.show(thread, EventKind::SyncRound, round);
        let expected = sync.and_then(|sync| sync.expected).unwrap_or_default();
        self.show(thread, EventKind::SyncExpected, expected.into());
    }

    fn show(&mut self, thread: Thread, kind: EventKind, value: i64) {
        self.moment.push(Point { thread, kind: PointKind::Own(kind), value });
    }
}

/// Returns the number of a task as a value.
fn number_of(task: u64) -> i64 {
    (task % EXACT_LIMIT).max(1) as i64
}

/// Returns a number as a value, of which 0 means none.
fn from_one(number: u64) -> i64 {
    (number % EXACT_LIMIT) as i64 + 1
}
