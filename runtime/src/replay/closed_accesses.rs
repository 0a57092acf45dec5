//! The accesses of a running task that have closed.
//!
//! An access has a bit. While the body runs, the accesses that it drops itself are noted with plain
//! stores, by the one thread that runs it; those that others drop are noted in a shared word. When
//! the body awaits or ends with accesses open, its bits go into the shared word too, and from then
//! on all do. The accesses that the body has closed until then are counted for its task only when
//! it pauses.
//!
//! An edge waits for a set of accesses and is followed once, by the thread that closes the last of
//! them: the runner sees that in its own bits, every other thread in the shared word. The updates
//! of that word have an order, so exactly one of them completes the set; a set that the runner had
//! completed before it shared its bits is left out there.

use talpf_primitives::{AtomicU32, Ordering};

/// Accesses of one run of a task that have closed, a bit each.
pub(super) struct ClosedAccesses {
    /// Accesses closed by the running body. Written by the thread that runs it.
    here: AtomicU32,
    /// Accesses closed by other threads, and by the body once it has paused.
    everywhere: AtomicU32,
    /// 1 once the body has paused. Written by the thread that runs it.
    paused: AtomicU32,
}

/// The closed accesses after a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedChange {
    after: u32,
    /// Sets within these bits were completed earlier.
    done: u32,
}

impl ClosedChange {
    /// Returns `true` if the change has completed `set`, of which it has closed an access.
    #[inline]
    pub(super) fn completes(self, set: u32) -> bool {
        set & !self.after == 0 && (self.done == 0 || set & !self.done != 0)
    }

    /// Returns the change as if `accesses` were open.
    pub(super) fn without(self, accesses: u32) -> Self {
        ClosedChange { after: self.after & !accesses, ..self }
    }
}

impl ClosedAccesses {
    pub(super) fn new() -> Self {
        let zero = || AtomicU32::new(0);
        ClosedAccesses { here: zero(), everywhere: zero(), paused: zero() }
    }

    /// Opens all accesses, while no guard exists.
    #[inline]
    pub(super) fn reset(&self) {
        self.here.store(0, Ordering::Relaxed);
        self.everywhere.store(0, Ordering::Relaxed);
        self.paused.store(0, Ordering::Relaxed);
    }

    /// Closes the accesses of `bits`, which the body drops before it pauses, on the thread that
    /// runs it.
    #[inline]
    pub(super) fn close_here(&self, bits: u32) -> ClosedChange {
        debug_assert_eq!(self.paused.load(Ordering::Relaxed), 0, "the body has not paused");
        let after = self.here.load(Ordering::Relaxed) | bits;
        self.here.store(after, Ordering::Relaxed);
        ClosedChange { after, done: 0 }
    }

    /// Closes the access of `bit`, on any thread.
    pub(super) fn close(&self, bit: u32) -> ClosedChange {
        ClosedChange { after: self.everywhere.fetch_or(bit, Ordering::AcqRel) | bit, done: 0 }
    }

    /// Notes that the body awaits or has ended. Returns the accesses that it has closed itself if
    /// this is the first time.
    #[inline]
    pub(super) fn pause(&self) -> u32 {
        let paused = self.paused.load(Ordering::Relaxed) != 0;
        self.paused.store(1, Ordering::Relaxed);
        if paused { 0 } else { self.here.load(Ordering::Relaxed) }
    }

    /// Shares the accesses that the body had closed when it first paused. Called once, unless these
    /// are all.
    pub(super) fn share(&self) -> ClosedChange {
        let here = self.here.load(Ordering::Relaxed);
        let after = self.everywhere.fetch_or(here, Ordering::AcqRel) | here;
        ClosedChange { after, done: here }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// All sets of three accesses.
    const SETS: std::ops::Range<u32> = 1..8;

    struct Model {
        closed: ClosedAccesses,
        followed: Vec<AtomicU32>,
        work: [AtomicU32; 3],
    }

    impl Model {
        fn close(&self, access: usize, here: bool) {
            self.work[access].store(1, Ordering::Relaxed);
            let bit = 1 << access;
            let closed = &self.closed;
            self.follow(bit, if here { closed.close_here(bit) } else { closed.close(bit) });
        }

        /// Follows the sets that the change completes, which has closed `closed`.
        fn follow(&self, closed: u32, change: ClosedChange) {
            for set in SETS.filter(|set| set & closed != 0 && change.completes(*set)) {
                self.followed[set as usize].fetch_add(1, Ordering::Relaxed);
                for access in (0..3).filter(|access| set & 1 << access != 0) {
                    assert_eq!(
                        self.work[access].load(Ordering::Relaxed),
                        1,
                        "seen by the thread that follows"
                    );
                }
            }
        }
    }

    #[test]
    fn every_set_is_completed_once_wherever_its_accesses_close() {
        loom::model(|| {
            let model = Arc::new(Model {
                closed: ClosedAccesses::new(),
                followed: (0..8).map(|_| AtomicU32::new(0)).collect(),
                work: std::array::from_fn(|_| AtomicU32::new(0)),
            });
            let others: Vec<_> = (1..3)
                .map(|access| {
                    let model = model.clone();
                    thread::spawn(move || model.close(access, false))
                })
                .collect();
            model.close(0, true);
            model.follow(model.closed.pause(), model.closed.share());
            others.into_iter().for_each(|other| other.join().unwrap());
            for set in SETS {
                assert_eq!(model.followed[set as usize].load(Ordering::Relaxed), 1, "{set:03b}");
            }
        });
    }
}
