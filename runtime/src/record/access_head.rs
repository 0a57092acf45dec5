//! The state word of an access: open with a list of edges, passed on, or closed.
//!
//! The upper half is the generation of the record the access lives in, the lower half the first
//! edge or one of three marks. A spawner pushes edges while the word is open in the generation that
//! the map has; the one owner of the guard closes it, once, and gets the whole list. A word of
//! another generation is a reused record, whose old access was closed long ago. A generation that
//! comes again, after 2^32 tasks of the record, may make a task wait for an access of an earlier
//! task that it does not conflict with.
//!
//! An access that was lent to children may be *passed on* before it closes: its edges are taken as
//! if it closed and no more are pushed, but it counts as open, and a task that meets it searches
//! for open accesses of the children instead.

use talpf_primitives::{AtomicU64, Ordering};

const CLOSED: u32 = u32::MAX;
const PASSED_ON: u32 = u32::MAX - 1;
/// Open without an edge; smaller values are edges.
const NO_EDGE: u32 = u32::MAX - 2;

/// The state of an access, and the edges to follow when it closes.
pub(crate) struct AccessHead(AtomicU64);

impl AccessHead {
    pub(crate) fn new() -> Self {
        AccessHead(AtomicU64::new(word(0, CLOSED)))
    }

    /// Opens the access for a new generation of its record. The record must be unshared.
    #[inline]
    pub(crate) fn open(&self, generation: u32) {
        self.0.store(word(generation, NO_EDGE), Ordering::Relaxed);
    }

    /// Returns `true` if the access is open in `generation`. **Ordering**: acquire, so a thread
    /// that sees it closed sees what the task wrote.
    #[inline]
    pub(crate) fn is_open(&self, generation: u32) -> bool {
        let current = self.0.load(Ordering::Acquire);
        (current >> 32) as u32 == generation && current as u32 != CLOSED
    }

    /// Returns `true` if the access was passed on and is still open.
    pub(crate) fn is_passed_on(&self, generation: u32) -> bool {
        self.0.load(Ordering::Acquire) == word(generation, PASSED_ON)
    }

    /// Returns the first edge of an access that is open in `generation`.
    pub(crate) fn first(&self, generation: u32) -> Option<u32> {
        let current = self.0.load(Ordering::Acquire);
        let first = current as u32;
        ((current >> 32) as u32 == generation && first < NO_EDGE).then_some(first)
    }

    /// Adds `edge` in front of the list unless the access has closed or was passed on. `set_next`
    /// stores the edge that follows it.
    #[inline]
    pub(crate) fn push(&self, generation: u32, edge: u32, set_next: impl Fn(Option<u32>)) -> bool {
        let mut current = self.0.load(Ordering::Acquire);
        loop {
            let first = current as u32;
            if (current >> 32) as u32 != generation || first > NO_EDGE {
                return false;
            }
            set_next((first != NO_EDGE).then_some(first));
            match self.0.compare_exchange_weak(
                current,
                word(generation, edge),
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(seen) => current = seen,
            }
        }
    }

    /// Closes the access and returns its first edge.
    ///
    /// **Ordering**: release for what the task wrote, acquire for the edges.
    #[inline]
    pub(crate) fn close(&self, generation: u32) -> Option<u32> {
        let first = self.0.swap(word(generation, CLOSED), Ordering::AcqRel) as u32;
        debug_assert_ne!(first, CLOSED, "an access closes once");
        (first < NO_EDGE).then_some(first)
    }

    /// Passes the access on and returns its first edge.
    ///
    /// **Ordering**: as [`AccessHead::close`].
    pub(crate) fn pass_on(&self, generation: u32) -> Option<u32> {
        let first = self.0.swap(word(generation, PASSED_ON), Ordering::AcqRel) as u32;
        debug_assert!(first <= NO_EDGE, "an access is passed on once, while it is open");
        (first < NO_EDGE).then_some(first)
    }
}

const fn word(generation: u32, low: u32) -> u64 {
    (generation as u64) << 32 | low as u64
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    #[test]
    fn an_edge_is_followed_exactly_when_push_said_so() {
        loom::model(|| {
            let head = Arc::new(AccessHead::new());
            head.open(7);
            let next = Arc::new([AtomicU32::new(99), AtomicU32::new(99)]);
            let pushers: Vec<_> = (0..2u32)
                .map(|edge| {
                    let (head, next) = (head.clone(), next.clone());
                    thread::spawn(move || {
                        head.push(7, edge, |following| {
                            next[edge as usize].store(following.unwrap_or(99), Ordering::Relaxed);
                        })
                    })
                })
                .collect();
            let mut followed = [false; 2];
            let mut edge = head.close(7);
            while let Some(current) = edge {
                followed[current as usize] = true;
                let following = next[current as usize].load(Ordering::Relaxed);
                edge = (following != 99).then_some(following);
            }
            let pushed: Vec<bool> = pushers.into_iter().map(|p| p.join().unwrap()).collect();
            assert_eq!(pushed, followed);
        });
    }

    #[test]
    fn an_edge_is_passed_on_or_refused() {
        loom::model(|| {
            let head = Arc::new(AccessHead::new());
            head.open(7);
            let pusher = {
                let head = head.clone();
                thread::spawn(move || head.push(7, 0, |_| {}))
            };
            let taken = head.pass_on(7);
            assert_eq!(pusher.join().unwrap(), taken.is_some());
            assert!(head.is_open(7) && head.is_passed_on(7));
            assert_eq!(head.close(7), None);
            assert!(!head.is_open(7) && !head.is_passed_on(7));
        });
    }

    #[test]
    fn who_sees_it_closed_sees_the_data() {
        loom::model(|| {
            let head = Arc::new(AccessHead::new());
            head.open(1);
            let data = Arc::new(AtomicU32::new(0));
            let writer = {
                let (head, data) = (head.clone(), data.clone());
                thread::spawn(move || {
                    data.store(5, Ordering::Relaxed);
                    head.close(1);
                })
            };
            if !head.push(1, 0, |_| {}) {
                assert_eq!(data.load(Ordering::Relaxed), 5);
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_reused_record_is_not_linked() {
        loom::model(|| {
            let head = Arc::new(AccessHead::new());
            head.open(1);
            let reuse = {
                let head = head.clone();
                thread::spawn(move || {
                    let edges = head.close(1);
                    head.open(2);
                    edges
                })
            };
            let pushed = head.push(1, 0, |_| {});
            assert_eq!(reuse.join().unwrap().is_some(), pushed);
            assert_eq!(head.close(2), None);
        });
    }
}
