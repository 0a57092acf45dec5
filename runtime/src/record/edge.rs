//! Edges: links from accesses to the tasks that wait for them.
#![allow(unsafe_code, reason = "makes ids of stored indices")]

use talpf_primitives::{AtomicU32, Ordering};

use super::{RecordId, record};

/// A link from an access to a task that waits for it. It lives in the waiting task's record.
pub(crate) struct Edge {
    waiter: AtomicU32,
    next: AtomicU32,
}

/// The waiting side of an edge: a task that waits to run or, for a region that it only lends, to be
/// complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Waiter(u32);

/// Mark of a waiter that waits to be complete, above any index of a record.
const TO_COMPLETE: u32 = 1 << 31;

impl Waiter {
    #[inline]
    pub(crate) fn new(task: RecordId, weak: bool) -> Self {
        Waiter(task.index() | if weak { TO_COMPLETE } else { 0 })
    }

    #[inline]
    pub(crate) fn task(self) -> RecordId {
        // SAFETY: `new` has put the index of an id there; that of an edge not set yet is 0, the
        // first.
        unsafe { RecordId::new(self.0 & !TO_COMPLETE) }
    }

    #[inline]
    pub(crate) fn is_weak(self) -> bool {
        self.0 & TO_COMPLETE != 0
    }
}

impl Edge {
    pub(crate) fn new() -> Self {
        Edge { waiter: AtomicU32::new(0), next: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn set_waiter(&self, waiter: Waiter) {
        self.waiter.store(waiter.0, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter(self.waiter.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn set_next(&self, next: Option<u32>) {
        self.next.store(next.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        let next = self.next.load(Ordering::Relaxed);
        (next != u32::MAX).then_some(next)
    }
}

/// Record and index of an edge: a record has up to eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeId(u32);

impl EdgeId {
    #[inline]
    pub(crate) fn new(record: RecordId, index: usize) -> Self {
        debug_assert!(index < 8);
        EdgeId(record.index() << 3 | index as u32)
    }

    /// # Safety
    /// `bits` are the [`bits`](Self::bits) of an id.
    #[inline]
    pub(crate) unsafe fn from_bits(bits: u32) -> Self {
        EdgeId(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn edge(self) -> &'static Edge {
        // SAFETY: `new` has put the index of an id there.
        let carrier = unsafe { RecordId::new(self.0 >> 3) };
        &record(carrier).edges[(self.0 & 7) as usize]
    }
}
