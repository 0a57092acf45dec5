//! Work requests.

use std::ops::BitOr;

use crate::{CompletionOpcode, LocalKey, RemoteKey};

/// An entry of a scatter/gather list: a piece of local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScatterGather {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// The key of the memory region.
    pub key: LocalKey,
}

/// An address in a peer's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The address in the peer's address space.
    pub address: u64,
    /// The key of the memory region.
    pub key: RemoteKey,
}

/// The operation of a send request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fills the peer's next receive.
    Send,
    /// Fills the peer's next receive and passes it an immediate value.
    SendWithImmediate {
        /// The immediate value.
        immediate: u32,
    },
    /// Writes to the peer's memory, without a completion at the peer.
    ///
    /// **Ordering**: if a piece ends at a multiple of eight, its last eight bytes are written after
    /// all others in one atomic access that releases them: the peer may poll them as an
    /// `AtomicU64`.
    Write {
        /// The target.
        remote: RemoteAddress,
    },
    /// Writes to the peer's memory, then uses up its next receive and passes it an immediate value.
    WriteWithImmediate {
        /// The target.
        remote: RemoteAddress,
        /// The immediate value.
        immediate: u32,
    },
    /// Reads from the peer's memory.
    Read {
        /// The source.
        remote: RemoteAddress,
    },
    /// Adds to a word of the peer's memory and returns its previous value.
    FetchAdd {
        /// The word, aligned to 8 bytes.
        remote: RemoteAddress,
        /// The addend, wrapping.
        add: u64,
    },
    /// Replaces a word of the peer's memory if it is `compare`, and returns its previous value.
    CompareSwap {
        /// The word, aligned to 8 bytes.
        remote: RemoteAddress,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
}

impl Operation {
    /// Returns the opcode of the operation's completion.
    #[inline]
    pub const fn opcode(&self) -> CompletionOpcode {
        match self {
            Self::Send | Self::SendWithImmediate { .. } => CompletionOpcode::Send,
            Self::Write { .. } | Self::WriteWithImmediate { .. } => CompletionOpcode::Write,
            Self::Read { .. } => CompletionOpcode::Read,
            Self::FetchAdd { .. } => CompletionOpcode::FetchAdd,
            Self::CompareSwap { .. } => CompletionOpcode::CompareSwap,
        }
    }

    /// Returns `true` if the operation returns data to local memory.
    #[inline]
    pub(crate) const fn returns_data(&self) -> bool {
        self.is_atomic() || matches!(self, Self::Read { .. })
    }

    /// Returns the memory of the peer whose data returns, if any does.
    pub(crate) const fn source(&self) -> Option<RemoteAddress> {
        match *self {
            Self::Read { remote }
            | Self::FetchAdd { remote, .. }
            | Self::CompareSwap { remote, .. } => Some(remote),
            _ => None,
        }
    }

    #[inline]
    pub(crate) const fn is_atomic(&self) -> bool {
        matches!(self, Self::FetchAdd { .. } | Self::CompareSwap { .. })
    }
}

/// The local memory of a request.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Pieces of registered memory, in order: read by SEND and WRITE, written by READ and the
    /// atomics. They belong to the device until the request has completed.
    Gather(&'a [ScatterGather]),
    /// Bytes that are copied when the request is posted; they need no registration.
    Inline(&'a [u8]),
}

/// Flags of a send request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags(u8);

impl SendFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The request leaves a completion even on success. Requests without the flag free their slots
    /// in the send queue when a later completion of the queue pair is polled.
    pub const SIGNALLED: Self = Self(1);
    /// The request starts only after all READs and atomics before it have completed. Within a
    /// process this always holds: each request of a queue pair ends before the next starts.
    pub const FENCE: Self = Self(2);
    /// The peer's completion fires a channel that is armed for solicited completions only.
    pub const SOLICITED: Self = Self(4);

    /// Returns `true` if every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for SendFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A request for a send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendWorkRequest<'a> {
    /// The number that the completion returns.
    pub wr_id: u64,
    /// The operation.
    pub operation: Operation,
    /// The local memory.
    pub payload: Payload<'a>,
    /// The flags.
    pub flags: SendFlags,
}

/// A request for a receive queue.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWorkRequest<'a> {
    /// The number that the completion returns.
    pub wr_id: u64,
    /// Memory that a SEND fills, in order. A WRITE with immediate does not touch it.
    pub scatter: &'a [ScatterGather],
}
