//! The ready tasks of a group, and its free cores.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::record::{RecordId, Urgency, record};

/// Ready tasks in the order in which they start.
pub(super) struct Ready {
    tasks: BinaryHeap<Entry>,
    pub(super) free_cores: u32,
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
        Ready { tasks: BinaryHeap::new(), free_cores: cores }
    }

    /// Adds a task. `since` counts up.
    pub(super) fn add(&mut self, task: RecordId, is_successor: bool, since: u64) {
        let order = (record(task).urgency(), is_successor, Reverse(since));
        self.tasks.push(Entry { order, task });
    }

    /// Takes the next task, if a core is free for it.
    pub(super) fn take(&mut self) -> Option<RecordId> {
        if self.free_cores == 0 {
            return None;
        }
        self.tasks.pop().map(|entry| entry.task)
    }
}
