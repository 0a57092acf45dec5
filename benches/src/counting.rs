//! An allocator that knows how much is allocated, for `talpf-bench memory`.
#![allow(unsafe_code, reason = "passes the contract of an allocator on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted. Commands install it.
#[derive(Debug)]
pub struct Counting;

/// Bytes that are allocated, as they were asked for; 0 where [`Counting`] is not installed.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's contract.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(block, layout) };
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}
