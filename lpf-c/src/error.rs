//! Errors that C programs get as codes.

/// Failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// No memory, or no room; the call had no effect.
    OutOfMemory,
    /// The processes cannot go on together.
    Fatal,
}

/// Result of a call.
pub(crate) type Result<T> = std::result::Result<T, Error>;
