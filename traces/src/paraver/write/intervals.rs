//! States of every thread, without gaps from 0 to the end of the trace.
//!
//! The row that shows a worker has its states, whose end is known one change later. All other rows
//! of the worker are not created meanwhile: that ends where the row shows it again, so a first pass
//! notes those times.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::layout::{Layout, Thread};
use super::segments::Segments;
use super::timeline::Timeline;
use super::worker_states::{Shown, WorkerStates};
use crate::State;

/// State of one thread during an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) thread: Thread,
    pub(super) state: State,
}

/// States of all threads, by begin. No interval is empty.
pub(super) struct Intervals<'a> {
    layout: Layout,
    workers: Vec<Worker<'a>>,
    /// Next change of each worker: its time, and the worker.
    changes: BinaryHeap<Reverse<(u64, u32)>>,
    /// Times from which rows exist again, by index of the row.
    appearances: Vec<Segments>,
    /// Intervals that begin next.
    ready: VecDeque<Interval>,
}

/// States of a worker, which are one change ahead.
struct Worker<'a> {
    states: WorkerStates<'a>,
    shown: Shown,
}

impl<'a> Intervals<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>) -> Self {
        let layout = timeline.layout();
        let appearances = appearances(timeline);
        let (mut workers, mut changes) = (Vec::new(), BinaryHeap::new());
        for number in 0..layout.streams() {
            let mut states = WorkerStates::new(timeline, number);
            let shown = states.shown();
            changes.extend(states.advance().map(|time_ns| Reverse((time_ns, number))));
            workers.push(Worker { states, shown });
        }
        let ready = VecDeque::new();
        let threads = layout.threads();
        let mut this = Self { layout, workers, changes, appearances, ready };
        threads.for_each(|thread| this.disappear(thread, 0));
        while this.changes.peek().is_some_and(|Reverse((time_ns, _))| *time_ns == 0) {
            this.change();
        }
        this.ready.make_contiguous().sort_by_key(|interval| interval.thread);
        this
    }

    /// Adds the interval in which a row does not exist from `begin_ns` on.
    fn disappear(&mut self, thread: Thread, begin_ns: u64) {
        let until = self.appearances[self.layout.index(thread)].pop();
        let end_ns = until.unwrap_or(self.layout.end_ns);
        self.add(Interval { begin_ns, end_ns, thread, state: State::NotCreated });
    }

    fn add(&mut self, interval: Interval) {
        if interval.begin_ns < interval.end_ns {
            self.ready.push_back(interval);
        }
    }

    /// Makes the next change of a worker.
    fn change(&mut self) -> Option<()> {
        let mut change = self.changes.peek_mut()?;
        let Reverse((now, number)) = *change;
        let worker = &mut self.workers[number as usize];
        let shown = worker.states.shown();
        let before = std::mem::replace(&mut worker.shown, shown);
        let next_ns = worker.states.advance();
        match next_ns {
            Some(next_ns) => {
                change.0.0 = next_ns;
                drop(change);
            }
            None => _ = PeekMut::pop(change),
        }
        if exists(before) && !(exists(shown) && before.thread == shown.thread) {
            self.disappear(before.thread, now);
        }
        if exists(shown) {
            let end_ns = next_ns.unwrap_or(self.layout.end_ns);
            let Shown { thread, state } = shown;
            self.add(Interval { begin_ns: now, end_ns, thread, state });
        }
        Some(())
    }
}

impl Iterator for Intervals<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        loop {
            if let Some(interval) = self.ready.pop_front() {
                return Some(interval);
            }
            self.change()?;
        }
    }
}

/// Returns `true` unless a row is shown as not created, as rows are that do not show their worker.
fn exists(shown: Shown) -> bool {
    shown.state != State::NotCreated
}

/// Returns the times from which each row exists that did not, by index of the row.
fn appearances(timeline: &Timeline<'_>) -> Vec<Segments> {
    let layout = timeline.layout();
    let mut appearances = vec![Segments::default(); layout.thread_count() as usize];
    for worker in 0..layout.streams() {
        let mut states = WorkerStates::new(timeline, worker);
        let mut before = states.shown();
        while let Some(now) = states.advance() {
            let shown = states.shown();
            if exists(shown) && !(exists(before) && before.thread == shown.thread) {
                appearances[layout.index(shown.thread)].push(now);
            }
            before = shown;
        }
    }
    appearances
}
