//! The requesting half of a queue pair: carries out one send request.

use std::sync::Arc;

use crate::{
    CompletionStatus, Payload, QueuePairNumber, QueuePairState, SendFlags, SendWorkRequest,
    WorkCompletion,
    completion::CompletionEntry,
    deferred::Deferred,
    gate::GateHeld,
    link::{Attempt, AttemptError, Message},
    port::Permit,
    queue_pair::{
        CheckedList, LocalBuffer, QueuePairCore, outstanding::Outstanding, retry::Retry,
        stored_request::StoredRequest,
    },
    send_queue::{Execute, Progress},
};

/// Sequence numbers have 24 bits.
pub(crate) const PSN_MASK: u32 = 0xff_ffff;

/// State of the requesting half, which belongs to the holder of the gate.
#[derive(Default)]
pub(crate) struct Requester {
    /// The peer, found at the first request. The peer refers to this end in the same way; RESET and
    /// destruction drop the references.
    peer: Option<Arc<QueuePairCore>>,
    pub(crate) remote: QueuePairNumber,
    /// Process of the peer, if it is another one.
    pub(crate) process: Option<u32>,
    /// Requests under way to that process.
    pub(super) outstanding: Box<Outstanding>,
    /// Permit of the peer there, once it has sent one.
    pub(super) permit: Option<Box<Permit>>,
    pub(crate) next_psn: u32,
    /// Number of requests ever carried out, wrapping: what a completion frees.
    executed: u32,
    pub(crate) max_rd_atomic: u8,
    pub(crate) retry_limits: RetryLimits,
    pub(super) retry: Retry,
}

/// Limits of the retries of a request.
#[derive(Default)]
pub(crate) struct RetryLimits {
    pub(crate) timeout_ns: u64,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry: u8,
}

/// State of a request in the list of waiters for the peer's next receive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    No,
    /// Listed since the last attempt: the request must check for a receive again before it waits.
    Now,
    Before,
}

impl Requester {
    /// Resets the state, with everything `posted` so far done. Returns the peer, to be dropped
    /// under no gate.
    pub(crate) fn reset(&mut self, posted: u32) -> Option<Arc<QueuePairCore>> {
        let peer = self.peer.take();
        *self = Self { executed: posted, ..Self::default() };
        peer
    }
}

/// Carries out requests of a queue pair.
pub(crate) struct Executor<'a> {
    pub(super) queue_pair: &'a QueuePairCore,
    pub(super) deferred: &'a mut Deferred,
}

impl Execute<Requester, StoredRequest> for Executor<'_> {
    // Inlined into the loops that call it: every request passes here.
    #[inline(always)]
    fn execute(
        &mut self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        request: &SendWorkRequest<'_>,
    ) -> Progress {
        self.queue_pair.execute(requester, held, request, self.deferred)
    }

    #[cold]
    fn queued(&mut self, requests: &[SendWorkRequest<'_>]) {
        if let Some(priced) = self.queue_pair.context.device.link.priced() {
            priced.queued(self.queue_pair.number, requests);
        }
    }
}

impl QueuePairCore {
    /// Carries out `request`, which is the oldest of this queue pair.
    #[inline(always)]
    fn execute(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        request: &SendWorkRequest<'_>,
        deferred: &mut Deferred,
    ) -> Progress {
        let mut listed = Listed::No;
        loop {
            if self.state.load() != QueuePairState::ReadyToSend {
                return self.discard(requester, request, deferred);
            }
            let timers = &self.context.timers;
            if requester.retry.may_try(|| timers.now_ns()) {
                match self.attempt(requester, held, request, deferred) {
                    Ok(length) => {
                        requester.next_psn = (requester.next_psn + 1) & PSN_MASK;
                        let success = CompletionStatus::Success;
                        return self.complete(requester, request, success, length, deferred);
                    }
                    Err(AttemptError::UnderWay) => return Progress::Done,
                    // Those before it have not ended.
                    Err(_) if !requester.outstanding.is_empty() => return Progress::Stalled,
                    Err(error) => {
                        if let Err(status) = self.retry_or_fail(requester, error, &mut listed) {
                            self.enter_error(deferred);
                            return self.complete(requester, request, status, 0, deferred);
                        }
                    }
                }
            }
            if listed != Listed::Now && self.must_wait(requester) {
                return Progress::Stalled;
            }
        }
    }

    /// Ends a request that cannot be carried out in this state: flushed in ERROR, and without a
    /// completion otherwise.
    #[cold]
    fn discard(
        &self,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        deferred: &mut Deferred,
    ) -> Progress {
        if self.state.load() == QueuePairState::Error {
            self.flush_outstanding(requester, deferred);
            let flushed = CompletionStatus::WorkRequestFlushed;
            return self.complete(requester, request, flushed, 0, deferred);
        }
        requester.executed = requester.executed.wrapping_add(1);
        self.context.device.send_slots.free(self.number, requester.executed);
        Progress::Done
    }

    /// Prepares the next attempt after an error, or returns the status with which the request
    /// fails. `listed` is the request's state in the list of waiters.
    #[cold]
    fn retry_or_fail(
        &self,
        requester: &mut Requester,
        error: AttemptError,
        listed: &mut Listed,
    ) -> Result<(), CompletionStatus> {
        let now_ns = self.context.timers.now_ns();
        let Requester { retry, retry_limits, peer, .. } = requester;
        match error {
            AttemptError::Refused(status) => Err(status),
            AttemptError::ReceiverNotReady { wait_ns } => {
                *listed = match (*listed, peer) {
                    (Listed::No, Some(peer)) => {
                        peer.receives.wait(&self.this);
                        Listed::Now
                    }
                    _ => Listed::Before,
                };
                retry
                    .receiver_not_ready(now_ns, wait_ns, retry_limits.rnr_retry)
                    .map_err(|_| CompletionStatus::ReceiverNotReadyRetryExceeded)
            }
            AttemptError::NoResponse => retry
                .no_response(now_ns, retry_limits.timeout_ns, retry_limits.retry_count)
                .map_err(|_| CompletionStatus::RetryExceeded),
            AttemptError::Delayed { until_ns } => {
                retry.delay(until_ns);
                Ok(())
            }
            AttemptError::UnderWay | AttemptError::Busy => Ok(()),
        }
    }

    /// Returns `true` if the request has to wait, and arms the timer of its deadline. Returns
    /// `false` if the deadline has been reached.
    #[cold]
    fn must_wait(&self, requester: &Requester) -> bool {
        let timers = &self.context.timers;
        let Some(deadline) = requester.retry.deadline_ns() else {
            return true;
        };
        timers.arm(deadline, &self.this)
    }

    /// Checks the local memory and transmits the message once. Returns the length of the message.
    #[inline(always)]
    fn attempt(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        request: &SendWorkRequest<'_>,
        deferred: &mut Deferred,
    ) -> Result<u64, AttemptError> {
        let device = &self.context.device;
        let operation = &request.operation;
        let refused = |status| Err(AttemptError::Refused(status));
        let (sources, targets);
        let local = match request.payload {
            Payload::Inline(bytes) => LocalBuffer::Inline(bytes),
            Payload::Gather(list) if operation.returns_data() => {
                match CheckedList::to_write(&device.keys, list, self.domain, held) {
                    Ok(checked) => targets = checked,
                    Err(_) => return refused(CompletionStatus::LocalProtection),
                }
                LocalBuffer::Target(&targets)
            }
            Payload::Gather(list) => {
                match CheckedList::to_read(&device.keys, list, self.domain, held) {
                    Ok(checked) => sources = checked,
                    Err(_) => return refused(CompletionStatus::LocalProtection),
                }
                LocalBuffer::Source(&sources)
            }
        };
        let length = local.len();
        let too_long = length > u64::from(device.attributes.max_message_size);
        if too_long || (operation.is_atomic() && length != 8) {
            return refused(CompletionStatus::LocalLength);
        }
        if operation.returns_data() && requester.max_rd_atomic == 0 {
            return refused(CompletionStatus::LocalQueuePairOperation);
        }
        if self.state.is_cut_off() {
            return Err(AttemptError::NoResponse);
        }
        if requester.peer.is_none() {
            if let Some(process) = requester.process {
                let sent = self.attempt_remote(process, requester, request, local, held, deferred);
                return Err(sent);
            }
            requester.peer = device.find(requester.remote);
        }
        let Some(peer) = &requester.peer else {
            return Err(AttemptError::NoResponse);
        };
        let message = Message {
            source: self.number,
            psn: requester.next_psn,
            operation,
            solicited: request.flags.contains(SendFlags::SOLICITED),
            local: &local,
        };
        let attempt = Attempt {
            number: requester.retry.attempts,
            was_delayed: requester.retry.was_delayed,
            timers: &self.context.timers,
        };
        let original = device.link.transmit(peer, &message, attempt, held, deferred)?;
        if let (true, LocalBuffer::Target(pieces)) = (operation.is_atomic(), local) {
            pieces.fill_bytes(&original.to_ne_bytes());
        }
        Ok(length)
    }

    /// Checks the local memory of a request that was checked before, and passes it to `action`; for
    /// data that returns its length alone.
    #[cold]
    pub(super) fn with_local(
        &self,
        request: &SendWorkRequest<'_>,
        held: GateHeld<'_>,
        action: impl FnOnce(LocalBuffer<'_>),
    ) -> Result<(), CompletionStatus> {
        let keys = &self.context.device.keys;
        match request.payload {
            Payload::Inline(bytes) => action(LocalBuffer::Inline(bytes)),
            Payload::Gather(list) if request.operation.returns_data() => {
                let checked = CheckedList::to_write(keys, list, self.domain, held);
                let targets = checked.map_err(|_| CompletionStatus::LocalProtection)?;
                action(LocalBuffer::Target(&targets));
            }
            Payload::Gather(list) => {
                let checked = CheckedList::to_read(keys, list, self.domain, held);
                let sources = checked.map_err(|_| CompletionStatus::LocalProtection)?;
                action(LocalBuffer::Source(&sources));
            }
        }
        Ok(())
    }

    /// Ends `request`. Leaves a completion if it is signalled or has failed.
    #[inline]
    pub(super) fn complete(
        &self,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        status: CompletionStatus,
        length: u64,
        deferred: &mut Deferred,
    ) -> Progress {
        requester.executed = requester.executed.wrapping_add(1);
        requester.retry = Retry::default();
        let signalled = self.limits.signal_all || request.flags.contains(SendFlags::SIGNALLED);
        if signalled || status != CompletionStatus::Success {
            let returned = request.operation.returns_data();
            let completion = WorkCompletion {
                wr_id: request.wr_id,
                status,
                opcode: request.operation.opcode(),
                byte_len: if returned { length as u32 } else { 0 },
                immediate: None,
                queue_pair: self.number,
                source: requester.remote,
            };
            let entry = CompletionEntry::send(completion, requester.executed);
            self.send_cq.push(entry, false, status, deferred);
        }
        Progress::Done
    }
}
