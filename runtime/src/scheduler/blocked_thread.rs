//! Asking the system what a thread waits for.

use std::fs;

/// The number of the call that waits for a lock, a condition or the end of a thread.
const FUTEX: Option<&str> = match () {
    () if cfg!(target_arch = "x86_64") => Some("202"),
    () if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) => Some("98"),
    () => None,
};
/// Of the call's numbers, the time at which it gives up.
const TIMEOUT: usize = 4;

/// The number of this thread, for [`is_locked_out`].
pub(super) fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether a thread of this process waits for another thread for as long as that takes. `false`
/// where the system does not say.
pub(super) fn is_locked_out(thread: u32) -> bool {
    let says = fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
    says.is_ok_and(|says| {
        let mut words = says.split_ascii_whitespace();
        FUTEX.is_some_and(|futex| words.next() == Some(futex))
            && words.nth(TIMEOUT - 1) == Some("0x0")
    })
}
