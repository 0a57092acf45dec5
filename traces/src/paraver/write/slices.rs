//! Open slices of each worker. The states and the events of a trace are made in separate passes;
//! both use this module, so that they agree on what a worker does.

use super::timeline::{Edge, Entry};
use crate::event::Record;
use crate::{Event, LabelId, State};

/// Task inside whose body a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunningTask {
    pub(super) rank: u32,
    pub(super) task: u64,
    pub(super) label: LabelId,
}

/// Open slices of every worker, the innermost last.
#[derive(Debug)]
pub(super) struct Slices<'a> {
    open: Vec<Vec<&'a Record>>,
}

impl<'a> Slices<'a> {
    pub(super) fn new(workers: u32) -> Self {
        Self { open: vec![Vec::new(); workers as usize] }
    }

    /// Applies an entry. Slices that overlap without nesting are accepted: each ends for itself.
    pub(super) fn apply(&mut self, entry: Entry<'a>) {
        let open = &mut self.open[entry.worker as usize];
        match entry.edge {
            Edge::Begin => open.push(entry.record),
            Edge::End => {
                if let Some(index) = open.iter().rposition(|s| std::ptr::eq(*s, entry.record)) {
                    open.remove(index);
                }
            }
            Edge::Moment => {}
        }
    }

    /// Returns the task that the worker runs.
    pub(super) fn task(&self, worker: u32) -> Option<RunningTask> {
        self.open[worker as usize].iter().rev().find_map(|slice| match slice.event {
            Event::TaskSlice { rank, task, label, .. } => Some(RunningTask { rank, task, label }),
            _ => None,
        })
    }

    /// Returns the state of the worker; `None` outside all slices.
    pub(super) fn state(&self, worker: u32) -> Option<State> {
        self.open[worker as usize].last().map(|slice| match slice.event {
            Event::StateSlice { state, .. } => state,
            Event::Idle { .. } => State::Idle,
            _ => State::Running,
        })
    }
}
