//! Which accesses of a running task have closed.
//!
//! An access has a bit. While the body runs, what it drops itself is noted with plain stores, by
//! the one thread that runs it; what others drop is noted in a shared word. When the body awaits
//! or ends with accesses open, its bits go into the shared word too, and from then on all do. What
//! the body has closed until then is counted for its task only when it pauses.
//!
//! An edge waits for a set of accesses and is followed once, by whoever closes the last of them:
//! the runner sees that in its own bits, everybody else in the shared word. Its updates have an
//! order, so exactly one of them completes the set; a set that the runner had completed before it
//! shared its bits is left out there.

use talpf_primitives::{AtomicU32, Ordering};

/// Accesses of one run of a task that have closed, a bit each.
pub(super) struct Closed {
    /// By the running body. Written by the thread that runs it.
    here: AtomicU32,
    /// Anywhere else, and by the body once it has paused.
    everywhere: AtomicU32,
    /// Written by the thread that runs the body.
    paused: AtomicU32,
}

/// What has closed after a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    after: u32,
    /// Sets within these bits were completed earlier.
    done: u32,
}

impl Change {
    /// Whether the change has completed a set of accesses, which has one that it has closed.
    #[inline]
    pub(super) fn completes(self, set: u32) -> bool {
        set & !self.after == 0 && (self.done == 0 || set & !self.done != 0)
    }

    /// As if `accesses` were open.
    pub(super) fn without(self, accesses: u32) -> Self {
        Change { after: self.after & !accesses, ..self }
    }
}

impl Closed {
    pub(super) fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Closed { here: zero(), everywhere: zero(), paused: zero() }
    }

    /// Opens all accesses. Nobody has a guard.
    #[inline]
    pub(super) fn reset(&self) {
        self.here.store(0, Ordering::Relaxed);
        self.everywhere.store(0, Ordering::Relaxed);
        self.paused.store(0, Ordering::Relaxed);
    }

    /// Closes the accesses of `bits`, which the body drops before it pauses, on the thread that runs
    /// it.
    #[inline]
    pub(super) fn close_here(&self, bits: u32) -> Change {
        debug_assert_eq!(self.paused.load(Ordering::Relaxed), 0, "the body has not paused");
        let after = self.here.load(Ordering::Relaxed) | bits;
        self.here.store(after, Ordering::Relaxed);
        Change { after, done: 0 }
    }

    /// Closes the access of `bit`, on any thread.
    pub(super) fn close(&self, bit: u32) -> Change {
        Change { after: self.everywhere.fetch_or(bit, Ordering::AcqRel) | bit, done: 0 }
    }

    /// The body awaits or has ended. If it is the first time: what it has closed itself.
    #[inline]
    pub(super) fn pause(&self) -> u32 {
        let paused = self.paused.load(Ordering::Relaxed) != 0;
        self.paused.store(1, Ordering::Relaxed);
        if paused { 0 } else { self.here.load(Ordering::Relaxed) }
    }

    /// Shares what the body had closed when it paused first. Called once, unless that is all.
    pub(super) fn share(&self) -> Change {
        let here = self.here.load(Ordering::Relaxed);
        let after = self.everywhere.fetch_or(here, Ordering::AcqRel) | here;
        Change { after, done: here }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// The sets that three accesses can make.
    const SETS: std::ops::Range<u32> = 1..8;

    struct Model {
        closed: Closed,
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

        /// `closed`: by the change.
        fn follow(&self, closed: u32, change: Change) {
            for set in SETS.filter(|set| set & closed != 0 && change.completes(*set)) {
                self.followed[set as usize].fetch_add(1, Ordering::Relaxed);
                for access in (0..3).filter(|access| set & 1 << access != 0) {
                    assert_eq!(
                        self.work[access].load(Ordering::Relaxed),
                        1,
                        "seen by whoever follows"
                    );
                }
            }
        }
    }

    #[test]
    fn every_set_is_completed_once_wherever_its_accesses_close() {
        loom::model(|| {
            let model = Arc::new(Model {
                closed: Closed::new(),
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
