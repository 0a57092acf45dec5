//! Status of a work request that has ended.

/// Status with which a work request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CompletionStatus {
    /// The request was carried out.
    #[default]
    Success,
    /// The message is longer than the device's limit or the posted receive, or is not the eight
    /// bytes of an atomic.
    LocalLength,
    /// A scatter/gather entry names memory that its key does not give access to.
    LocalProtection,
    /// The queue pair does not support the request: a READ or atomic where `max_rd_atomic` is 0.
    LocalQueuePairOperation,
    /// The request was outstanding when the queue pair went into error. Its effects are unknown.
    WorkRequestFlushed,
    /// The peer refused the remote address, length or key.
    RemoteAccess,
    /// The peer refused the request as not valid: not enabled, misaligned, or longer than the
    /// receive.
    RemoteInvalidRequest,
    /// The peer failed to carry the request out, such as to write to its own receive.
    RemoteOperation,
    /// The peer did not respond within all retries.
    RetryExceeded,
    /// The peer had no receive posted within all retries.
    ReceiverNotReadyRetryExceeded,
}
