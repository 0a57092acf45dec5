//! Stack of a process that is a thread.
#![allow(unsafe_code, reason = "limits of the operating system")]

use std::sync::OnceLock;

const SMALLEST: usize = 8 << 20;
const LARGEST: usize = 256 << 20;

/// Returns the size of the stack: that of the main thread, within bounds. Programs keep arrays there.
pub(crate) fn size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: The pointer is to a limit of this function.
        let failed = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } != 0;
        match limit.rlim_cur {
            libc::RLIM_INFINITY => SMALLEST,
            _ if failed => SMALLEST,
            size => usize::try_from(size).unwrap_or(SMALLEST).clamp(SMALLEST, LARGEST),
        }
    })
}
