//! The transport: operations of communicators as requests of MPI.
#![allow(unsafe_code, reason = "hands the memory of operations to MPI")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

use talpf_primitives::Mutex;

use super::alarm::Alarm;
use super::aside::Asides;
use super::contexts::Contexts;
use super::engine::{Engine, Expected, Kind, Operation};
use super::home::Home;
use super::library::Shared;
use super::poller::Sleeper;
use super::probers::{Probers, selected};
use super::{Library, Matched, RawCommunicator, RawRequest, Refused, Shape};
use crate::buffer::Layout;
use crate::error::Error;
use crate::rank::Rank;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::ticket::{Ticket, opened, packed, ticket};
use crate::transport::{
    ContextId, Members, MessageId, OperationId, Outgoing, Probed, SendMode, Start, Transport,
    Wanted,
};

/// This process among those that MPI has started.
pub(crate) struct MpiTransport {
    /// Itself, for what goes on after a call has returned.
    pub(super) me: Weak<MpiTransport>,
    pub(super) library: Shared,
    pub(super) engine: Engine,
    pub(super) alarm: Alarm,
    pub(super) home: Home,
    pub(super) sleeper: Sleeper,
    pub(super) contexts: Contexts,
    pub(super) probers: Probers,
    pub(super) asides: Asides,
    pub(super) open_windows: AtomicUsize,
    pub(super) matched: Mutex<HashMap<MessageId, (Matched, Status)>>,
    numbers: AtomicU64,
}

/// What an operation asks of MPI.
enum Asked {
    Send(Outgoing),
    Receive(Wanted),
    Matched(Matched),
}

impl MpiTransport {
    /// **Errors**: what MPI refuses.
    pub(super) fn new(library: Library) -> Result<Arc<Self>, Refused> {
        let world = library.world();
        let two = [world.duplicate()?, world.duplicate()?];
        let contexts = Contexts::new(two, world.duplicate()?);
        Ok(Arc::new_cyclic(|me| MpiTransport {
            me: Weak::clone(me),
            library: Shared(library),
            engine: Engine::new(),
            alarm: Alarm::default(),
            home: Home::here(),
            sleeper: Sleeper::default(),
            contexts,
            probers: Probers::default(),
            asides: Asides::default(),
            open_windows: AtomicUsize::new(0),
            matched: Mutex::default(),
            numbers: AtomicU64::new(0),
        }))
    }

    /// Whether the poller has anything to look at.
    pub(super) fn is_busy(&self) -> bool {
        self.engine.under_way() > 0
            || !self.probers.is_empty()
            || self.asides.under_way() > 0
            // Other ranks may need this one's help to reach its memory.
            || self.open_windows.load(Ordering::SeqCst) > 0
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Operations that were started so far and were not over at once.
    pub(super) fn started(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Something is under way that the poller has to look at.
    pub(super) fn wake_poller(&self) {
        if self.library.may_call_anywhere() {
            self.sleeper.wake();
        } else {
            self.home.wake();
        }
    }

    /// Does `what` on a thread that may call MPI: here, or later at home.
    pub(super) fn where_allowed(&self, what: impl FnOnce(&Self) + Send + 'static) {
        if self.library.may_call() {
            what(self);
        } else if let Some(me) = self.me.upgrade() {
            self.home.order(Box::new(move || what(&me)));
        }
    }

    /// Starts an operation in `context`.
    #[inline]
    fn start(&self, context: ContextId, asked: Asked, bytes: Layout) -> Start {
        if let Some(error) = self.engine.failure() {
            return Start::failed(error.clone());
        }
        if self.library.may_call()
            && let Some(communicator) = self.contexts.of_world(context)
        {
            return self.start_in(communicator, None, asked, bytes);
        }
        let slot = match self.contexts.find(context) {
            Ok(slot) => slot,
            Err(refused) => return Start::failed(refused.into()),
        };
        if self.library.may_call()
            && let Some(made) = slot.get()
        {
            return match made {
                Ok(communicator) => self.start_in(*communicator, None, asked, bytes),
                Err(refused) => Start::failed(refused.clone().into()),
            };
        }
        let operation = OperationId(self.number());
        let (ticket, awaited) = ticket();
        let later = move |this: &Self, made: Result<RawCommunicator, Refused>| match made {
            Ok(communicator) => {
                hand_over(this.start_in(communicator, Some(operation), asked, bytes), ticket);
            }
            Err(refused) => ticket.complete(Err(refused.into())),
        };
        let me = Weak::clone(&self.me);
        self.where_allowed(move |_| {
            slot.with(Box::new(move |made| {
                if let Some(me) = me.upgrade() {
                    later(&me, made);
                }
            }));
        });
        Start::UnderWay { awaited, operation }
    }

    /// Starts an operation, on a thread that may call MPI. It gets a number if it has none and is
    /// not over at once.
    #[inline]
    fn start_in(
        &self,
        communicator: RawCommunicator,
        operation: Option<OperationId>,
        asked: Asked,
        bytes: Layout,
    ) -> Start {
        let is_awaited = matches!(asked, Asked::Receive(wanted) if wanted.is_awaited);
        let started = match asked {
            Asked::Send(message) if message.mode == SendMode::Buffered => {
                return Start::Ended(packed(self.send_copy(communicator, &message, bytes)));
            }
            Asked::Send(message) if self.is_short_to_itself(&message, bytes) => {
                if let Ok(status) = self.send_copy(communicator, &message, bytes) {
                    return Start::Ended(Ok(status.into()));
                }
                begin_send(communicator, &message, bytes)
            }
            Asked::Send(message) => begin_send(communicator, &message, bytes),
            Asked::Receive(wanted) => begin_receive(communicator, &wanted, bytes),
            Asked::Matched(message) => begin_matched(message, bytes),
        };
        match started {
            Ok((request, expected)) => self.begun(operation, request, expected, is_awaited),
            Err(refused) => Start::failed(refused.into()),
        }
    }

    /// An operation has been given to MPI. It may be complete already, or soon if a task waits.
    #[inline]
    fn begun(
        &self,
        operation: Option<OperationId>,
        mut request: RawRequest,
        expected: Expected,
        is_awaited: bool,
    ) -> Start {
        /// Tests of what is awaited: a few microseconds, and cheaper than those of the slab.
        const LOOKS: u32 = 64;
        let most = if is_awaited { LOOKS } else { 1 };
        if let Some(outcome) = self.test_while_spare(&mut request, most) {
            return Start::Ended(self.engine.result(outcome, expected, false));
        }
        let operation = operation.unwrap_or_else(|| OperationId(self.number()));
        let (ticket, awaited) = ticket();
        let kind = Kind::Awaited { ticket, expected };
        self.engine.add(request, Operation::new(operation, kind));
        self.wake_poller();
        if self.engine.failure().is_some() {
            // Whoever failed may have looked for what to cancel before this was there.
            self.engine.cancel(operation);
        }
        Start::UnderWay { awaited, operation }
    }

    /// Starts a transfer of a window.
    pub(super) fn start_transfer(
        &self,
        status: Status,
        begin: impl FnOnce() -> Result<RawRequest, Refused> + Send + 'static,
    ) -> Start {
        if let Some(error) = self.engine.failure() {
            return Start::failed(error.clone());
        }
        let operation = OperationId(self.number());
        let start = move |this: &Self| match begin() {
            Ok(request) => {
                this.begun(Some(operation), request, Expected::Known(status.into()), false)
            }
            Err(refused) => Start::failed(refused.into()),
        };
        if self.library.may_call() {
            return start(self);
        }
        let (ticket, awaited) = ticket();
        self.where_allowed(move |this| hand_over(start(this), ticket));
        Start::UnderWay { awaited, operation }
    }
}

impl Transport for MpiTransport {
    #[inline]
    unsafe fn send(&self, message: &Outgoing, bytes: Layout) -> Start {
        self.start(message.context, Asked::Send(*message), bytes)
    }

    #[inline]
    unsafe fn receive(&self, wanted: &Wanted, bytes: Layout) -> Start {
        self.start(wanted.context, Asked::Receive(*wanted), bytes)
    }

    unsafe fn receive_matched(&self, message: MessageId, bytes: Layout) -> Start {
        match self.matched.lock().remove(&message) {
            // The message knows its communicator: any context will do.
            Some((message, _)) => self.start(ContextId(0), Asked::Matched(message), bytes),
            None => Start::failed(Error::Abandoned),
        }
    }

    fn discard(&self, message: MessageId) {
        let taken = self.matched.lock().remove(&message);
        if let Some((message, status)) = taken {
            self.where_allowed(move |this| {
                // What cannot be received stays with MPI.
                let _ = this.receive_unwanted(message, status.bytes as usize);
            });
        }
    }

    fn cancel(&self, operation: OperationId) {
        self.where_allowed(move |this| this.engine.cancel(operation));
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
            let communicator = made.clone()?;
            let found = if self.library.may_call() {
                self.look(communicator, wanted, take)?
            } else {
                let (me, wanted) = (self.me.upgrade().ok_or(Error::Abandoned)?, *wanted);
                let look = move || me.look(communicator, &wanted, take);
                self.home.ask(look).ok_or(Error::Abandoned)??
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        if let Some(waker) = waker {
            self.probers.add(*wanted, waker);
            self.wake_poller();
        }
        Ok(None)
    }

    fn progress(&self) -> usize {
        let ended = self.advance(|| false);
        if ended == 0 && self.library.may_call() {
            self.heed_alarm();
        }
        ended
    }

    fn spin(&self) -> usize {
        /// Tests in vain, under one lock.
        const LOOKS: usize = 8;
        self.advance_while_spare(LOOKS)
    }

    fn may_spin(&self) -> bool {
        self.library.may_call() && talpf_runtime::worker_has_nothing_else()
    }

    fn fail(&self, reason: &str) {
        let rank = Rank(self.library.rank());
        let reason = reason.to_owned();
        self.where_allowed(move |this| {
            let failure = Error::PeerFailed { rank, reason: reason.clone() };
            if this.set_failure(failure) {
                this.raise_alarm(&reason);
                this.wake_poller();
            }
        });
    }

    fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    fn mpi(&self) -> Option<Arc<MpiTransport>> {
        self.me.upgrade()
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

fn begin_send(
    communicator: RawCommunicator,
    message: &Outgoing,
    bytes: Layout,
) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    let (to, tag) = (message.destination.rank.0, message.tag.0);
    // SAFETY: the caller of `send` vouches for the memory.
    let request = unsafe { communicator.start_send(message.mode, bytes.first, &shape, to, tag) }?;
    Ok((request, Expected::Known(sent_status(message, bytes).into())))
}

fn begin_receive(
    communicator: RawCommunicator,
    wanted: &Wanted,
    bytes: Layout,
) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    let (source, tag) = selected(wanted);
    // SAFETY: the caller of `receive` vouches for the memory.
    let request = unsafe { communicator.start_receive(bytes.first, &shape, source, tag) }?;
    Ok((request, Expected::Message { room: bytes.bytes() }))
}

fn begin_matched(message: Matched, bytes: Layout) -> Result<(RawRequest, Expected), Refused> {
    let shape = Shape::of(bytes)?;
    // SAFETY: the caller of `receive_matched` vouches for the memory.
    let request = unsafe { message.start_receive(bytes.first, &shape) }?;
    Ok((request, Expected::Message { room: bytes.bytes() }))
}

/// Completes `ticket` when what was started ends.
fn hand_over(start: Start, ticket: Ticket) {
    match start {
        Start::Ended(result) => ticket.complete(opened(result)),
        Start::Batched(status) => ticket.complete(Ok(status.into())),
        Start::UnderWay { awaited, .. } => {
            awaited.call(Box::new(move |result| ticket.complete(result)));
        }
    }
}

pub(super) fn sent_status(message: &Outgoing, bytes: Layout) -> Status {
    let (source, tag) = (message.source, message.tag);
    Status::new(source, tag, bytes.bytes())
}
