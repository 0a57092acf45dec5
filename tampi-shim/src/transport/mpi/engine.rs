//! Engine: the operations of this process that are under way, and the passes that end them.
//!
//! The thread that starts an operation puts its request into the inbox; the thread that makes a
//! pass locks the slab and moves the requests from the inbox there. Passes do not wait for each
//! other, and no waiter is notified while the slab is locked: a notification may run any code.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;
use talpf_primitives::Mutex;

use super::request::{Outcome, Tester};
use super::slab::Slab;
use super::{RawRequest, Refused};
use crate::control_plane;
use crate::error::Error;
use crate::statistics::Statistics;
use crate::status::PackedStatus;
use crate::ticket::{Notification, PackedResult, Ticket};
use crate::transport::OperationId;

/// An operation under way.
pub(super) struct Operation {
    id: OperationId,
    kind: OperationKind,
    /// `true` once MPI was asked to cancel the operation. A second request would crash Open MPI.
    cancelled: bool,
}

impl Operation {
    pub(super) fn new(id: OperationId, kind: OperationKind) -> Self {
        Operation { id, kind, cancelled: false }
    }
}

/// Kind of an operation: with a waiter or without.
pub(super) enum OperationKind {
    /// Notifies the holder of the other half of the ticket.
    Awaited { ticket: Ticket, expected: Expected },
    /// Notifies nobody: MPI reads or writes an internal buffer of this crate, which is freed at the
    /// end. `counted` if it counts towards the limit of buffered sends.
    Internal { bytes: Box<[u8]>, counted: bool },
}

/// Status that an operation is expected to end with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// A known status: of a send, or of a transfer of a window.
    Known(PackedStatus),
    /// The status of a message that fits into `room` bytes.
    Message { room: u64 },
}

type Pending = (RawRequest, Operation);

/// Operations under way.
pub(super) struct Engine {
    inbox: Mutex<Vec<Pending>>,
    /// Length of the inbox, written under its lock.
    waiting: AtomicUsize,
    slab: Mutex<Slab<Tester, Operation>>,
    /// Length of the slab, written under its lock: before the inbox counts as empty, and after
    /// ended operations are removed.
    tested: AtomicUsize,
    buffered: AtomicUsize,
    /// Failure of the run. Receives are cancelled then, and end with it.
    failure: OnceLock<Error>,
}

impl Engine {
    /// Limit of the copies of all buffered sends, in bytes.
    pub(super) const BUFFER_LIMIT: usize = 256 << 20;

    pub(super) fn new() -> Self {
        Engine {
            inbox: Mutex::default(),
            waiting: AtomicUsize::new(0),
            slab: Mutex::new(Slab::new(Tester::default())),
            tested: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
            failure: OnceLock::new(),
        }
    }

    /// Adds an operation that has started.
    pub(super) fn add(&self, request: RawRequest, operation: Operation) {
        let mut inbox = self.inbox.lock();
        inbox.push((request, operation));
        // Before the caller checks whether the poller sleeps.
        self.waiting.store(inbox.len(), Ordering::SeqCst);
    }

    /// Returns the number of operations that have started and not ended.
    pub(super) fn under_way(&self) -> usize {
        self.waiting.load(Ordering::SeqCst) + self.tested.load(Ordering::SeqCst)
    }

    /// Returns the failure of the run, if it has failed.
    #[inline]
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Fails the run. Returns `true` if this is the first failure.
    pub(super) fn set_failure(&self, failure: Error) -> bool {
        let first = self.failure.set(failure.clone()).is_ok();
        if first {
            control_plane::fails(&failure);
            self.cancel_receives(|_| true);
        }
        first
    }

    /// Returns the counters of operations that are left. MPI does not report by which protocol it
    /// sends a message.
    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            unfinished: self.under_way() as u64,
            kept_bytes: self.buffered.load(Ordering::SeqCst) as u64,
            ..Statistics::default()
        }
    }

    /// Reserves room for the copy of a buffered send.
    pub(super) fn reserve_buffer(&self, bytes: usize) -> Result<(), Error> {
        let take = |held: usize| Some(held + bytes).filter(|held| *held <= Self::BUFFER_LIMIT);
        let taken = self.buffered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.map(drop).map_err(|held| Error::NoBufferSpace {
            bytes: bytes as u64,
            room: (Self::BUFFER_LIMIT - held) as u64,
        })
    }

    /// Frees the room of a copy.
    pub(super) fn release_buffer(&self, bytes: usize) {
        self.buffered.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Tests the operations under way, unless another thread does, and ends the complete ones.
    /// Repeats while none is complete and `keep_polling` returns `true`. Returns the number of ended
    /// operations.
    #[inline]
    pub(super) fn pass(&self, mut keep_polling: impl FnMut() -> bool) -> Result<usize, Refused> {
        let mut ended = 0;
        let mut notifications = SmallVec::<[Notification; 8]>::new();
        {
            let Some(mut slab) = self.slab.try_lock() else {
                std::hint::spin_loop();
                return Ok(0);
            };
            loop {
                // Operations that are added meanwhile are for the next pass.
                if self.waiting.load(Ordering::Acquire) > 0 {
                    self.take_in(&mut slab);
                }
                if slab.is_empty() {
                    break;
                }
                slab.pass(|operation, outcome| {
                    ended += 1;
                    notifications.extend(self.end(operation, outcome));
                })?;
                if ended > 0 || !keep_polling() {
                    break;
                }
            }
            self.tested.store(slab.len(), Ordering::Release);
        }
        notifications.into_iter().for_each(Notification::deliver);
        Ok(ended)
    }

    /// Asks MPI to cancel a receive. Cancelled or not, the operation ends as others do.
    pub(super) fn cancel(&self, id: OperationId) {
        self.cancel_receives(|operation| operation.id == id);
    }

    fn cancel_receives(&self, wanted: impl Fn(&Operation) -> bool) {
        let mut slab = self.slab.lock();
        self.take_in(&mut slab);
        for (request, operation) in slab.iter_mut() {
            if operation.kind.is_receive() && wanted(operation) && !operation.cancelled {
                operation.cancelled = true;
                // If the call fails, a message will end the receive.
                let _ = request.cancel();
            }
        }
    }

    /// Returns `true` if no operation is left.
    pub(super) fn is_empty(&self) -> bool {
        let mut slab = self.slab.lock();
        self.take_in(&mut slab);
        slab.is_empty()
    }

    /// Moves the requests from the inbox to the slab. It takes the lock of the inbox even if that
    /// seems empty: an operation that has started is either there, or sees what was written before,
    /// for example a failure.
    fn take_in(&self, slab: &mut Slab<Tester, Operation>) {
        let mut inbox = self.inbox.lock();
        inbox.drain(..).for_each(|(request, operation)| slab.push(request, operation));
        self.tested.store(slab.len(), Ordering::Release);
        self.waiting.store(0, Ordering::Release);
    }

    /// Ends an operation. Delivering the returned notification may run any code.
    fn end(&self, operation: Operation, outcome: Outcome) -> Option<Notification> {
        let was_cancelled = operation.cancelled;
        match operation.kind {
            OperationKind::Awaited { ticket, expected } => {
                ticket.end(self.result(outcome, expected, was_cancelled))
            }
            OperationKind::Internal { bytes, counted } => {
                if counted {
                    self.release_buffer(bytes.len());
                }
                None
            }
        }
    }

    /// Returns the result of an operation that is complete.
    #[inline]
    pub(super) fn result(
        &self,
        outcome: Outcome,
        expected: Expected,
        was_cancelled: bool,
    ) -> PackedResult {
        let room = match (expected, &outcome) {
            (Expected::Known(status), Ok(_)) => return Ok(status),
            (Expected::Known(_), Err(_)) => 0,
            (Expected::Message { room }, _) => room,
        };
        match outcome.and_then(|status| status.read(was_cancelled)) {
            Ok(raw) => match self.failure.get().filter(|_| raw.cancelled) {
                None => Ok(raw.known().into()),
                Some(failure) => Err(Box::new(failure.clone())),
            },
            Err(broken) => Err(Box::new(broken.error(room))),
        }
    }
}

impl OperationKind {
    fn is_receive(&self) -> bool {
        match self {
            OperationKind::Awaited { expected, .. } => matches!(expected, Expected::Message { .. }),
            OperationKind::Internal { .. } => false,
        }
    }
}
