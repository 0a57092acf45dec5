//! End of a program whose other threads run on.
#![allow(unsafe_code, reason = "streams of the C library")]

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> libc::c_int;
}

/// Writes what the program has printed, unless some thread is printing.
pub(crate) fn flush_output() {
    // SAFETY: The C library sets its stream before `main` and never changes it.
    let stream = unsafe { stdout };
    // SAFETY: The stream is open, or its lock still valid.
    let is_locked = unsafe { ftrylockfile(stream) } == 0;
    if is_locked {
        // SAFETY: As above; this thread has the lock, and nothing runs after it.
        unsafe { libc::fflush(stream) };
    }
}

/// Ends the process without its exit handlers, which other threads might be running into.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: The call has no condition.
    unsafe { libc::_exit(status) }
}
