//! The two functions between which callgrind counts: it resets its counts when a thread enters the
//! first, and writes them out when a thread enters the second.

use std::hint::black_box;

/// Options that make callgrind count between [`begin`] and [`end`].
pub(super) const OPTIONS: [&str; 2] =
    ["--zero-before=*callgrind::marker::begin*", "--dump-before=*callgrind::marker::end*"];

/// Begins the counted part.
#[inline(never)]
pub(crate) fn begin() {
    // Different values, since the linker may merge identical functions.
    black_box("begin");
}

/// Ends the counted part.
#[inline(never)]
pub(crate) fn end() {
    black_box("end");
}
