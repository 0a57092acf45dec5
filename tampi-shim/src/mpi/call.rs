//! MPI's return codes as errors.
#![allow(unsafe_code, reason = "asks MPI what a code means")]

use std::ffi::{CStr, c_char, c_int};

use super::ffi;

/// A call that MPI refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {reason} (code {code})")]
pub struct Refused {
    /// The function called.
    pub call: &'static str,
    /// Its return code.
    pub code: i32,
    /// What MPI says about the code.
    pub reason: String,
}

/// Nothing for success, what MPI says for anything else.
#[inline]
pub(super) fn check(call: &'static str, code: c_int) -> Result<(), Refused> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(refused(call, code)) }
}

#[cold]
pub(super) fn refused(call: &'static str, code: c_int) -> Refused {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the buffer is longer than the longest text.
    let told = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) };
    let reason = if told == ffi::MPI_SUCCESS as c_int {
        // SAFETY: MPI has written a string with its end into the buffer, which outlives the use.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
    } else {
        "an unknown error".to_owned()
    };
    Refused { call, code, reason }
}
