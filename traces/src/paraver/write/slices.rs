//! Slices of tasks on each worker. The states and the events of a trace are made in separate
//! passes;
//! both use this module, so that they agree on the end of a slice.

use crate::Event;

/// Part of a task's execution on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) rank: u32,
    pub(super) task: u64,
}

/// Open slice of every worker, and counts of irregular ends.
#[derive(Debug)]
pub(super) struct Slices {
    open: Vec<Option<Slice>>,
    /// Number of slices ended by the begin of another.
    pub(super) interrupted: u64,
    /// Number of ends of tasks that were not open on that worker, which are ignored.
    pub(super) stray_ends: u64,
}

impl Slices {
    pub(super) fn new(workers: u32) -> Self {
        Self { open: vec![None; workers as usize], interrupted: 0, stray_ends: 0 }
    }

    /// Applies an event of a worker. Returns the slice that it ends.
    pub(super) fn apply(&mut self, worker: u32, event: &Event) -> Option<Slice> {
        let open = &mut self.open[worker as usize];
        match *event {
            Event::TaskBegin { rank, task, .. } => {
                let ended = open.replace(Slice { rank, task });
                self.interrupted += u64::from(ended.is_some());
                ended
            }
            Event::TaskEnd { rank, task } => {
                let ended = open.take_if(|slice| *slice == Slice { rank, task });
                self.stray_ends += u64::from(ended.is_none());
                ended
            }
            Event::RecordingStopped => open.take(),
            _ => None,
        }
    }

    /// Returns `true` while the worker is inside a body.
    pub(super) fn is_open(&self, worker: u32) -> bool {
        self.open[worker as usize].is_some()
    }

    /// Ends every open slice. Returns each with its worker.
    pub(super) fn close_all(&mut self) -> impl Iterator<Item = (u32, Slice)> {
        (0..).zip(&mut self.open).filter_map(|(worker, open)| Some((worker, open.take()?)))
    }
}
