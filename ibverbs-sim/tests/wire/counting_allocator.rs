//! An allocator that counts the bytes that a thread has allocated, and their peak.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct CountingAllocator;

thread_local! {
    static CURRENT: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let now = CURRENT.get() + bytes;
    CURRENT.set(now);
    PEAK.set(PEAK.get().max(now));
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: the allocator of the system does everything; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Returns the peak of the bytes that `call` has allocated on this thread.
pub(crate) fn peak_during(call: impl FnOnce()) -> usize {
    let before = CURRENT.get();
    PEAK.set(before);
    call();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}
