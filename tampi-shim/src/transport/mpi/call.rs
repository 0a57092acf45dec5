//! Return codes of MPI as errors.
#![allow(unsafe_code, reason = "asks MPI what a code means")]

use std::ffi::{CStr, c_char, c_int};

use super::ffi;

/// Error of a call of MPI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {reason} (code {code})")]
pub struct Refused {
    /// Name of the function.
    pub call: &'static str,
    /// Return code of the function.
    pub code: i32,
    /// Description of the return code by MPI.
    pub reason: String,
}

/// Converts a return code to a result.
#[inline]
pub(super) fn check(call: &'static str, code: c_int) -> Result<(), Refused> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(refused(call, code)) }
}

#[cold]
pub(super) fn refused(call: &'static str, code: c_int) -> Refused {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the buffer is longer than the longest text.
    let status = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) };
    let reason = if status == ffi::MPI_SUCCESS as c_int {
        // SAFETY: MPI has written a string with its end into the buffer, which outlives the use.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
    } else {
        "an unknown error".to_owned()
    };
    Refused { call, code, reason }
}
