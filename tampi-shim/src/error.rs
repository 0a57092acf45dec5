//! What can go wrong, with the values needed to act.

use crate::rank::Rank;
use crate::tag::Tag;

/// An error of the two-sided path.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is beyond what is possible.
    #[error("{what} is {value}, the limit is {limit}")]
    Limit {
        /// Which size.
        what: &'static str,
        /// What was given.
        value: u64,
        /// The smallest or largest that is possible.
        limit: u64,
    },
    /// A setting has a value that cannot be read.
    #[error("{name}={value}: {expected}")]
    Setting {
        /// The name of the setting or environment variable.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// There is no such rank.
    #[error("{rank} does not exist, the communicator has {ranks} ranks")]
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// How many there are.
        ranks: u32,
    },
    /// A message is longer than the buffer of the receive that takes it.
    #[error("{sent} bytes from {source_rank} with {tag}, the buffer has {room}")]
    Truncated {
        /// The sender.
        source_rank: Rank,
        /// Its tag.
        tag: Tag,
        /// Bytes of the message. Some MPIs do not say: then one more than the buffer has.
        sent: u64,
        /// Bytes of the buffer.
        room: u64,
    },
    /// A buffered send finds no room.
    #[error("a buffered send of {bytes} bytes, room for {room} is left")]
    NoBufferSpace {
        /// Bytes of the message.
        bytes: u64,
        /// Bytes that are left.
        room: u64,
    },
    /// A communicator's ranks are made of members that are named once.
    #[error("{rank} is named twice")]
    RankNamedTwice {
        /// The rank.
        rank: Rank,
    },
    /// A buffer of a collective has another length than its other arguments ask for.
    #[error("{collective}: {elements} elements of {what}, {expected} are needed")]
    BufferLength {
        /// The operation.
        collective: &'static str,
        /// Which buffer.
        what: &'static str,
        /// What was given.
        elements: usize,
        /// What would fit.
        expected: usize,
    },
    /// Two ranks give different lengths to one collective.
    #[error(
        "{collective}: {rank} expects {expected} bytes from {source_rank}, which sent {received}"
    )]
    LengthMismatch {
        /// The operation.
        collective: &'static str,
        /// The receiver.
        rank: Rank,
        /// What it expects.
        expected: u64,
        /// The sender.
        source_rank: Rank,
        /// What it sent.
        received: u64,
    },
    /// Two ranks call different collectives, or one with different arguments.
    #[error("rank 0 calls {here}, {rank} calls {there}")]
    CallMismatch {
        /// What rank 0 calls.
        here: String,
        /// The rank that differs.
        rank: Rank,
        /// What it calls.
        there: String,
    },
    /// The operator that the program gave to a reduction panicked.
    #[error("the operator of {collective} panicked")]
    OperatorPanicked {
        /// The operation.
        collective: &'static str,
    },
    /// Another rank failed, so this one cannot go on.
    #[error("{rank} failed: {reason}")]
    PeerFailed {
        /// The rank in the world.
        rank: Rank,
        /// What it said.
        reason: String,
    },
    /// The device reports a failed work request.
    #[error("work request to {peer} ended with {status}")]
    WorkRequest {
        /// The other side, in the world.
        peer: Rank,
        /// The completion status.
        status: String,
    },
    /// The run ended before the operation did.
    #[error("the run ended before the operation did")]
    Abandoned,
    /// An error of the device.
    #[error("device: {0}")]
    Device(#[from] ibverbs_sim::Error),
    /// A call that MPI refused.
    #[cfg(feature = "mpi")]
    #[error("MPI: {0}")]
    Mpi(#[from] crate::mpi::Refused),
    /// An error of the task runtime.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
}
