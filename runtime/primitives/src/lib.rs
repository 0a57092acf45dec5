//! Atomics, locks, cells and threads: those of the standard library and parking_lot, or loom's
//! under `--cfg talpf_loom`, or ones with points where shuttle switches threads under `--cfg
//! talpf_shuttle`.
//!
//! And a [`Barrier`] made of them, [huge pages](prefer_huge_pages) for large memory, and a
//! [prefetch](prefetch_to_write).
//!
//! loom models single state words; shuttle runs whole programs on the whole runtime.
//!
//! Code of the program may do anything, including taking a lock that its caller holds. So every
//! call of such code begins with [`assert_nothing_held`]. Debug builds check it over all crates:
//! their locks record the places at which each thread has taken the locks that it holds.

mod barrier;
#[cfg(not(talpf_loom))]
mod cell;
#[cfg(debug_assertions)]
mod held_locks;
mod huge_pages;
#[cfg_attr(talpf_loom, path = "under_loom.rs")]
#[cfg_attr(talpf_shuttle, path = "under_shuttle.rs")]
mod plain;
mod prefetch;
mod try_lock;
#[cfg(not(debug_assertions))]
mod unchecked;

pub use self::barrier::{Barrier, DIFFER, Sleeper};
pub use self::huge_pages::{HUGE_PAGE, prefer_huge_pages};
pub use self::plain::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, OnceLock, Ordering, Parker,
    Unparker, fence, thread, thread_local, yield_now,
};
pub use self::prefetch::{
    prefetch_address_to_write, prefetch_all, prefetch_all_to_write, prefetch_to_write,
};
pub use self::try_lock::TryLock;

#[cfg(not(talpf_loom))]
pub use self::cell::UnsafeCell;
#[cfg(debug_assertions)]
pub use self::held_locks::{
    Mutex, MutexGuard, assert_nothing_held, assert_nothing_held_here, note_entry, note_exit,
};
#[cfg(not(any(debug_assertions, talpf_loom, talpf_shuttle)))]
pub use self::plain::BriefMutex;
#[cfg(talpf_shuttle)]
pub use self::plain::Local;
#[cfg(not(debug_assertions))]
pub use self::plain::{Mutex, MutexGuard};
#[cfg(not(debug_assertions))]
pub use self::unchecked::{assert_nothing_held, assert_nothing_held_here, note_entry, note_exit};
#[cfg(talpf_loom)]
pub use loom::cell::UnsafeCell;

/// A mutex that one thread locks time and again: as any other one in debug builds and in models.
#[cfg(any(debug_assertions, talpf_loom, talpf_shuttle))]
pub type BriefMutex<T> = Mutex<T>;
