//! States of one worker, and the rows that show it.

use std::iter::Peekable;

use super::in_order::OfWorker;
use super::layout::Thread;
use super::owners::first_rank;
use super::slices::OpenSlices;
use super::timeline::Timeline;
use crate::{Event, State};

/// Row and state of a worker from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) thread: Thread,
    pub(super) state: State,
}

/// Changes of the row and the state of a worker, by time.
pub(super) struct WorkerStates<'a> {
    is_main: bool,
    entries: Peekable<OfWorker<'a>>,
    /// Number of entries that are still to come.
    remaining: usize,
    slices: OpenSlices<'a>,
    shown: Shown,
    /// State outside all slices.
    outside: State,
    /// Begin and end of the records, with the states from there on.
    edges: Peekable<std::vec::IntoIter<(u64, State)>>,
}

impl<'a> WorkerStates<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>, worker: u32) -> Self {
        let layout = timeline.layout();
        let thread = Thread { rank: first_rank(timeline, worker), worker };
        let state = State::NotCreated;
        let recorded = timeline.recorded(worker);
        let mut edges = Vec::new();
        if recorded.start > 0 {
            edges.extend([(0, State::NotRecorded), (recorded.start, State::NotCreated)]);
        }
        if recorded.end < layout.end_ns {
            edges.push((recorded.end, State::NotRecorded));
        }
        Self {
            is_main: layout.is_main(worker),
            entries: timeline.entries_of(worker).peekable(),
            remaining: timeline.entry_count(worker),
            slices: OpenSlices::default(),
            shown: Shown { thread, state },
            outside: state,
            edges: edges.into_iter().peekable(),
        }
    }

    /// Returns what is shown now, at the begin before the first change.
    pub(super) fn shown(&self) -> Shown {
        self.shown
    }

    /// Applies what happens at the next times, until what is shown is another. Returns that time.
    pub(super) fn advance(&mut self) -> Option<u64> {
        loop {
            let entry_ns = self.entries.peek().map(|entry| entry.time_ns());
            let edge_ns = self.edges.peek().map(|(time_ns, _)| *time_ns);
            let now = entry_ns.into_iter().chain(edge_ns).min()?;
            let before = self.shown;
            // What ends at the end of the records comes before that.
            while let Some((_, state)) = self
                .edges
                .next_if(|(time_ns, state)| *time_ns == now && *state == State::NotCreated)
            {
                self.shown.state = state;
            }
            while let Some(entry) = self.entries.next_if(|entry| entry.time_ns() == now) {
                self.slices.apply(entry);
                self.leave(entry.record.event);
                if let Some(task) = self.slices.task() {
                    self.shown.thread.rank = task.rank;
                }
                self.shown.state = self.slices.state().unwrap_or(self.outside);
            }
            while let Some((_, state)) = self.edges.next_if(|(time_ns, _)| *time_ns == now) {
                self.shown.state = state;
            }
            if self.shown != before {
                return Some(now);
            }
        }
    }

    /// Sets the state outside all slices: a worker exists from its first to its last entry, other
    /// threads in slices only.
    fn leave(&mut self, event: Event) {
        self.remaining -= 1;
        self.outside = match (event, self.outside) {
            (Event::RecordingStopped, _) | (_, State::NotRecorded) => State::NotRecorded,
            _ if self.remaining == 0 || self.is_main => State::NotCreated,
            _ => State::Scheduling,
        };
    }
}
