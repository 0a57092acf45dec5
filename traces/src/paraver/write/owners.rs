//! Rank that each worker belongs to: that of the task it runs or ran last, or of its first one
//! before that.

use super::slices::Slices;
use super::timeline::{Edge, Thread, Timeline};
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
            if let (Edge::Begin, Event::TaskSlice { rank, .. }) = (entry.edge, entry.record.event) {
                ranks[entry.worker as usize].get_or_insert(rank);
            }
        }
        Self { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() }
    }

    /// Returns the row that shows a worker.
    pub(super) fn thread(&self, worker: u32) -> Thread {
        Thread { rank: self.ranks[worker as usize], worker }
    }

    /// Follows a worker to the rank of the task that it runs. Returns the row that showed the
    /// worker before, if it is another one now.
    pub(super) fn follow(&mut self, worker: u32, slices: &Slices<'_>) -> Option<Thread> {
        let before = self.thread(worker);
        let task = slices.task(worker).filter(|task| task.rank != before.rank)?;
        self.ranks[worker as usize] = task.rank;
        Some(before)
    }
}
