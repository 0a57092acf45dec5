//! Operations that wait for a completion of the device.

use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_primitives::Mutex;

use crate::error::Error;

/// The action that follows when an operation is locally complete, or has failed.
pub(crate) type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A table from `wr_id` to the action of its completion.
#[derive(Default)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    /// Number of operations, stored under the lock. Idle workers read it with every poll.
    count: AtomicUsize,
}

#[derive(Default)]
struct Table {
    entries: Vec<Option<Done>>,
    free: Vec<usize>,
}

impl Pending {
    pub(crate) fn insert(&self, done: Done) -> u64 {
        let mut table = self.table.lock();
        self.count.store(self.len() + 1, Ordering::Relaxed);
        match table.free.pop() {
            Some(index) => {
                table.entries[index] = Some(done);
                index as u64
            }
            None => {
                table.entries.push(Some(done));
                table.entries.len() as u64 - 1
            }
        }
    }

    pub(crate) fn take(&self, wr_id: u64) -> Option<Done> {
        let mut table = self.table.lock();
        let index = usize::try_from(wr_id).ok()?;
        let done = table.entries.get_mut(index)?.take()?;
        table.free.push(index);
        self.count.store(self.len() - 1, Ordering::Relaxed);
        Some(done)
    }

    /// Returns the number of operations.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
