//! Event lines: the events of a thread at each moment.
//!
//! A sync may begin on one worker and end on another, and several may be open at once. It is drawn
//! on the thread where it began; that thread shows the latest one that is still open.

use std::collections::HashMap;

use super::owners::Owners;
use super::slices::{RunningTask, Slices};
use super::timeline::{Edge, Entry, Layout, Location, Thread, Timeline};
use crate::paraver::{EXACT_LIMIT, EventKind};
use crate::{Event, LabelId, SyncMode, ValueKind};

/// Event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) thread: Thread,
    pub(super) kind: EventKind,
    pub(super) value: i64,
}

/// Rank, lane and round.
type SyncKey = (u32, u32, u64);

#[derive(Clone, Copy, Debug)]
struct OpenSync {
    key: SyncKey,
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
    /// Thread where each open sync began.
    sync_threads: HashMap<SyncKey, Thread>,
    /// Open syncs of each thread, the latest last.
    open_syncs: Vec<Vec<OpenSync>>,
    moment: Vec<Point>,
}

impl<'a> Points<'a> {
    pub(super) fn new(timeline: &Timeline<'_>, label_count: usize) -> Self {
        let layout = timeline.layout();
        let threads = layout.threads().count();
        Self {
            layout,
            label_count,
            slices: Slices::new(layout.workers),
            owners: Owners::new(timeline),
            shown: vec![None; layout.workers as usize],
            sync_threads: HashMap::new(),
            open_syncs: vec![Vec::new(); threads],
            moment: Vec::new(),
        }
    }

    /// Adds the events of one entry to the moment.
    pub(super) fn add(&mut self, entry: Entry<'a>) {
        self.slices.apply(entry);
        self.owners.follow(entry.worker, &self.slices);
        match entry.record.event {
            Event::TaskSlice { starts, rank, label, .. } => {
                self.show_running(entry.worker);
                if starts && entry.edge == Edge::Begin {
                    let kind = self.task_type(label);
                    self.show(entry.thread(rank), EventKind::TaskStarted, kind);
                }
            }
            Event::SyncBegin { rank, lane, round, mode, expected } => {
                let sync = OpenSync { key: (rank, lane, round), mode, expected };
                self.begin_sync(entry.thread(rank), sync);
            }
            Event::SyncEnd { rank, lane, round } => self.end_sync((rank, lane, round)),
            Event::Value { rank, kind, value } => {
                let thread = match kind {
                    ValueKind::OutstandingRequests => Thread { rank, worker: 0 },
                    ValueKind::PollCompletions => entry.thread(rank),
                };
                self.show(thread, kind.into(), value);
            }
            _ => {}
        }
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
            (if is_shown { thread.on_cpu() } else { thread.on_no_cpu() }, points)
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
    }

    fn end_sync(&mut self, key: SyncKey) {
        let Some(thread) = self.sync_threads.remove(&key) else {
            return;
        };
        let open = &mut self.open_syncs[self.layout.index(thread)];
        let Some(position) = open.iter().rposition(|sync| sync.key == key) else {
            return;
        };
        let was_shown = position + 1 == open.len();
        open.remove(position);
        if was_shown {
            let shown = open.last().copied();
            self.show_sync(thread, shown);
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
            let task = (task % EXACT_LIMIT).max(1) as i64;
            self.show_task(Thread { rank, worker }, task, self.task_type(label));
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
        let (_, lane, round) = sync.map_or((0, 0, 0), |sync| sync.key);
        let from_one = |number: u64| {
            if sync.is_some() { (number % EXACT_LIMIT) as i64 + 1 } else { 0 }
        };
        self.show(thread, EventKind::SyncMode, sync.map_or(0, |sync| sync.mode.number()));
        self.show(thread, EventKind::SyncLane, from_one(lane.into()));
        self.show(thread, EventKind::SyncRound, from_one(round));
        let expected = sync.and_then(|sync| sync.expected).unwrap_or_default();
        self.show(thread, EventKind::SyncExpected, expected.into());
    }

    fn show(&mut self, thread: Thread, kind: EventKind, value: i64) {
        self.moment.push(Point { thread, kind, value });
    }
}
