//! The system call that a thread is blocked in.

use std::fs;

/// Number of the system call that waits for a lock, a condition or the end of a thread.
const FUTEX: Option<u64> = match () {
    () if cfg!(target_arch = "x86_64") => Some(202),
    () if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) => Some(98),
    () => None,
};

/// The system call that a thread is blocked in.
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// Reads the call of thread `thread` of this process. `None` if it runs, or the system does not
    /// say.
    pub(super) fn of(thread: u32) -> Option<Self> {
        let says = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
        let mut words = says.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Call { number, arguments })
    }

    /// Returns `true` if the thread waits for another thread without a time limit.
    pub(super) fn waits_for_thread(&self) -> bool {
        let timeout = self.arguments[3];
        FUTEX == Some(self.number) && timeout == 0
    }
}

/// Returns the system identifier of this thread, for [`Call::of`].
pub(super) fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns `true` if a thread of this process waits for another thread without a time limit, and
/// `false` where the system does not say.
pub(super) fn is_locked_out(thread: u32) -> bool {
    Call::of(thread).is_some_and(|call| call.waits_for_thread())
}
