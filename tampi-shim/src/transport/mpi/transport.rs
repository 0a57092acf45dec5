//! Transport over MPI: operations of communicators as requests of MPI.
#![allow(unsafe_code, reason = "hands the memory of operations to MPI")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use talpf_primitives::Mutex;
use talpf_runtime::ByteLayout;
use talpf_runtime::service::Sleeper;

use super::blocking_calls::BlockingCalls;
use super::clocks::TracedClock;
use super::contexts::{Contexts, Slot};
use super::engine::{Engine, Expected, Operation, OperationKind};
use super::failure_broadcast::FailureBroadcast;
use super::library::Shared;
use super::probers::{Probers, selected};
use super::{Library, Matched, RawCommunicator, RawRequest, Refused, Shape};
use crate::error::Error;
use crate::rank::Rank;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{Ticket, packed, ticket, unpacked};
use crate::transport::{
    ContextId, Members, MessageId, OperationId, Outgoing, Probed, SendMode, Start, Transport,
    Wanted,
};

/// Transport of this process, one of those that MPI has started.
pub(crate) struct MpiTransport {
    /// Reference to itself, for functions that run after a call has returned.
    pub(super) me: Weak<MpiTransport>,
    pub(super) library: Shared,
    pub(super) engine: Engine,
    pub(super) failure_broadcast: FailureBroadcast,
    pub(super) sleeper: Sleeper,
    /// `true` once the polling task is to end.
    stopped: AtomicBool,
    pub(super) contexts: Contexts,
    pub(super) probers: Probers,
    pub(super) blocking_calls: BlockingCalls,
    pub(super) open_windows: AtomicUsize,
    pub(super) matched: Mutex<HashMap<MessageId, (Matched, Status)>>,
    numbers: AtomicU64,
    /// Clock of this process, if the run is traced.
    pub(super) clock: OnceLock<TracedClock>,
}

/// Arguments of an operation that is started.
enum OperationArguments {
    Send(Outgoing),
    Receive(Wanted),
    Matched(Matched),
}

impl MpiTransport {
    /// Creates the transport.
    ///
    /// **Errors**: an error of MPI.
    pub(super) fn new(library: Library) -> Result<Arc<Self>, Refused> {
        let world = library.world();
        let two = [world.duplicate()?, world.duplicate()?];
        let contexts = Contexts::new(two, world.duplicate()?);
        Ok(Arc::new_cyclic(|me| MpiTransport {
            me: Weak::clone(me),
            library: Shared(library),
            engine: Engine::new(),
            failure_broadcast: FailureBroadcast::default(),
            sleeper: Sleeper::default(),
            stopped: AtomicBool::new(false),
            contexts,
            probers: Probers::default(),
            blocking_calls: BlockingCalls::default(),
            open_windows: AtomicUsize::new(0),
            matched: Mutex::default(),
            numbers: AtomicU64::new(0),
            clock: OnceLock::new(),
        }))
    }

    /// Returns `true` if there is anything to poll.
    pub(super) fn is_busy(&self) -> bool {
        self.engine.under_way() > 0
            || !self.probers.is_empty()
            || self.blocking_calls.under_way() > 0
            // Other ranks may need progress here to reach the memory of this one.
            || self.open_windows.load(Ordering::SeqCst) > 0
    }

    /// Lets the polling task end.
    pub(super) fn stop_polling(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.sleeper.wake();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of operations started so far that were not complete at once.
    pub(super) fn started(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Starts an operation in `context`.
    #[inline]
    fn start(&self, context: ContextId, arguments: OperationArguments, bytes: ByteLayout) -> Start {
        if let Some(error) = self.engine.failure() {
            return Start::failed(error.clone());
        }
        if let Some(communicator) = self.contexts.of_world(context) {
            return self.start_in(communicator, None, arguments, bytes);
        }
        let slot = match self.contexts.find(context) {
            Ok(slot) => slot,
            Err(refused) => return Start::failed(refused.into()),
        };
        if let Some(made) = slot.get() {
            return match made {
                Ok(communicator) => self.start_in(*communicator, None, arguments, bytes),
                Err(refused) => Start::failed(refused.clone().into()),
            };
        }
        self.park(&slot, arguments, bytes)
    }

    /// Parks an operation until its communicator exists.
    #[cold]
    fn park(&self, slot: &Slot, arguments: OperationArguments, bytes: ByteLayout) -> Start {
        let operation = OperationId(self.number());
        let (ticket, awaited) = ticket();
        let me = Weak::clone(&self.me);
        slot.with(Box::new(move |made| match (me.upgrade(), made) {
            (Some(me), Ok(communicator)) => {
                let start = me.start_in(communicator, Some(operation), arguments, bytes);
                complete_with(start, ticket);
            }
            (_, Err(refused)) => ticket.complete(Err(refused.into())),
            (None, Ok(_)) => {}
        }));
        Start::UnderWay { awaited, operation }
    }

    /// Starts an operation. The operation gets a number if it has none and is not complete at once.
    #[inline]
    fn start_in(
        &self,
        communicator: RawCommunicator,
        operation: Option<OperationId>,
        arguments: OperationArguments,
        bytes: ByteLayout,
    ) -> Start {
        let is_awaited =
            matches!(arguments, OperationArguments::Receive(wanted) if wanted.is_awaited);
        let started = match arguments {
            OperationArguments::Send(message) if message.mode == SendMode::Buffered => {
                return Start::Ended(packed(self.send_copy(communicator, &message, bytes)));
            }
            OperationArguments::Send(message) if self.is_short_to_itself(&message, bytes) => {
                if let Ok(status) = self.send_copy(communicator, &message, bytes) {
                    return Start::Ended(Ok(status.into()));
                }
                start_send(communicator, &message, bytes)
            }
            OperationArguments::Send(message) => start_send(communicator, &message, bytes),
            OperationArguments::Receive(wanted) => start_receive(communicator, &wanted, bytes),
            OperationArguments::Matched(message) => start_matched(message, bytes),
        };
        match started {
            Ok((request, expected)) => self.add_started(operation, request, expected, is_awaited),
            Err(refused) => Start::failed(refused.into()),
        }
    }

    /// Adds an operation that MPI has started. It is tested before: once, or for a while if a task
    /// waits for it.
    #[inline]
    fn add_started(
        &self,
        operation: Option<OperationId>,
        mut request: RawRequest,
        expected: Expected,
        is_awaited: bool,
    ) -> Start {
        /// Tests of an awaited operation: a few microseconds, and cheaper than those of the slab.
        const TESTS: u32 = 64;
        let most = if is_awaited { TESTS } else { 1 };
        if let Some(outcome) = self.test_while_spare(&mut request, most) {
            return Start::Ended(self.engine.result(outcome, expected, false));
        }
        let operation = operation.unwrap_or_else(|| OperationId(self.number()));
        let (ticket, awaited) = ticket();
        let kind = OperationKind::Awaited { ticket, expected };
        self.engine.add(request, Operation::new(operation, kind));
        self.sleeper.wake();
        if self.engine.failure().is_some() {
            // The failure may have cancelled all receives before this one was added.
            self.engine.cancel(operation);
        }
        Start::UnderWay { awaited, operation }
    }

    /// Starts a transfer of a window.
    pub(super) fn start_transfer(
        &self,
        status: Status,
        begin: impl FnOnce() -> Result<RawRequest, Refused>,
    ) -> Start {
        if let Some(error) = self.engine.failure() {
            return Start::failed(error.clone());
        }
        match begin() {
            Ok(request) => self.add_started(None, request, Expected::Known(status.into()), false),
            Err(refused) => Start::failed(refused.into()),
        }
    }
}

impl Transport for MpiTransport {
    #[inline]
    unsafe fn send(&self, message: &Outgoing, bytes: ByteLayout) -> Start {
        self.start(message.context, OperationArguments::Send(*message), bytes)
    }

    #[inline]
    unsafe fn receive(&self, wanted: &Wanted, bytes: ByteLayout) -> Start {
        self.start(wanted.context, OperationArguments::Receive(*wanted), bytes)
    }

    unsafe fn receive_matched(&self, message: MessageId, bytes: ByteLayout) -> Start {
        match self.matched.lock().remove(&message) {
            // The message knows its communicator, so any context will do.
            Some((message, _)) => {
                self.start(ContextId(0), OperationArguments::Matched(message), bytes)
            }
            None => Start::failed(Error::Abandoned),
        }
    }

    fn discard(&self, message: MessageId) {
        let taken = self.matched.lock().remove(&message);
        if let Some((message, status)) = taken {
            // A message that cannot be received stays with MPI.
            let _ = self.receive_unwanted(message, status.bytes as usize);
        }
    }

    fn cancel(&self, operation: OperationId) {
        self.engine.cancel(operation);
    }

    fn probe(
        &self,
        wanted: &Wanted,
        take: bool,
        waker: Option<&Waker>,
    ) -> Result<Option<Probed>, Error> {
        if let Some(error) = self.engine.failure() {
            return Err(error.clone());
        }
        let slot = self.contexts.find(wanted.context)?;
        if let Some(made) = slot.get() {
            let found = self.try_probe(made.clone()?, wanted, take)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        if let Some(waker) = waker {
            self.probers.add(*wanted, waker);
            self.sleeper.wake();
        }
        Ok(None)
    }

    fn progress(&self) -> usize {
        let ended = self.advance(|| false);
        if ended == 0 {
            self.poll_failure_broadcast();
        }
        ended
    }

    fn spin(&self) -> usize {
        /// Tests in vain, under one lock.
        const TESTS: usize = 8;
        self.advance_while_spare(TESTS)
    }

    fn may_spin(&self) -> bool {
        talpf_runtime::worker_has_nothing_else()
    }

    fn fail(&self, reason: &str) {
        let rank = Rank(self.library.rank());
        if self.set_failure(Error::PeerFailed { rank, reason: reason.to_owned() }) {
            self.broadcast_failure(reason);
            self.sleeper.wake();
        }
    }

    fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    fn communicator_created(
        &self,
        context: ContextId,
        _rank: Rank,
        members: &Members,
    ) -> Result<(), Error> {
        self.create(context, members)
    }

    fn communicator_freed(&self, context: ContextId) {
        self.retire(context);
    }
}

fn start_send(
    communicator: RawCommunicator,
    message: &Outgoing,
    bytes: ByteLayout,
) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    let (to, tag) = (message.destination.rank.0, message.tag.0);
    // SAFETY: the caller of `send` vouches for the memory.
    let request = unsafe { communicator.start_send(message.mode, bytes.first, &shape, to, tag) }?;
    Ok((request, Expected::Known(sent_status(message, bytes).into())))
}

fn start_receive(
    communicator: RawCommunicator,
    wanted: &Wanted,
    bytes: ByteLayout,
) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    let (source, tag) = selected(wanted);
    // SAFETY: the caller of `receive` vouches for the memory.
    let request = unsafe { communicator.start_receive(bytes.first, &shape, source, tag) }?;
    Ok((request, Expected::Message { room: bytes.bytes() }))
}

fn start_matched(message: Matched, bytes: ByteLayout) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    // SAFETY: the caller of `receive_matched` vouches for the memory.
    let request = unsafe { message.start_receive(bytes.first, &shape) }?;
    Ok((request, Expected::Message { room: bytes.bytes() }))
}

/// Completes `ticket` when the started operation ends.
fn complete_with(start: Start, ticket: Ticket) {
    match start {
        Start::Ended(result) => ticket.complete(unpacked(result)),
        Start::Batched(status) => ticket.complete(Ok(status.into())),
        Start::UnderWay { awaited, .. } => {
            awaited.call(Box::new(move |result| ticket.complete(result)));
        }
    }
}

pub(super) fn sent_status(message: &Outgoing, bytes: ByteLayout) -> Status {
    let (source, tag) = (message.source, message.tag);
    Status::new(source, tag, bytes.bytes())
}
