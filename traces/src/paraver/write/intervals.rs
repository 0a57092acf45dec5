//! States of every thread, without gaps from 0 to the end of the trace.
//!
//! An interval is pushed when it begins, and its end is filled in when the next one of that thread
//! begins, so the list is in order of begin.

use super::owners::Owners;
use super::slices::Slices;
use super::timeline::{Layout, Thread, Timeline};
use crate::{Event, State};

/// State of one thread during an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) thread: Thread,
    pub(super) state: State,
}

/// Returns the states of all threads, by begin. No interval is empty.
pub(super) fn intervals(timeline: &Timeline<'_>) -> Vec<Interval> {
    let layout = timeline.layout();
    let mut chart = Chart::new(layout);
    let mut slices = Slices::new(layout.workers);
    let mut owners = Owners::new(timeline);
    let mut outside = vec![State::Idle; layout.workers as usize];
    for entry in timeline.entries() {
        let (worker, now) = (entry.worker, entry.time_ns());
        let outside = &mut outside[worker as usize];
        slices.apply(worker, &entry.record.event);
        if let Some(left) = owners.apply(worker, &entry.record.event) {
            chart.set(left, State::Idle, now);
        }
        match entry.record.event {
            Event::WorkerState { state } => *outside = state,
            Event::RecordingStopped => *outside = State::NotRecorded,
            _ => {}
        }
        let state = if slices.is_open(worker) { State::Running } else { *outside };
        chart.set(owners.thread(worker), state, now);
    }
    chart.finish()
}

/// Intervals so far, with the index of the open one of each thread.
struct Chart {
    layout: Layout,
    intervals: Vec<Interval>,
    open: Vec<usize>,
}

impl Chart {
    /// Creates a chart in which every thread is idle from 0.
    fn new(layout: Layout) -> Self {
        let idle =
            |thread| Interval { begin_ns: 0, end_ns: layout.end_ns, thread, state: State::Idle };
        let intervals: Vec<_> = layout.threads().map(idle).collect();
        let open = (0..intervals.len()).collect();
        Self { layout, intervals, open }
    }

    fn set(&mut self, thread: Thread, state: State, now: u64) {
        let next = self.intervals.len();
        let open = &mut self.open[self.layout.index(thread)];
        let current = &mut self.intervals[*open];
        if current.state == state {
            return;
        }
        if current.begin_ns == now {
            current.state = state;
            return;
        }
        current.end_ns = now;
        let end_ns = self.layout.end_ns;
        *open = next;
        self.intervals.push(Interval { begin_ns: now, end_ns, thread, state });
    }

    fn finish(mut self) -> Vec<Interval> {
        self.intervals.retain(|interval| interval.begin_ns < interval.end_ns);
        self.intervals
    }
}
