//! Records, or one end of them, in the order of the timeline.

use super::layout::Thread;
use crate::event::Record;

/// Part of a record that an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Begin of a slice.
    Begin,
    /// End of a slice.
    End,
    /// Event without length.
    Moment,
}

/// Record, or one end of it, with the worker that recorded it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) worker: u32,
    pub(super) edge: Edge,
    pub(super) record: &'a Record,
}

impl<'a> Entry<'a> {
    pub(super) fn time_ns(self) -> u64 {
        let Record { time_ns, event } = self.record;
        match (self.edge, event.began_ns()) {
            (Edge::Begin, Some(began_ns)) => began_ns.min(*time_ns),
            _ => *time_ns,
        }
    }

    /// Returns the row of this worker for `rank`.
    pub(super) fn thread(self, rank: u32) -> Thread {
        Thread { rank, worker: self.worker }
    }
}
