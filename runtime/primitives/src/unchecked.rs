//! The checks of debug builds, empty.

/// Does nothing. In debug builds, **panics** if this thread holds a lock or is in a gate.
#[inline(always)]
pub fn assert_nothing_held(_: &str) {}

/// Does nothing. In debug builds, **panics** if this thread is in a gate or holds a lock of the
/// calling crate.
#[inline(always)]
pub fn assert_nothing_held_here(_: &str) {}

/// Does nothing. In debug builds, notes that this thread has entered a gate.
#[inline(always)]
pub fn note_entry() {}

/// Does nothing. In debug builds, notes that this thread has left a gate.
#[inline(always)]
pub fn note_exit() {}
