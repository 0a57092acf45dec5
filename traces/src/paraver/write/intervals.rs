//! States of every thread, without gaps from 0 to the end of the trace.
//!
//! An interval is pushed when it begins, and its end is filled in when the next one of that thread
//! begins, so the list is in order of begin.

use super::owners::Owners;
use super::slices::Slices;
use super::timeline::{Entry, Layout, Thread, Timeline};
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
    let mut slices = Slices::new(layout.streams());
    let mut owners = Owners::new(timeline);
    let mut outside = Outside::new(timeline);
    let mut edges = edges(timeline).into_iter().peekable();
    for entry in timeline.entries() {
        let (worker, now) = (entry.worker, entry.time_ns());
        // What ends at the end of the records comes before that.
        let is_past = |(time_ns, _, state): &Edge| {
            *time_ns < now || (*time_ns == now && *state == State::NotCreated)
        };
        while let Some((time_ns, worker, state)) = edges.next_if(is_past) {
            chart.set(owners.thread(worker), state, time_ns);
        }
        slices.apply(*entry);
        outside.apply(*entry);
        if let Some(left) = owners.follow(worker, &slices) {
            chart.set(left, State::NotCreated, now);
        }
        let state = slices.state(worker).unwrap_or(outside.states[worker as usize]);
        chart.set(owners.thread(worker), state, now);
    }
    for (time_ns, worker, state) in edges {
        chart.set(owners.thread(worker), state, time_ns);
    }
    chart.finish()
}

/// Time at which the records of a worker begin or end, with its state from there on.
type Edge = (u64, u32, State);

/// Returns the edges of the records of all workers by time.
fn edges(timeline: &Timeline<'_>) -> Vec<Edge> {
    let layout = timeline.layout();
    let mut edges = Vec::new();
    for worker in 0..layout.streams() {
        let recorded = timeline.recorded(worker);
        if recorded.start > 0 {
            edges.push((0, worker, State::NotRecorded));
            edges.push((recorded.start, worker, State::NotCreated));
        }
        if recorded.end < layout.end_ns {
            edges.push((recorded.end, worker, State::NotRecorded));
        }
    }
    edges.sort_by_key(|(time_ns, worker, _)| (*time_ns, *worker));
    edges
}

/// States of the workers outside all slices.
struct Outside {
    states: Vec<State>,
    /// Number of entries of each worker that are still to come.
    remaining: Vec<usize>,
    layout: Layout,
}

impl Outside {
    fn new(timeline: &Timeline<'_>) -> Self {
        let workers = timeline.layout().streams() as usize;
        let mut remaining = vec![0; workers];
        timeline.entries().iter().for_each(|entry| remaining[entry.worker as usize] += 1);
        Self { states: vec![State::NotCreated; workers], remaining, layout: timeline.layout() }
    }

    /// Applies an entry: a worker exists from its first to its last one, other threads in slices only.
    fn apply(&mut self, entry: Entry<'_>) {
        let worker = entry.worker as usize;
        self.remaining[worker] -= 1;
        let state = &mut self.states[worker];
        *state = match (entry.record.event, *state) {
            (Event::RecordingStopped, _) | (_, State::NotRecorded) => State::NotRecorded,
            _ if self.remaining[worker] == 0 || self.layout.is_main(entry.worker) => {
                State::NotCreated
            }
            _ => State::Scheduling,
        };
    }
}

/// Intervals so far, with the indices of the open one of each thread and of the one before it.
struct Chart {
    layout: Layout,
    intervals: Vec<Interval>,
    open: Vec<Open>,
}

struct Open {
    current: usize,
    before: Option<usize>,
}

impl Chart {
    /// Creates a chart in which no thread exists.
    fn new(layout: Layout) -> Self {
        let (begin_ns, end_ns, state) = (0, layout.end_ns, State::NotCreated);
        let whole = |thread| Interval { begin_ns, end_ns, thread, state };
        let intervals: Vec<_> = layout.threads().map(whole).collect();
        let open = |current| Open { current, before: None };
        let open = (0..intervals.len()).map(open).collect();
        Self { layout, intervals, open }
    }

    fn set(&mut self, thread: Thread, state: State, now: u64) {
        let next = self.intervals.len();
        let open = &mut self.open[self.layout.index(thread)];
        let end_ns = self.layout.end_ns;
        let current = &mut self.intervals[open.current];
        if current.state == state {
            return;
        }
        if current.begin_ns < now {
            current.end_ns = now;
            *open = Open { current: next, before: Some(open.current) };
            self.intervals.push(Interval { begin_ns: now, end_ns, thread, state });
            return;
        }
        current.state = state;
        if let Some(before) = open.before.filter(|before| self.intervals[*before].state == state) {
            // A state without length in between.
            self.intervals[open.current].end_ns = now;
            self.intervals[before].end_ns = end_ns;
            *open = Open { current: before, before: None };
        }
    }

    fn finish(mut self) -> Vec<Interval> {
        self.intervals.retain(|interval| interval.begin_ns < interval.end_ns);
        self.intervals
    }
}
