//! What can be asked of a queue pair.

use std::ops::BitOr;

use crate::{CompletionOpcode, LocalKey, RemoteKey};

/// A piece of local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScatterGather {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// The key of the region it is in.
    pub key: LocalKey,
}

/// A place in a peer's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The address in the peer's address space.
    pub address: u64,
    /// The key of the region it is in.
    pub key: RemoteKey,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the peer's next receive.
    Send,
    /// Fill the peer's next receive and give it a number.
    SendWithImmediate {
        /// The number.
        immediate: u32,
    },
    /// Write to the peer's memory; the peer learns nothing.
    ///
    /// **Ordering**: if a piece ends at a multiple of eight, its last eight bytes are written
    /// after all others in one atomic access that releases them: the peer may watch them as an
    /// `AtomicU64`.
    Write {
        /// Where to.
        remote: RemoteAddress,
    },
    /// Write to the peer's memory, then use up its next receive and give it a number.
    WriteWithImmediate {
        /// Where to.
        remote: RemoteAddress,
        /// The number.
        immediate: u32,
    },
    /// Read from the peer's memory.
    Read {
        /// Where from.
        remote: RemoteAddress,
    },
    /// Add to a word of the peer's memory and bring back what it was.
    FetchAdd {
        /// The word, aligned to 8 bytes.
        remote: RemoteAddress,
        /// What to add, wrapping.
        add: u64,
    },
    /// Replace a word of the peer's memory if it is `compare`, and bring back what it was.
    CompareSwap {
        /// The word, aligned to 8 bytes.
        remote: RemoteAddress,
        /// What it must be.
        compare: u64,
        /// What it becomes.
        swap: u64,
    },
}

impl Operation {
    /// The opcode of its completion.
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

    /// Whether it brings data back to the local memory.
    #[inline]
    pub(crate) const fn returns_data(&self) -> bool {
        self.is_atomic() || matches!(self, Self::Read { .. })
    }

    #[inline]
    pub(crate) const fn is_atomic(&self) -> bool {
        matches!(self, Self::FetchAdd { .. } | Self::CompareSwap { .. })
    }
}

/// The local side of a request.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Pieces of registered memory, in order: read by SEND and WRITE, written by READ and the
    /// atomics. It belongs to the device until the request has completed.
    Gather(&'a [ScatterGather]),
    /// Bytes copied when the request is posted; no registration is needed.
    Inline(&'a [u8]),
}

/// How to treat a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags(u8);

impl SendFlags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Leave a completion even on success. Requests without it free their places in the send
    /// queue when a later completion of the queue pair is polled.
    pub const SIGNALLED: Self = Self(1);
    /// Start only after all READs and atomics before it have completed. They always have here:
    /// each request of a queue pair ends before the next starts.
    pub const FENCE: Self = Self(2);
    /// The peer's completion fires a channel armed for solicited ones only.
    pub const SOLICITED: Self = Self(4);

    /// Whether every flag of `other` is set.
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

/// A request for the send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendWorkRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub operation: Operation,
    /// With which local memory.
    pub payload: Payload<'a>,
    /// How.
    pub flags: SendFlags,
}

/// A request for a receive queue.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWorkRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where a SEND puts its message, in order. A WRITE with immediate leaves it alone.
    pub scatter: &'a [ScatterGather],
}
