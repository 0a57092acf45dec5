//! The operations under way of this process, and the passes that end them.
//!
//! Whoever starts an operation leaves its request in the inbox; whoever makes a pass holds the
//! slab and takes in what lies there. Passes do not wait for each other, and nothing is ended
//! while the slab is held: what is told may run anything.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;
use talpf_primitives::Mutex;

use super::request::{Outcome, Tester};
use super::slab::Slab;
use super::{RawRequest, Refused};
use crate::error::Error;
use crate::statistics::Statistics;
use crate::status::Packed;
use crate::ticket::{Ended, Notification, Ticket};
use crate::transport::OperationId;

/// An operation under way.
pub(super) struct Operation {
    id: OperationId,
    kind: Kind,
    /// Not to be cancelled again: Open MPI would not survive it.
    cancelled: bool,
}

impl Operation {
    pub(super) fn new(id: OperationId, kind: Kind) -> Self {
        Operation { id, kind, cancelled: false }
    }
}

/// Who learns that an operation has ended.
pub(super) enum Kind {
    /// Whoever has the other half of the ticket.
    Awaited { ticket: Ticket, expected: Expected },
    /// Nobody: bytes of this library's own, that MPI reads or writes. `counted` are those that
    /// buffered sends may have.
    Owned { bytes: Box<[u8]>, counted: bool },
}

/// What an operation ends with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// A status that is known: of a send, or of a transfer of a window.
    Known(Packed),
    /// The status of a message that fits into `room` bytes.
    Message { room: u64 },
}

type Pending = (RawRequest, Operation);

/// What is under way.
pub(super) struct Engine {
    inbox: Mutex<Vec<Pending>>,
    /// The length of the inbox, written under its lock.
    waiting: AtomicUsize,
    slab: Mutex<Slab<Tester, Operation>>,
    /// The length of the slab, written under its lock: before the inbox counts as empty, and after
    /// what has ended is out.
    tested: AtomicUsize,
    buffered: AtomicUsize,
    /// Why no rank can go on. Receives are cancelled then, and end with it.
    failure: OnceLock<Error>,
}

impl Engine {
    /// Bytes that buffered sends may hold together.
    pub(super) const BUFFERED_MOST: usize = 256 << 20;

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

    /// Looks after an operation that has started.
    pub(super) fn add(&self, request: RawRequest, operation: Operation) {
        let mut inbox = self.inbox.lock();
        inbox.push((request, operation));
        // Before its starter looks whether the poller sleeps.
        self.waiting.store(inbox.len(), Ordering::SeqCst);
    }

    /// Operations that have started and not ended.
    pub(super) fn under_way(&self) -> usize {
        self.waiting.load(Ordering::SeqCst) + self.tested.load(Ordering::SeqCst)
    }

    /// Why no rank can go on, if so.
    #[inline]
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// No rank can go on. Whether this is the first to say so.
    pub(super) fn set_failure(&self, failure: Error) -> bool {
        let first = self.failure.set(failure).is_ok();
        if first {
            self.cancel_receives(|_| true);
        }
        first
    }

    /// What is left. What MPI does with a message it does not say.
    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            unfinished: self.under_way() as u64,
            kept_bytes: self.buffered.load(Ordering::SeqCst) as u64,
            ..Statistics::default()
        }
    }

    /// Takes room for the copy of a buffered send.
    pub(super) fn take_room(&self, bytes: usize) -> Result<(), Error> {
        let take = |held: usize| Some(held + bytes).filter(|held| *held <= Self::BUFFERED_MOST);
        let taken = self.buffered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.map(drop).map_err(|held| Error::NoBufferSpace {
            bytes: bytes as u64,
            room: (Self::BUFFERED_MOST - held) as u64,
        })
    }

    /// Gives back the room of a copy.
    pub(super) fn give_room(&self, bytes: usize) {
        self.buffered.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Tests what is under way, unless another thread does, and ends what is complete; again while
    /// nothing was and `goes_on`. Returns how many have ended.
    #[inline]
    pub(super) fn pass(&self, mut goes_on: impl FnMut() -> bool) -> Result<usize, Refused> {
        let mut ended = 0;
        let mut next = SmallVec::<[Notification; 8]>::new();
        {
            let Some(mut slab) = self.slab.try_lock() else {
                std::hint::spin_loop();
                return Ok(0);
            };
            loop {
                // What comes meanwhile is for the next time.
                if self.waiting.load(Ordering::Acquire) > 0 {
                    self.take_in(&mut slab);
                }
                if slab.is_empty() {
                    break;
                }
                slab.pass(|operation, outcome| {
                    ended += 1;
                    next.extend(self.end(operation, outcome));
                })?;
                if ended > 0 || !goes_on() {
                    break;
                }
            }
            self.tested.store(slab.len(), Ordering::Release);
        }
        next.into_iter().for_each(Notification::deliver);
        Ok(ended)
    }

    /// Asks MPI to cancel a receive. Whatever comes of it, the operation ends as the others do.
    pub(super) fn cancel(&self, id: OperationId) {
        self.cancel_receives(|operation| operation.id == id);
    }

    fn cancel_receives(&self, wanted: impl Fn(&Operation) -> bool) {
        let mut slab = self.slab.lock();
        self.take_in(&mut slab);
        for (request, operation) in slab.iter_mut() {
            if operation.kind.is_receive() && wanted(operation) && !operation.cancelled {
                operation.cancelled = true;
                // If MPI refuses, a message will end it.
                let _ = request.cancel();
            }
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        let mut slab = self.slab.lock();
        self.take_in(&mut slab);
        slab.is_empty()
    }

    /// Under the lock of the inbox, whatever its length seems to be: an operation that has started
    /// is there, or else finds what was noted before, a failure for example.
    fn take_in(&self, slab: &mut Slab<Tester, Operation>) {
        let mut inbox = self.inbox.lock();
        inbox.drain(..).for_each(|(request, operation)| slab.push(request, operation));
        self.tested.store(slab.len(), Ordering::Release);
        self.waiting.store(0, Ordering::Release);
    }

    /// Ends an operation. What is left to do may run anything.
    fn end(&self, operation: Operation, outcome: Outcome) -> Option<Notification> {
        let was_cancelled = operation.cancelled;
        match operation.kind {
            Kind::Awaited { ticket, expected } => {
                ticket.end(self.result(outcome, expected, was_cancelled))
            }
            Kind::Owned { bytes, counted } => {
                if counted {
                    self.give_room(bytes.len());
                }
                None
            }
        }
    }

    /// What an operation ends with.
    #[inline]
    pub(super) fn result(
        &self,
        outcome: Outcome,
        expected: Expected,
        was_cancelled: bool,
    ) -> Ended {
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

impl Kind {
    fn is_receive(&self) -> bool {
        match self {
            Kind::Awaited { expected, .. } => matches!(expected, Expected::Message { .. }),
            Kind::Owned { .. } => false,
        }
    }
}
