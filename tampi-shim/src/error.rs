//! The error type of the crate: a variant per cause, with the values needed to act on it.

use crate::rank::Rank;
use crate::tag::Tag;

/// An error of two-sided communication.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is out of range.
    #[error("{what} is {value}, expected {} {limit}", bound(*value, *limit))]
    Limit {
        /// Name of the size or count.
        what: &'static str,
        /// Value that was given.
        value: u64,
        /// The smallest or largest value allowed.
        limit: u64,
    },
    /// A setting has a value that cannot be read.
    #[error("{name}={value}: {expected}")]
    Setting {
        /// The name of the setting or environment variable.
        name: &'static str,
        /// Value that was given.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// The communicator or group has no such rank.
    #[error("{rank} does not exist, the communicator has {ranks} ranks")]
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// Number of ranks.
        ranks: u32,
    },
    /// A message is longer than the buffer of the receive that takes it.
    #[error(
        "a message of {sent} bytes from {source_rank} with {tag} does not fit into a buffer of {room}"
    )]
    Truncated {
        /// The sender.
        source_rank: Rank,
        /// Tag of the message.
        tag: Tag,
        /// Length of the message in bytes. Where the MPI library does not report it: one more than
        /// the buffer has.
        sent: u64,
        /// Length of the buffer in bytes.
        room: u64,
    },
    /// A buffered send finds no room for its copy.
    #[error("a buffered send of {bytes} bytes does not fit: {room} bytes of buffer are left")]
    NoBufferSpace {
        /// Length of the message in bytes.
        bytes: u64,
        /// Bytes of buffer that are left.
        room: u64,
    },
    /// A list of ranks names a rank more than once.
    #[error("a list of ranks names {rank} twice")]
    RankNamedTwice {
        /// The repeated rank.
        rank: Rank,
    },
    /// A buffer of a collective has another length than its other arguments ask for.
    #[error("{collective}: {what} has {elements} elements, {expected} are needed")]
    BufferLength {
        /// Name of the operation.
        collective: &'static str,
        /// Name of the buffer.
        what: &'static str,
        /// Length of the buffer in elements.
        elements: usize,
        /// Length that the other arguments ask for.
        expected: usize,
    },
    /// Two ranks give different lengths to one collective.
    #[error(
        "{collective}: {rank} expects {expected} bytes from {source_rank}, which sent {received}"
    )]
    LengthMismatch {
        /// Name of the operation.
        collective: &'static str,
        /// The receiving rank.
        rank: Rank,
        /// Bytes that the receiving rank expects.
        expected: u64,
        /// The sending rank.
        source_rank: Rank,
        /// Bytes that the sending rank sent.
        received: u64,
    },
    /// Two ranks call different collectives, or one with different arguments.
    #[error("rank 0 calls {here}, {rank} calls {there}")]
    CallMismatch {
        /// The call of rank 0.
        here: String,
        /// The rank that differs.
        rank: Rank,
        /// The call of that rank.
        there: String,
    },
    /// The operator of a reduction panicked.
    #[error("the operator of {collective} panicked")]
    OperatorPanicked {
        /// Name of the operation.
        collective: &'static str,
    },
    /// Another rank failed, so this rank cannot continue.
    #[error("{rank} failed: {reason}")]
    PeerFailed {
        /// The failed rank, by its number in the world.
        rank: Rank,
        /// The reason that the failed rank gave.
        reason: String,
    },
    /// The device reports a failed work request.
    #[error("work request to {peer} ended with {status}")]
    WorkRequest {
        /// The rank at the other end, by its number in the world.
        peer: Rank,
        /// Completion status of the work request.
        status: String,
    },
    /// The run ended before the operation completed.
    #[error("the run ended before the operation completed")]
    Abandoned,
    /// An error of the device.
    #[error("device: {0}")]
    Device(#[from] ibverbs_sim::Error),
    /// A call of MPI failed.
    #[cfg(feature = "mpi")]
    #[error("MPI: {0}")]
    Mpi(#[from] crate::transport::mpi::Refused),
    /// An error of the task runtime.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
}

/// Returns the word before the limit that a value is beyond.
fn bound(value: u64, limit: u64) -> &'static str {
    if value < limit { "at least" } else { "at most" }
}
