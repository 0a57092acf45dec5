//! The bytes that this thread has allocated and not freed, and how many there were at most.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    MOST.set(MOST.get().max(now));
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the allocator of the system does everything; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
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

/// Most bytes that `call` has on this thread at one time beside what was there before.
pub(crate) fn most_during(call: impl FnOnce()) -> usize {
    let before = NOW.get();
    MOST.set(before);
    call();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}
