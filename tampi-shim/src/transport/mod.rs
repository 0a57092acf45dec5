//! What carries messages: the interface between communicators and a transport.
//!
//! A transport knows envelopes and bytes, and no types, buffers or tasks. Communicators start
//! operations on it; they keep the memory they name valid until the operation has ended, and the
//! transport does not touch it after that.
//!
//! Messages of one context from one source to one destination are matched in the order in which
//! they were sent to receives in the order in which they were started (non-overtaking), wildcards
//! included.

pub(crate) mod verbs;

pub(crate) use self::verbs::VerbsWorld;

use std::sync::Arc;
use std::task::Waker;

use crate::buffer::Layout;
use crate::error::Error;
use crate::rank::{Rank, WorldRank};
use crate::select::Select;
use crate::statistics::Statistics;
use crate::status::{Packed, Status};
use crate::tag::Tag;
use crate::ticket::{Awaited, Ended};

/// A number that keeps messages of communicators apart, and within a communicator point-to-point
/// messages from those of collectives. The same at all its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContextId(pub(crate) u32);

/// The world ranks of a communicator, by rank.
pub(crate) type Members = Arc<[WorldRank]>;

/// A member of a communicator under both its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) rank: Rank,
    pub(crate) world: WorldRank,
}

/// When a send has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// The buffer may be reused, whether or not a receive was found.
    Standard,
    /// A receive was found, and the buffer may be reused.
    Synchronous,
    /// At once: what cannot be sent yet is copied, within the limit of the transport.
    Buffered,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) context: ContextId,
    /// This rank, as the communicator calls it.
    pub(crate) source: Rank,
    pub(crate) destination: Peer,
    pub(crate) tag: Tag,
    pub(crate) mode: SendMode,
}

/// Which messages a receive or a probe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) context: ContextId,
    pub(crate) source: Select<Peer>,
    pub(crate) tag: Select<Tag>,
    /// Whether a task waits for the message at once, so that the start of the receive may look for
    /// it for as long as the wait would.
    pub(crate) is_awaited: bool,
}

/// An operation under way, as its transport numbers it. A number that is out of use names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OperationId(pub(crate) u64);

impl OperationId {
    /// Names nothing: what is not carried out by a transport.
    pub(crate) const NONE: OperationId = OperationId(u64::MAX);
}

/// A message that a matched probe has taken, as its transport numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageId(pub(crate) u64);

/// What a probe found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    pub(crate) status: Status,
    /// Of a probe that takes the message.
    pub(crate) message: Option<MessageId>,
}

/// Where an operation is when the call that started it returns.
pub(crate) enum Start {
    /// It has ended, and its memory is not used any more.
    Ended(Ended),
    /// A send that has ended. Its message waits for others that follow it to the same rank, and
    /// leaves at the latest with [`Transport::flush`].
    Collected(Packed),
    /// It goes on; the ticket of `awaited` is completed when it ends.
    UnderWay { awaited: Awaited, operation: OperationId },
}

impl Start {
    #[cold]
    pub(crate) fn failed(error: Error) -> Self {
        Start::Ended(Err(Box::new(error)))
    }
}

/// One rank's access to the others.
#[allow(unsafe_code, reason = "the memory of operations is the caller's to vouch for")]
pub(crate) trait Transport: Send + Sync + 'static {
    /// Starts a send.
    ///
    /// # Safety
    ///
    /// The memory of `bytes` stays valid for reads, and unchanged, until the send has ended.
    unsafe fn send(&self, message: &Outgoing, bytes: Layout) -> Start;

    /// Starts a receive.
    ///
    /// # Safety
    ///
    /// The memory of `bytes` stays valid for writes, and is used by nobody else, until the receive
    /// has ended.
    unsafe fn receive(&self, wanted: &Wanted, bytes: Layout) -> Start;

    /// Starts the receive of a message that a matched probe has taken.
    ///
    /// # Safety
    ///
    /// As for [`Transport::receive`].
    unsafe fn receive_matched(&self, message: MessageId, bytes: Layout) -> Start;

    /// Forgets a message that a matched probe has taken and nobody wants.
    fn discard(&self, message: MessageId);

    /// Ends a receive that no message was matched to, with a status that says so.
    fn cancel(&self, operation: OperationId);

    /// Looks for a message that no receive has taken, and with `take` takes it from all others.
    /// If there is none, `waker` will be woken when there may be.
    fn probe(
        &self,
        wanted: &Wanted,
        take: bool,
        waker: Option<&Waker>,
    ) -> Result<Option<Probed>, Error>;

    /// Carries on what is under way. Returns how many things happened.
    fn progress(&self) -> usize;

    /// As [`Transport::progress`], for a task that waits: it may wait a moment for something to
    /// come.
    fn look(&self) -> usize {
        std::hint::spin_loop();
        self.progress()
    }

    /// Sends what was collected: a task turns to something else. What is collected leaves without
    /// this, too, but later.
    fn flush(&self) {}

    /// Whether a task that waits may look on for a moment instead of suspending.
    fn may_look(&self) -> bool {
        talpf_runtime::worker_is_spare()
    }

    /// This rank cannot go on: operations of all ranks, under way and later ones, end with
    /// [`Error::PeerFailed`].
    fn fail(&self, reason: &str);

    /// What it has done.
    fn statistics(&self) -> Statistics;

    /// The transport over MPI, if this is it.
    #[cfg(feature = "mpi")]
    fn mpi(&self) -> Option<Arc<crate::mpi::MpiTransport>> {
        None
    }

    /// Called at every member before the first message of a communicator, whose contexts are
    /// `context` and the one after it; `rank` is this one.
    fn communicator_created(
        &self,
        context: ContextId,
        rank: Rank,
        members: &Members,
    ) -> Result<(), Error>;

    /// Called at every member when nothing refers to the communicator any more.
    fn communicator_freed(&self, context: ContextId);
}

/// Passes of [`look_while_spare`]: some tens of microseconds, in which a peer copies 1 MiB.
const LOOKS: u32 = 128;

/// Makes progress until `ended`, for a while and only while this worker has nothing else to do: for
/// waits that suspending would double.
///
/// If it suspended, the other side would wait for longer, and suspend in its turn: two tasks that
/// answer each other would go on so, although each answer takes less than a wake-up.
#[inline]
pub(crate) fn look_while_spare(transport: &dyn Transport, ended: impl Fn() -> bool) -> bool {
    if ended() {
        return true;
    }
    transport.progress();
    for _ in 0..LOOKS {
        if ended() {
            return true;
        }
        if !transport.may_look() {
            return false;
        }
        transport.look();
    }
    ended()
}
