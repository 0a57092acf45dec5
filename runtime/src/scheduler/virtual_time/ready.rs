//! The ready tasks of a group, and its cores.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::record::{RecordId, Urgency, record};

/// Ready tasks in the order in which they start, and the cores that are free for them.
pub(super) struct Ready {
    tasks: BinaryHeap<Entry>,
    /// Numbers of free cores; the last one is taken next.
    free_cores: Vec<u32>,
    /// `true` while the group is listed, as a task may start.
    pub(super) is_changed: bool,
}

/// A ready task; the greatest starts first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Priority, whether a body on a core that is free now has released the task, and since when it
    /// is ready.
    order: (Urgency, bool, Reverse<u64>),
    task: RecordId,
}

impl Ready {
    pub(super) fn new(cores: u32) -> Self {
        let free_cores = (0..cores).rev().collect();
        Ready { tasks: BinaryHeap::new(), free_cores, is_changed: false }
    }

    /// Adds a task. `since` counts up.
    pub(super) fn add(&mut self, task: RecordId, is_successor: bool, since: u64) {
        let order = (record(task).urgency(), is_successor, Reverse(since));
        self.tasks.push(Entry { order, task });
    }

    /// Takes the next task, if a core is free for it. Returns the task and that core, which stays
    /// free.
    pub(super) fn take(&mut self) -> Option<(RecordId, u32)> {
        let core = *self.free_cores.last()?;
        self.tasks.pop().map(|entry| (entry.task, core))
    }

    /// Takes the core that [`Ready::take`] has returned last.
    pub(super) fn occupy(&mut self) {
        self.free_cores.pop();
    }

    /// Gives a core back. It is the next one to be taken, so that a successor follows its
    /// predecessor there.
    pub(super) fn free(&mut self, core: u32) {
        self.free_cores.push(core);
    }
}
