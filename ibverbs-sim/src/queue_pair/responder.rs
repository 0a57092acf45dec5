//! The responding half of a queue pair: checks the claims of a peer's message, and carries it out.
//!
//! The responder runs in the peer's thread, under the peer's gate. A refusal moves this end into
//! ERROR and reports it to the owner: with a completion if a receive was taken, with an event
//! otherwise.

use talpf_primitives::Ordering;

use crate::{
    Access, AsyncEvent, CompletionOpcode, CompletionStatus, Operation, RemoteAddress, WordUpdate,
    WorkCompletion,
    checked::{Checked, Claim, ToWrite, Writable},
    deferred::Deferred,
    gate::GateHeld,
    link::{AttemptError, AttemptResult, Message},
    queue_pair::{CheckedList, QueuePairCore, requester::PSN_MASK},
    receive_queue::Receive,
};

/// Reason for which a message was not carried out.
enum RequestError {
    NoReceive,
    /// The address, length, key or right to the memory was refused.
    BadAccess,
    /// The request is not valid.
    BadRequest,
    /// A receive was taken and could not hold the message; it completes with the first status, and
    /// the peer's request with the second.
    BadReceive(u64, CompletionStatus, CompletionStatus),
}

impl QueuePairCore {
    /// Carries out a message that has arrived, and returns the response.
    #[inline]
    pub(crate) fn respond(
        &self,
        message: &Message<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        let responder = &self.responder;
        let from_peer = responder.remote.load(Ordering::Relaxed) == message.source.0;
        if !self.state.responds() || !from_peer {
            return Err(AttemptError::NoResponse);
        }
        if responder.expected_psn.load(Ordering::Relaxed) != message.psn {
            return self.respond_to_duplicate(message, held);
        }
        match self.perform(message, held, deferred) {
            Ok(original) => {
                responder.expected_psn.store((message.psn + 1) & PSN_MASK, Ordering::Relaxed);
                Ok(original)
            }
            Err(error) => Err(self.refuse(&error, deferred)),
        }
    }

    /// Responds to a message that is not the next. An earlier one was carried out and is
    /// acknowledged again, without effect; a later one means that the two ends started at different
    /// numbers.
    #[cold]
    fn respond_to_duplicate(&self, message: &Message<'_>, held: GateHeld<'_>) -> AttemptResult {
        let expected = self.responder.expected_psn.load(Ordering::Relaxed);
        let behind = expected.wrapping_sub(message.psn) & PSN_MASK;
        if behind > PSN_MASK / 2 {
            return Err(AttemptError::NoResponse);
        }
        if let Operation::Read { remote } = *message.operation {
            let allowed = self.check_read_limit();
            match allowed.and_then(|()| self.open(remote, message.local.len(), held)) {
                Ok(source) => message.local.bring(source),
                Err(_) => return Err(AttemptError::NoResponse),
            }
        }
        Ok(self.responder.last_original.load(Ordering::Relaxed))
    }

    /// Carries out the operation of a message. Returns the value that an atomic found.
    #[inline]
    fn perform(
        &self,
        message: &Message<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> Result<u64, RequestError> {
        let local = message.local;
        let length = local.len();
        match *message.operation {
            Operation::Send => self.receive(message, None, held, deferred)?,
            Operation::SendWithImmediate { immediate } => {
                self.receive(message, Some(immediate), held, deferred)?;
            }
            Operation::Write { remote } => {
                local.copy_to(self.open_to_write(remote, length, ToWrite::Remote, held)?);
            }
            Operation::WriteWithImmediate { remote, immediate } => {
                let target = self.open_to_write(remote, length, ToWrite::Remote, held)?;
                let wr_id = self.receives.take_id().ok_or(RequestError::NoReceive)?;
                local.copy_to(target);
                let completion = WorkCompletion {
                    wr_id,
                    opcode: CompletionOpcode::ReceiveWriteWithImmediate,
                    byte_len: length as u32,
                    immediate: Some(immediate),
                    ..WorkCompletion::default()
                };
                self.complete_receive(completion, message.solicited, deferred);
            }
            Operation::Read { remote } => {
                self.check_read_limit()?;
                local.bring(self.open(remote, length, held)?);
            }
            Operation::FetchAdd { remote, add } => {
                return self.update(remote, WordUpdate::FetchAdd { add }, held);
            }
            Operation::CompareSwap { remote, compare, swap } => {
                return self.update(remote, WordUpdate::CompareSwap { compare, swap }, held);
            }
        }
        Ok(0)
    }

    /// Writes the data of a SEND to the memory of the next receive.
    fn receive(
        &self,
        message: &Message<'_>,
        immediate: Option<u32>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> Result<(), RequestError> {
        let mut receive = Receive::default();
        if !self.receives.take(&mut receive) {
            return Err(RequestError::NoReceive);
        }
        let length = message.local.len();
        let post_limit: u64 = receive.scatter().iter().map(|piece| u64::from(piece.length)).sum();
        if length > post_limit {
            let (local, remote) =
                (CompletionStatus::LocalLength, CompletionStatus::RemoteInvalidRequest);
            return Err(RequestError::BadReceive(receive.wr_id, local, remote));
        }
        let keys = &self.context.device.keys;
        let domain = self.receives.domain;
        match CheckedList::to_write(keys, receive.scatter(), domain, held) {
            Ok(pieces) => message.local.scatter_to(&pieces),
            Err(_) => {
                let (local, remote) =
                    (CompletionStatus::LocalProtection, CompletionStatus::RemoteOperation);
                return Err(RequestError::BadReceive(receive.wr_id, local, remote));
            }
        }
        let completion = WorkCompletion {
            wr_id: receive.wr_id,
            opcode: CompletionOpcode::Receive,
            byte_len: length as u32,
            immediate,
            ..WorkCompletion::default()
        };
        self.complete_receive(completion, message.solicited, deferred);
        Ok(())
    }

    fn update(
        &self,
        remote: RemoteAddress,
        update: WordUpdate,
        held: GateHeld<'_>,
    ) -> Result<u64, RequestError> {
        self.check_read_limit()?;
        let word = self.open_to_write(remote, 8, ToWrite::Atomic, held)?;
        let original = word.update(update).ok_or(RequestError::BadRequest)?;
        self.responder.last_original.store(original, Ordering::Relaxed);
        Ok(original)
    }

    /// Checks a peer's claim to read memory of this end. A claim of no bytes needs no valid key.
    #[inline]
    fn open<'guard>(
        &self,
        remote: RemoteAddress,
        length: u64,
        held: GateHeld<'guard>,
    ) -> Result<Checked<'guard>, RequestError> {
        let needed = Access::REMOTE_READ;
        self.check_right(needed)?;
        if length == 0 {
            return Ok(Checked::EMPTY);
        }
        let claim = Claim { address: remote.address, length, key: remote.key.0 };
        let keys = &self.context.device.keys;
        keys.check(claim, self.domain, needed, held).map_err(|_| RequestError::BadAccess)
    }

    /// Checks a peer's claim to write memory of this end.
    #[inline]
    fn open_to_write<'guard>(
        &self,
        remote: RemoteAddress,
        length: u64,
        needed: ToWrite,
        held: GateHeld<'guard>,
    ) -> Result<Writable<'guard>, RequestError> {
        self.check_right(needed.access())?;
        if length == 0 {
            return Ok(Writable::EMPTY);
        }
        let claim = Claim { address: remote.address, length, key: remote.key.0 };
        let keys = &self.context.device.keys;
        keys.check_to_write(claim, self.domain, needed, held).map_err(|_| RequestError::BadAccess)
    }

    /// Returns an error unless the connection gives the peer the rights in `needed`.
    #[inline]
    fn check_right(&self, needed: Access) -> Result<(), RequestError> {
        let access = Access::from_bits(self.responder.access.load(Ordering::Relaxed));
        if access.contains(needed) { Ok(()) } else { Err(RequestError::BadRequest) }
    }

    fn check_read_limit(&self) -> Result<(), RequestError> {
        match self.responder.max_rd_atomic.load(Ordering::Relaxed) {
            0 => Err(RequestError::BadRequest),
            _ => Ok(()),
        }
    }

    #[cold]
    fn refuse(&self, error: &RequestError, deferred: &mut Deferred) -> AttemptError {
        let queue_pair = self.number;
        let status = match *error {
            RequestError::NoReceive => {
                let wait_ns = self.responder.min_rnr_timer_ns.load(Ordering::Relaxed);
                return AttemptError::ReceiverNotReady { wait_ns };
            }
            RequestError::BadAccess => {
                self.context.raise(AsyncEvent::QueuePairAccessError { queue_pair });
                CompletionStatus::RemoteAccess
            }
            RequestError::BadRequest => {
                self.context.raise(AsyncEvent::QueuePairRequestError { queue_pair });
                CompletionStatus::RemoteInvalidRequest
            }
            RequestError::BadReceive(wr_id, status, remote) => {
                let opcode = CompletionOpcode::Receive;
                let completion = WorkCompletion { wr_id, status, opcode, ..Default::default() };
                self.complete_receive(completion, false, deferred);
                remote
            }
        };
        self.enter_error(deferred);
        AttemptError::Refused(status)
    }
}
