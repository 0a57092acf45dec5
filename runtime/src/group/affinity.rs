//! The worker whose cache the data of a group is in.
//!
//! A group that was made for a worker has an affinity for it from its first array with large tiles
//! on: the data of a task then costs more to move than the task (`scheduler/README.md`). The tasks
//! of groups without an affinity run wherever they become ready.

use talpf_primitives::{AtomicBool, Ordering};

/// The fewest bytes of a tile for whose sake tasks go to a worker.
const BYTES_AT_LEAST: usize = 128 << 10;

/// The affinity of a group, if it has one.
pub(super) struct Affinity {
    /// The worker that the group was made for.
    worker: Option<usize>,
    /// True once an array of the group has large tiles. It stays so.
    has_large_tiles: AtomicBool,
}

impl Affinity {
    pub(super) fn new(worker: Option<usize>) -> Self {
        Affinity { worker, has_large_tiles: AtomicBool::new(false) }
    }

    /// Returns the worker that the tasks of the group go to.
    #[inline]
    pub(super) fn worker(&self) -> Option<usize> {
        // A task that another thread queues elsewhere meanwhile runs there as well.
        self.worker.filter(|_| self.has_large_tiles.load(Ordering::Relaxed))
    }

    /// Notes that an array has tiles of so many bytes. Returns whether tasks go to a worker for the
    /// sake of them.
    pub(super) fn note_tile(&self, bytes: usize) -> bool {
        let has = self.worker.is_some() && bytes >= BYTES_AT_LEAST;
        if has {
            self.has_large_tiles.store(true, Ordering::Relaxed);
        }
        has
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_an_affinity_from_its_first_large_tile_on() {
        let affinity = Affinity::new(Some(3));
        assert!(!affinity.note_tile(BYTES_AT_LEAST - 1));
        assert_eq!(affinity.worker(), None);
        assert!(affinity.note_tile(BYTES_AT_LEAST));
        assert!(!affinity.note_tile(1));
        assert_eq!(affinity.worker(), Some(3));
    }

    #[test]
    fn a_group_that_was_made_for_no_worker_has_none() {
        let affinity = Affinity::new(None);
        assert!(!affinity.note_tile(BYTES_AT_LEAST));
        assert_eq!(affinity.worker(), None);
    }
}
