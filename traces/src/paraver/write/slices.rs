//! Open slices of each worker. The states and the events of a trace are made in separate passes;
//! both use this module, so that they agree on what a worker does.

use super::entry::{Edge, Entry};
use crate::event::Record;
use crate::{Event, LabelId, State};

/// Task inside whose body a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunningTask {
    pub(super) rank: u32,
    pub(super) task: u64,
    pub(super) label: LabelId,
}

/// Open slices of one worker, the innermost last.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSlices<'a> {
    open: Vec<&'a Record>,
}

impl<'a> OpenSlices<'a> {
    /// Applies an entry. Slices that overlap without nesting are accepted: each ends for itself.
    pub(super) fn apply(&mut self, entry: Entry<'a>) {
        match entry.edge {
            Edge::Begin => self.open.push(entry.record),
            Edge::End => {
                if let Some(index) = self.open.iter().rposition(|s| std::ptr::eq(*s, entry.record))
                {
                    self.open.remove(index);
                }
            }
            Edge::Moment => {}
        }
    }

    /// Returns the task that the worker runs.
    pub(super) fn task(&self) -> Option<RunningTask> {
        self.open.iter().rev().find_map(|slice| match slice.event {
            Event::TaskSlice { rank, task, label, .. } => Some(RunningTask { rank, task, label }),
            _ => None,
        })
    }

    /// Returns the name of the innermost span, unless a task that runs inside hides it.
    pub(super) fn span(&self) -> Option<LabelId> {
        let mut spans_and_tasks = self.open.iter().rev().filter_map(|slice| match slice.event {
            Event::SpanSlice { label, .. } => Some(Some(label)),
            Event::TaskSlice { .. } => Some(None),
            _ => None,
        });
        spans_and_tasks.next().flatten()
    }

    /// Returns the state of the worker; `None` outside all slices.
    pub(super) fn state(&self) -> Option<State> {
        self.open.iter().rev().find_map(|slice| match slice.event {
            Event::StateSlice { state, .. } => Some(state),
            Event::Idle { .. } => Some(State::Idle),
            // The state is that of the worker around it.
            Event::SpanSlice { .. } => None,
            _ => Some(State::Running),
        })
    }
}

/// Open slices of every worker.
#[derive(Debug)]
pub(super) struct Slices<'a> {
    workers: Vec<OpenSlices<'a>>,
}

impl<'a> Slices<'a> {
    pub(super) fn new(workers: u32) -> Self {
        Self { workers: vec![OpenSlices::default(); workers as usize] }
    }

    /// Applies an entry.
    pub(super) fn apply(&mut self, entry: Entry<'a>) {
        self.workers[entry.worker as usize].apply(entry);
    }

    /// Returns the task that the worker runs.
    pub(super) fn task(&self, worker: u32) -> Option<RunningTask> {
        self.workers[worker as usize].task()
    }

    /// Returns the name of the span that the worker is in.
    pub(super) fn span(&self, worker: u32) -> Option<LabelId> {
        self.workers[worker as usize].span()
    }
}
