//! What threads share and wait by: the standard atomics and parking_lot's mutex, or those of loom
//! under `--cfg talpf_loom`, or ones with points where shuttle switches threads under
//! `--cfg talpf_shuttle`.
//!
//! loom models single state words; shuttle runs whole programs on the whole runtime.
//!
//! In debug builds the mutex notes who holds it (`held.rs`).

#[cfg(debug_assertions)]
mod held;
#[cfg(talpf_loom)]
mod under_loom;
#[cfg(talpf_shuttle)]
mod under_shuttle;

#[cfg(talpf_loom)]
pub(crate) use self::under_loom::*;
#[cfg(talpf_shuttle)]
pub(crate) use self::under_shuttle::*;

#[cfg(debug_assertions)]
pub(crate) use self::held::{Mutex, MutexGuard, assert_no_lock_held};
#[cfg(not(any(debug_assertions, talpf_loom, talpf_shuttle)))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(any(talpf_loom, talpf_shuttle)))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

// Not one of shuttle's points: what it is used for is counted by others.
#[cfg(not(talpf_loom))]
pub(crate) use std::sync::atomic::AtomicPtr;

#[cfg(not(talpf_shuttle))]
pub(crate) use crossbeam_utils::sync::{Parker, Unparker};
#[cfg(not(talpf_shuttle))]
pub(crate) use std::{thread, thread_local};

/// Lets this thread use the I/O of tokio.
#[cfg(not(talpf_shuttle))]
pub(crate) fn enter(tokio: &tokio::runtime::Handle) -> tokio::runtime::EnterGuard<'_> {
    tokio.enter()
}

/// In debug builds: **panics** if this thread holds a lock.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn assert_no_lock_held(_: &str) {}
