//! The affinity of a group: the worker whose cache has its data.
//!
//! A group that was made for a worker has an affinity for it from its first array with large tiles
//! on: the data of a task then costs more to move than the task (`scheduler/README.md`). The tasks
//! of groups without an affinity run wherever they become ready.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `app.jacobi_512` | +56 % | 0 % |
//! | `app.jacobi_512_replay` | +16 % | -1 % |
//! | `app.jacobi_1024` | +16 % | +1 % |

use talpf_primitives::{AtomicBool, Ordering};

/// Smallest size of a tile, in bytes, that gives its group an affinity.
const BYTES_AT_LEAST: usize = 128 << 10;

/// The affinity of a group, if it has one.
pub(crate) struct Affinity {
    /// Worker that the group was made for.
    worker: Option<usize>,
    /// Set once an array of the group has large tiles.
    has_large_tiles: AtomicBool,
}

impl Affinity {
    pub(crate) fn new(worker: Option<usize>) -> Self {
        Affinity { worker, has_large_tiles: AtomicBool::new(false) }
    }

    /// Returns the preferred worker of the group's tasks.
    #[inline]
    pub(crate) fn worker(&self) -> Option<usize> {
        // A task that another thread queues for other workers meanwhile is correct, too.
        self.worker.filter(|_| self.has_large_tiles.load(Ordering::Relaxed))
    }

    /// Notes that an array has tiles of `bytes`. Returns `true` if the group has an affinity
    /// because of them.
    pub(crate) fn note_tile(&self, bytes: usize) -> bool {
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
