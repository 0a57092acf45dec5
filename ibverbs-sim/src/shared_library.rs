#![allow(unsafe_code, reason = "a library is loaded, and its functions are found")]
//! A library that is opened at run time, so that programs run where it is missing.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::NonNull,
};

/// A library that this process has opened. It stays open as long as the process lives.
#[derive(Clone, Copy)]
pub(crate) struct SharedLibrary {
    handle: NonNull<c_void>,
}

impl SharedLibrary {
    /// Opens a library, which must be one that a process may load at any time.
    ///
    /// **Errors**: the text of the dynamic linker, if it does not find the library or cannot load it.
    pub(crate) fn open(name: &CStr) -> Result<Self, String> {
        // SAFETY: the name ends with a zero. The library is one that a process may load at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
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
    fn a_library_that_is_missing_is_named() {
        let error = SharedLibrary::open(c"libnonesuch.so.9").map(drop).unwrap_err();
        assert!(error.contains("libnonesuch.so.9"), "{error}");
    }
}
