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
    /// Creates the owners at the begin of the timeline: the rank of each worker's first slice; if
    /// it has none, the rank whose own it is, or rank 0.
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let layout = timeline.layout();
        let mut ranks = vec![None; layout.streams() as usize];
        for entry in timeline.entries() {
            if let (Edge::Begin, Event::TaskSlice { rank, .. }) = (entry.edge, entry.record.event) {
                ranks[entry.worker as usize].get_or_insert(rank);
            }
        }
        let ranks = (0..).zip(ranks);
        let owner = |(worker, rank): (u32, Option<u32>)| rank.unwrap_or(layout.first_rank(worker));
        Self { ranks: ranks.map(owner).collect() }
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
