//! Rank that each worker belongs to: that of its latest slice, or of its first one before that.

use super::timeline::{Thread, Timeline};
use crate::Event;

/// Rank of every worker.
#[derive(Debug)]
pub(super) struct Owners {
    ranks: Vec<u32>,
}

impl Owners {
    /// Creates the owners at the begin of the timeline: the rank of each worker's first slice, or
    /// rank 0 if it has none.
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let mut ranks = vec![None; timeline.layout().workers as usize];
        for entry in timeline.entries() {
            if let Event::TaskBegin { rank, .. } = entry.record.event {
                ranks[entry.worker as usize].get_or_insert(rank);
            }
        }
        Self { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() }
    }

    /// Returns the row that shows a worker.
    pub(super) fn thread(&self, worker: u32) -> Thread {
        Thread { rank: self.ranks[worker as usize], worker }
    }

    /// Applies an event of a worker. Returns the row that showed the worker before, if it is
    /// another one now.
    pub(super) fn apply(&mut self, worker: u32, event: &Event) -> Option<Thread> {
        let before = self.thread(worker);
        match *event {
            Event::TaskBegin { rank, .. } if rank != before.rank => {
                self.ranks[worker as usize] = rank;
                Some(before)
            }
            _ => None,
        }
    }
}
