//! Binary interface of PMIx, of version 3 of its standard, which later ones have kept.
//!
//! Records have the names of fields that the C headers have, so that the tests compare sizes and offsets with
//! those that the C compiler finds.
//!
//! **Source**: Process Management Interface for Exascale Standard, version 4.1, chapters 3 to 6.

use std::{
    ffi::{CStr, c_char, c_int},
    mem::MaybeUninit,
};

/// First version of the interface with these records.
pub(super) const OLDEST: u32 = 3;

/// Status of a call: 0, or a negative number.
pub(super) type Status = c_int;
pub(super) const SUCCESS: Status = 0;
pub(super) const TIMED_OUT: Status = -24;
pub(super) const NOT_FOUND: Status = -46;

/// Number that stands for all processes of a job.
pub(super) const ALL: u32 = u32::MAX - 1;
/// Scope of values that all processes get.
pub(super) const GLOBAL: u8 = 3;

/// Kinds of values.
pub(super) const BOOL: u16 = 1;
pub(super) const INT: u16 = 6;
pub(super) const UINT32: u16 = 14;
pub(super) const BYTES: u16 = 27;

/// Bytes of names and keys, with the zero at their ends.
pub(super) const JOB_BYTES: usize = 256;
pub(super) const KEY_BYTES: usize = 512;

/// Keys.
pub(super) const JOB_SIZE: &CStr = c"pmix.job.size";
pub(super) const COLLECT: &CStr = c"pmix.collect";
pub(super) const TIMEOUT: &CStr = c"pmix.timeout";
pub(super) const IMMEDIATE: &CStr = c"pmix.immediate";

/// A process of a job.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) nspace: [c_char; JOB_BYTES],
    pub(super) number: u32,
}

impl Process {
    /// Returns a process of a job, whose name is cut if it is too long.
    pub(super) fn new(job: &str, number: u32) -> Self {
        Self { nspace: text(job.as_bytes()), number }
    }

    /// Returns the name of the job.
    pub(super) fn job(&self) -> String {
        let bytes = self.nspace.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Bytes of a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) bytes: *mut c_char,
    pub(super) size: usize,
}

/// A value of one of several kinds.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) kind: u16,
    pub(super) data: Data,
}

/// Content of a value, of which the kind says what it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union Data {
    pub(super) flag: bool,
    pub(super) integer: c_int,
    pub(super) uint32: u32,
    pub(super) bo: Bytes,
    /// Room for the longest of the kinds, which this crate does not use.
    room: [MaybeUninit<u64>; 3],
}

/// A directive of a call.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Info {
    pub(super) key: [c_char; KEY_BYTES],
    pub(super) flags: u32,
    pub(super) value: Value,
}

impl Info {
    /// Returns a directive that is a flag, which is set.
    pub(super) fn flag(key: &CStr) -> Self {
        Self::new(key, Value { kind: BOOL, data: Data { flag: true } })
    }

    /// Returns a directive that is a number.
    pub(super) fn integer(key: &CStr, integer: c_int) -> Self {
        Self::new(key, Value { kind: INT, data: Data { integer } })
    }

    fn new(key: &CStr, value: Value) -> Self {
        Self { key: text(key.to_bytes()), flags: 0, value }
    }
}

/// Returns a text with a zero at its end, which is cut if it is too long.
fn text<const LENGTH: usize>(of: &[u8]) -> [c_char; LENGTH] {
    let mut text = [0; LENGTH];
    for (to, from) in text[..LENGTH - 1].iter_mut().zip(of) {
        *to = *from as c_char;
    }
    text
}

#[cfg(all(test, not(talpf_loom), not(miri)))]
mod tests;
