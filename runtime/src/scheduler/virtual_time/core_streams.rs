//! The trace of a run in virtual time: a stream for each virtual core of each group.
//!
//! A record goes to the core on which its task is said to run, or to the first core of its group if
//! it belongs to no task there.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use talpf_traces::{Event, Recorder, Stream};

use super::state::VirtualState;

/// Streams of all cores, by group and core.
pub(in crate::scheduler) struct CoreStreams {
    recorder: Recorder,
    cores: u32,
    rows: RefCell<Vec<Row>>,
    current: Cell<Current>,
}

struct Row {
    stream: Stream,
    /// Time since which the core is free; `None` while a task keeps it.
    free_since_ns: Option<u64>,
}

/// Core whose task runs.
#[derive(Clone, Copy, Default)]
struct Current {
    group: u32,
    core: u32,
    /// Begin of the next slice, if it is not now.
    began_ns: Option<u64>,
}

impl CoreStreams {
    /// Creates the streams of a run in virtual time that is traced.
    pub(in crate::scheduler) fn new(
        time: Option<&VirtualState>,
        recorder: Option<&Recorder>,
    ) -> Option<Self> {
        let (cores, recorder) = (time?.cores(), recorder?.clone());
        Some(CoreStreams { recorder, cores, rows: RefCell::default(), current: Cell::default() })
    }

    /// Records an event of a group. What has no group is about the thread of the executor.
    pub(in crate::scheduler) fn record(&self, now_ns: u64, event: Event) {
        if let Some(group) = event.group() {
            let current = self.current.get();
            let core = if group == current.group { current.core } else { 0 };
            self.on(group, core, |row| row.stream.record(now_ns, event));
        }
    }

    /// Returns the begin of a slice that is recorded next, if it is not now.
    pub(in crate::scheduler) fn take_began(&self) -> Option<u64> {
        let current = self.current.get();
        self.current.set(Current { began_ns: None, ..current });
        current.began_ns
    }

    /// Notes that a task keeps a core from now on.
    pub(in crate::scheduler) fn occupy(&self, group: u32, core: u32, now_ns: u64) {
        self.on(group, core, |row| row.end_idle(now_ns));
    }

    /// Notes that a task that has kept a core since `began_ns` runs there, and gives it back.
    pub(in crate::scheduler) fn run_kept(&self, group: u32, core: u32, times: Range<u64>) {
        self.current.set(Current { group, core, began_ns: Some(times.start) });
        self.on(group, core, |row| row.free_since_ns = Some(times.end));
    }

    /// Notes that a task runs on a free core, for no time.
    pub(in crate::scheduler) fn run_free(&self, group: u32, core: u32) {
        self.current.set(Current { group, core, began_ns: None });
    }

    /// Ends the streams, in which all cores are idle now.
    pub(in crate::scheduler) fn end(&self, now_ns: u64) {
        for mut row in self.rows.take() {
            row.end_idle(now_ns);
        }
    }

    fn on(&self, group: u32, core: u32, act: impl FnOnce(&mut Row)) {
        let mut rows = self.rows.borrow_mut();
        for number in rows.len() as u32..(group + 1) * self.cores {
            rows.push(Row { stream: self.recorder.stream(number), free_since_ns: Some(0) });
        }
        if let Some(row) = rows.get_mut((group * self.cores + core) as usize) {
            act(row);
        }
    }
}

impl Row {
    fn end_idle(&mut self, now_ns: u64) {
        if let Some(began_ns) = self.free_since_ns.take().filter(|began_ns| *began_ns < now_ns) {
            self.stream.record(now_ns, Event::Idle { began_ns, ready: 0 });
        }
    }
}
