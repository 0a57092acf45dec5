//! The standard library's atomics and threads, and parking_lot's mutex.

pub use std::sync::OnceLock;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use std::thread::{self, yield_now};
pub use std::thread_local;

pub use crossbeam_utils::sync::{Parker, Unparker};
#[cfg_attr(debug_assertions, expect(unreachable_pub, reason = "wrapped by `held`"))]
pub use parking_lot::{Mutex, MutexGuard};

/// A mutex that one thread locks time and again, mostly for a few instructions: its release is a store. A thread that
/// finds it locked yields its core again and again, until it is not.
#[cfg(not(debug_assertions))]
pub type BriefMutex<T> = spin::mutex::SpinMutex<T, spin::Yield>;
