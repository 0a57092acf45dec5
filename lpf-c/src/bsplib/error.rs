//! Errors of BSPlib.

/// Errors of BSPlib, with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum BspError {
    OutOfMemory = 1,
    MemoryNotRegistered = 2,
    PushregMismatch = 3,
    PopregMismatch = 4,
    TagsizeMismatch = 5,
    NullPointer = 6,
    PidOutOfRange = 7,
    MemoryAccessOutOfRange = 8,
    EmptyMessageQueue = 9,
    Fatal = 10,
}

/// Result of a function of BSPlib.
pub(crate) type BspResult<T> = Result<T, BspError>;
