//! Rank that each worker belongs to: that of the task it runs or ran last, or of its first one
//! before that.

use super::layout::Thread;
use super::slices::Slices;
use super::timeline::Timeline;
use crate::Event;
use crate::event::Record;

/// Rank of every worker.
#[derive(Debug)]
pub(super) struct Owners {
    ranks: Vec<u32>,
}

impl Owners {
    /// Creates the owners at the begin of the timeline.
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let workers = 0..timeline.layout().streams();
        Self { ranks: workers.map(|worker| first_rank(timeline, worker)).collect() }
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

/// Returns the rank of a worker's first slice; if it has none, the rank whose own it is, or rank 0.
pub(super) fn first_rank(timeline: &Timeline<'_>, worker: u32) -> u32 {
    let of_task = |slice: &Record| match slice.event {
        Event::TaskSlice { rank, .. } => Some(rank),
        _ => None,
    };
    let rank = timeline.slices_of(worker).find_map(of_task);
    rank.unwrap_or_else(|| timeline.layout().first_rank(worker))
}
