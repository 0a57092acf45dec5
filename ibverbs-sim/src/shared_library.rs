#![allow(unsafe_code, reason = "a library is loaded, and its functions are found")]
//! A library that is opened at run time, so that programs run where it is missing.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

/// Signals whose handlers a library may replace as it is opened. The one of libinfinipath, which Debian's libfabric
/// needs, leaves a file in the current folder, also on SIGTERM and SIGINT.
const SIGNALS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGABRT, libc::SIGINT, libc::SIGTERM];

/// A library that this process has opened. It stays open as long as the process lives.
#[derive(Clone, Copy)]
pub(crate) struct SharedLibrary {
    handle: NonNull<c_void>,
}

impl SharedLibrary {
    /// Opens a library, which must be one that a process may load at any time. Signals keep their handlers.
    ///
    /// **Errors**: the text of the dynamic linker, if it does not find the library or cannot load it.
    pub(crate) fn open(name: &CStr) -> Result<Self, String> {
        let handlers = SIGNALS.map(handler);
        // SAFETY: the name ends with a zero. The library is one that a process may load at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        SIGNALS.into_iter().zip(&handlers).for_each(|(signal, handler)| restore(signal, handler));
        NonNull::new(handle).map(|handle| Self { handle }).ok_or_else(linker_error)
    }

    /// Finds a function.
    pub(crate) fn function(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the library was opened, and is never closed; the text ends with a zero.
        let found = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        NonNull::new(found)
    }

    /// Finds a function of a symbol version.
    pub(crate) fn function_of_version(
        self,
        name: &CStr,
        version: &CStr,
    ) -> Option<NonNull<c_void>> {
        // SAFETY: the library was opened, and is never closed; the texts end with a zero.
        let found = unsafe { libc::dlvsym(self.handle.as_ptr(), name.as_ptr(), version.as_ptr()) };
        NonNull::new(found)
    }
}

/// Returns what a signal does.
fn handler(signal: c_int) -> Option<libc::sigaction> {
    let mut handler = MaybeUninit::uninit();
    // SAFETY: nothing is changed, and the result has a place.
    let result = unsafe { libc::sigaction(signal, ptr::null(), handler.as_mut_ptr()) };
    // SAFETY: the call has written it.
    (result == 0).then(|| unsafe { handler.assume_init() })
}

fn restore(signal: c_int, handler: &Option<libc::sigaction>) {
    if let Some(handler) = handler {
        // SAFETY: the signal had this handler a moment ago.
        unsafe { libc::sigaction(signal, handler, ptr::null_mut()) };
    }
}

/// Copies a text of a library.
///
/// **Safety**: the text is null, or ends with a zero and stays while it is copied.
pub(crate) unsafe fn text_of(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the contract of this function.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn linker_error() -> String {
    // SAFETY: the function has no conditions.
    let text = unsafe { libc::dlerror() };
    // SAFETY: texts of the linker end with a zero, and stay until its next call by this thread.
    let text = unsafe { text_of(text) };
    text.unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(all(test, not(talpf_loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_has_is_found_and_nothing_else() {
        let library = SharedLibrary::open(c"libc.so.6").unwrap();
        assert!(library.function(c"getpid").is_some());
        assert!(library.function(c"nonesuch").is_none());
        assert!(library.function_of_version(c"getpid", c"NONE_1.0").is_none());
    }

    #[test]
    fn libfabric_leaves_signals_without_a_handler_as_they_are() {
        if let Err(reason) = SharedLibrary::open(c"libfabric.so.1") {
            eprintln!("SKIPPED: {reason}");
            return;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        for signal in [libc::SIGILL, libc::SIGABRT, libc::SIGINT, libc::SIGTERM] {
            assert_eq!(caught >> (signal - 1) & 1, 0, "signal {signal}");
        }
    }

    #[test]
    fn a_library_that_is_missing_is_named() {
        let error = SharedLibrary::open(c"libnonesuch.so.9").map(drop).unwrap_err();
        assert!(error.contains("libnonesuch.so.9"), "{error}");
    }
}
