//! The two functions between which callgrind counts: it zeroes its counts as a thread enters the
//! first, and writes them out as a thread enters the second.

use std::hint::black_box;

/// Options of callgrind that count between [`begin`] and [`end`].
pub(super) const OPTIONS: [&str; 2] =
    ["--zero-before=*growth::marker::begin*", "--dump-before=*growth::marker::end*"];

/// Begins what is counted.
#[inline(never)]
pub(super) fn begin() {
    // The linker may merge functions that are alike.
    black_box("begin");
}

/// Ends what is counted.
#[inline(never)]
pub(super) fn end() {
    black_box("end");
}
