//! The asking half of a queue pair: carries out one send request.

use std::sync::Arc;

use crate::{
    CompletionStatus, Payload, QueuePairNumber, QueuePairState, SendFlags, SendWorkRequest,
    WorkCompletion,
    aftermath::Aftermath,
    completion::CompletionEntry,
    gate::Held,
    link::{Message, Setback, Trip},
    queue_pair::{Local, Pieces, QueuePairCore, backlog::StoredRequest, retry::Retry},
    send_queue::{Execute, Progress},
};

/// Sequence numbers have 24 bits.
pub(crate) const PSN_MASK: u32 = 0xff_ffff;

/// What belongs to the holder of the gate.
#[derive(Default)]
pub(crate) struct Requester {
    /// Resolved at the first request. The peer holds this end in the same way; RESET and
    /// destruction let go.
    peer: Option<Arc<QueuePairCore>>,
    pub(crate) remote: QueuePairNumber,
    /// Where that one is, if not in this process.
    pub(crate) process: Option<u32>,
    /// The request that was sent there and has no answer.
    pub(super) under_way: Option<u32>,
    /// The waiting for its answer; `retry` is what the answers so far have led to.
    pub(super) answering: Retry,
    pub(crate) next_psn: u32,
    /// Requests ever carried out, wrapping: what a completion frees.
    executed: u32,
    pub(crate) max_rd_atomic: u8,
    pub(crate) patience: Patience,
    retry: Retry,
}

/// How long to try.
#[derive(Default)]
pub(crate) struct Patience {
    pub(crate) timeout_ns: u64,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry: u8,
}

/// Whether a request is listed for the peer's next receive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    No,
    /// Since the last attempt, so that it must look once more before it waits.
    Now,
    Before,
}

impl Requester {
    /// Becomes as new, with everything `posted` so far done. Gives the peer, to be dropped under no
    /// gate.
    pub(crate) fn reset(&mut self, posted: u32) -> Option<Arc<QueuePairCore>> {
        let peer = self.peer.take();
        *self = Self { executed: posted, ..Self::default() };
        peer
    }
}

/// Carries out requests of a queue pair.
pub(crate) struct Executor<'a> {
    pub(super) queue_pair: &'a QueuePairCore,
    pub(super) aftermath: &'a mut Aftermath,
}

impl Execute<Requester, StoredRequest> for Executor<'_> {
    // Part of the loops that call it: the way of every request.
    #[inline(always)]
    fn execute(
        &mut self,
        requester: &mut Requester,
        held: Held<'_>,
        request: &SendWorkRequest<'_>,
    ) -> Progress {
        self.queue_pair.execute(requester, held, request, self.aftermath)
    }
}

impl QueuePairCore {
    /// Carries out `request`, which is the oldest of this queue pair.
    #[inline(always)]
    fn execute(
        &self,
        requester: &mut Requester,
        held: Held<'_>,
        request: &SendWorkRequest<'_>,
        aftermath: &mut Aftermath,
    ) -> Progress {
        let mut listed = Listed::No;
        loop {
            if self.state.load() != QueuePairState::ReadyToSend {
                return self.discard(requester, request, aftermath);
            }
            let timers = &self.context.timers;
            if requester.retry.may_try(|| timers.now_ns()) {
                match self.attempt(requester, held, request, aftermath) {
                    Ok(length) => {
                        requester.next_psn = (requester.next_psn + 1) & PSN_MASK;
                        let success = CompletionStatus::Success;
                        return self.complete(requester, request, success, length, aftermath);
                    }
                    Err(setback) => {
                        if let Err(status) = self.set_back(requester, setback, &mut listed) {
                            self.enter_error(aftermath);
                            return self.complete(requester, request, status, 0, aftermath);
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
    /// trace if the queue pair was reset meanwhile.
    #[cold]
    fn discard(
        &self,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        aftermath: &mut Aftermath,
    ) -> Progress {
        if self.state.load() == QueuePairState::Error {
            let flushed = CompletionStatus::WorkRequestFlushed;
            return self.complete(requester, request, flushed, 0, aftermath);
        }
        requester.executed = requester.executed.wrapping_add(1);
        self.context.device.send_slots.free(self.number, requester.executed);
        Progress::Done
    }

    /// Deals with a setback; an error is the request's end. `listed` says whether the request is
    /// listed for the peer's next receive.
    #[cold]
    fn set_back(
        &self,
        requester: &mut Requester,
        setback: Setback,
        listed: &mut Listed,
    ) -> Result<(), CompletionStatus> {
        let now_ns = self.context.timers.now_ns();
        let Requester { retry, patience, peer, under_way, answering, .. } = requester;
        match setback {
            Setback::Refused(status) => Err(status),
            Setback::ReceiverNotReady { wait_ns } => {
                *listed = match (*listed, peer) {
                    (Listed::No, Some(peer)) => {
                        peer.receives.wait(&self.this);
                        Listed::Now
                    }
                    _ => Listed::Before,
                };
                retry
                    .receiver_not_ready(now_ns, wait_ns, patience.rnr_retry)
                    .map_err(|_| CompletionStatus::ReceiverNotReadyRetryExceeded)
            }
            Setback::NoAnswer => (if under_way.is_some() { answering } else { retry })
                .no_answer(now_ns, patience.timeout_ns, patience.retry_count)
                .map_err(|_| CompletionStatus::RetryExceeded),
            Setback::Held { until_ns } => {
                retry.held(until_ns);
                Ok(())
            }
        }
    }

    /// Whether there is anything to wait for; if it is time, it is waited for from now on.
    #[cold]
    fn must_wait(&self, requester: &Requester) -> bool {
        let timers = &self.context.timers;
        let Requester { retry, under_way, answering, .. } = requester;
        let waits = if under_way.is_some() { answering } else { retry };
        let Some(deadline) = waits.deadline_ns() else {
            return true;
        };
        timers.arm(deadline, &self.this)
    }

    /// Checks the local side, and sends it on its way. Gives the length of what was carried.
    #[inline(always)]
    fn attempt(
        &self,
        requester: &mut Requester,
        held: Held<'_>,
        request: &SendWorkRequest<'_>,
        aftermath: &mut Aftermath,
    ) -> Result<u64, Setback> {
        let device = &self.context.device;
        let operation = &request.operation;
        let refused = |status| Err(Setback::Refused(status));
        let (sources, targets);
        let local = match request.payload {
            Payload::Inline(bytes) => Local::Inline(bytes),
            Payload::Gather(list) if operation.brings_back() => {
                match Pieces::to_write(&device.keys, list, self.domain, held) {
                    Ok(checked) => targets = checked,
                    Err(_) => return refused(CompletionStatus::LocalProtection),
                }
                Local::Target(&targets)
            }
            Payload::Gather(list) => {
                match Pieces::to_read(&device.keys, list, self.domain, held) {
                    Ok(checked) => sources = checked,
                    Err(_) => return refused(CompletionStatus::LocalProtection),
                }
                Local::Source(&sources)
            }
        };
        let length = local.len();
        let too_long = length > u64::from(device.attributes.max_message_size);
        if too_long || (operation.is_atomic() && length != 8) {
            return refused(CompletionStatus::LocalLength);
        }
        if operation.brings_back() && requester.max_rd_atomic == 0 {
            return refused(CompletionStatus::LocalQueuePairOperation);
        }
        if self.state.is_cut_off() {
            return Err(Setback::NoAnswer);
        }
        if requester.peer.is_none() {
            if let Some(process) = requester.process {
                return self.attempt_elsewhere(process, requester, request, local, aftermath);
            }
            requester.peer = device.find(requester.remote);
        }
        let Some(peer) = &requester.peer else {
            return Err(Setback::NoAnswer);
        };
        let message = Message {
            source: self.number,
            psn: requester.next_psn,
            operation,
            solicited: request.flags.contains(SendFlags::SOLICITED),
            local: &local,
        };
        let trip = Trip {
            attempt: requester.retry.attempt,
            released: requester.retry.released,
            timers: &self.context.timers,
        };
        let original = device.link.carry(peer, &message, trip, held, aftermath)?;
        if let (true, Local::Target(pieces)) = (operation.is_atomic(), local) {
            pieces.fill_bytes(&original.to_ne_bytes());
        }
        Ok(length)
    }

    /// Ends `request`. A completion is left if it was asked for or something went wrong.
    #[inline]
    fn complete(
        &self,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        status: CompletionStatus,
        length: u64,
        aftermath: &mut Aftermath,
    ) -> Progress {
        requester.executed = requester.executed.wrapping_add(1);
        requester.retry = Retry::default();
        let signalled = self.limits.signal_all || request.flags.contains(SendFlags::SIGNALLED);
        if signalled || status != CompletionStatus::Success {
            let brought = request.operation.brings_back();
            let completion = WorkCompletion {
                wr_id: request.wr_id,
                status,
                opcode: request.operation.opcode(),
                byte_len: if brought { length as u32 } else { 0 },
                immediate: None,
                queue_pair: self.number,
                source: requester.remote,
            };
            let entry = CompletionEntry::send(completion, requester.executed);
            self.send_cq.push(entry, false, status, aftermath);
        }
        Progress::Done
    }
}
