//! Transports: the interface between communicators and the code that carries their messages.
//!
//! A transport knows envelopes and bytes, and no types, buffers or tasks. Communicators start
//! operations on it. They keep the memory of an operation valid until it has ended, and the
//! transport does not touch that memory afterwards.
//!
//! Messages of one context from one source to one destination are matched in the order in which
//! they were sent to receives in the order in which they were started (non-overtaking), wildcards
//! included.

#[cfg(feature = "mpi")]
pub mod mpi;
pub(crate) mod verbs;

pub(crate) use self::verbs::VerbsWorld;

use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

use talpf_runtime::ByteLayout;

use crate::error::Error;
use crate::rank::{Rank, WorldRank};
use crate::select::Select;
use crate::statistics::Statistics;
use crate::status::{PackedStatus, Status};
use crate::tag::Tag;
use crate::ticket::{Awaited, PackedResult};

/// Number that separates the messages of communicators, and within a communicator point-to-point
/// messages from those of collectives. All members of a communicator use the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContextId(pub(crate) u32);

/// World ranks of the members of a communicator, by rank.
pub(crate) type Members = Arc<[WorldRank]>;

/// A member of a communicator, with its ranks in the communicator and in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) rank: Rank,
    pub(crate) world: WorldRank,
}

/// Completion mode of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// The send ends once the buffer may be reused, whether or not a receive was matched.
    Standard,
    /// The send ends once a receive is matched and the buffer may be reused.
    Synchronous,
    /// The send ends at once: a message that cannot be sent yet is copied, within the limit of the
    /// transport.
    Buffered,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) context: ContextId,
    /// The sending rank in the communicator.
    pub(crate) source: Rank,
    pub(crate) destination: Peer,
    pub(crate) tag: Tag,
    pub(crate) mode: SendMode,
}

/// Envelope that a receive or a probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) context: ContextId,
    pub(crate) source: Select<Peer>,
    pub(crate) tag: Select<Tag>,
    /// `true` if a task waits for the message at once, so that the start of the receive may poll
    /// for it as long as the wait would.
    pub(crate) is_awaited: bool,
}

/// Number that a transport gives an operation under way. The number of an ended operation names
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OperationId(pub(crate) u64);

impl OperationId {
    /// Names no operation: for collectives and other operations that the transport does not know.
    pub(crate) const NONE: OperationId = OperationId(u64::MAX);
}

/// Number that a transport gives a message that a matched probe has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageId(pub(crate) u64);

/// Message that a probe has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    pub(crate) status: Status,
    /// Number of the message, if the probe takes it.
    pub(crate) message: Option<MessageId>,
}

/// State of an operation when the call that starts it returns.
pub(crate) enum Start {
    /// The operation has ended, and its memory is not used any more.
    Ended(PackedResult),
    /// A send that has ended. Its message is in a batch of messages to the same rank, which is
    /// posted with [`Transport::flush`] at the latest.
    Batched(PackedStatus),
    /// The operation is under way; the ticket of `awaited` is completed when it ends.
    UnderWay { awaited: Awaited, operation: OperationId },
}

impl Start {
    #[cold]
    pub(crate) fn failed(error: Error) -> Self {
        Start::Ended(Err(Box::new(error)))
    }
}

/// Message transport of one rank.
#[allow(unsafe_code, reason = "the memory of operations is the caller's to vouch for")]
pub(crate) trait Transport: Any + Send + Sync {
    /// Starts a send.
    ///
    /// # Safety
    ///
    /// The memory of `bytes` stays valid for reads, and unchanged, until the send has ended.
    unsafe fn send(&self, message: &Outgoing, bytes: ByteLayout) -> Start;

    /// Starts a receive.
    ///
    /// # Safety
    ///
    /// The memory of `bytes` stays valid for writes, and is used by nobody else, until the receive
    /// has ended.
    unsafe fn receive(&self, wanted: &Wanted, bytes: ByteLayout) -> Start;

    /// Starts to receive a message that a matched probe has taken.
    ///
    /// # Safety
    ///
    /// As for [`Transport::receive`].
    unsafe fn receive_matched(&self, message: MessageId, bytes: ByteLayout) -> Start;

    /// Drops a message that a matched probe has taken and that is not received.
    fn discard(&self, message: MessageId);

    /// Cancels a receive that no message is matched to: it ends with a cancelled status.
    fn cancel(&self, operation: OperationId);

    /// Probes for a message that no receive has taken; with `take`, removes it from matching. If
    /// there is no such message, `waker` is woken when one may have arrived.
    fn probe(
        &self,
        wanted: &Wanted,
        take: bool,
        waker: Option<&Waker>,
    ) -> Result<Option<Probed>, Error>;

    /// Makes progress on the operations under way. Returns the number of events handled.
    fn progress(&self) -> usize;

    /// Makes progress for a task that waits: as [`Transport::progress`], but may spin for a moment
    /// until something arrives.
    fn spin(&self) -> usize {
        std::hint::spin_loop();
        self.progress()
    }

    /// Posts the batched messages, because a task waits or goes on to something else. Without this
    /// they are posted later.
    fn flush(&self) {}

    /// Notes that a rank was sent something that it may wait for, so that the transport may make progress
    /// for it. The caller holds no lock.
    fn notify(&self, _peer: WorldRank) {}

    /// Returns `true` if a task that waits may spin for a moment instead of suspending.
    fn may_spin(&self) -> bool {
        talpf_runtime::worker_is_spare()
    }

    /// Fails all ranks, because this rank cannot continue: operations under way and later ones end
    /// with [`Error::PeerFailed`].
    fn fail(&self, reason: &str);

    /// Returns the counters of this rank.
    fn statistics(&self) -> Statistics;

    /// Prepares the contexts `context` and `context + 1` of a new communicator. Called at every
    /// member before its first message; `rank` is the calling rank.
    fn communicator_created(
        &self,
        context: ContextId,
        rank: Rank,
        members: &Members,
    ) -> Result<(), Error>;

    /// Releases the contexts of a communicator. Called at every member when nothing refers to the
    /// communicator any more.
    fn communicator_freed(&self, context: ContextId);
}

/// Iterations of [`spin_while_spare`]: some tens of microseconds, in which a peer copies 1 MiB.
const SPINS: u32 = 128;

/// Spins before a suspension: makes progress until `ended`, for a while and only while this worker
/// has nothing else to do. Returns `true` if `ended`.
///
/// Suspending at once would make the other side wait for longer, and suspend as well: two tasks
/// that answer each other would both suspend for every message, although each answer takes less
/// than a wake-up.
#[inline]
pub(crate) fn spin_while_spare(transport: &dyn Transport, ended: impl Fn() -> bool) -> bool {
    if ended() {
        return true;
    }
    transport.progress();
    for _ in 0..SPINS {
        if ended() {
            return true;
        }
        if !transport.may_spin() {
            return false;
        }
        transport.spin();
    }
    ended()
}
