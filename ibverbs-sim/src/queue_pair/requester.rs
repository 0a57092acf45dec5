//! The asking half of a queue pair: carries out one send request.

use std::sync::Arc;

use crate::{
    Access, CompletionStatus, Payload, QueuePairNumber, QueuePairState, SendFlags, SendWorkRequest,
    WorkCompletion,
    aftermath::Aftermath,
    completion::CompletionEntry,
    gate::Held,
    link::{Message, Reply, Trip},
    queue_pair::{Local, Pieces, QueuePairCore, retry::Retry},
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

/// Where a request is after [`QueuePairCore::execute`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has ended, well or not.
    Done,
    /// It waits for a receive or for time, and whoever brings that resumes the queue pair.
    Stalled,
}

impl Requester {
    /// As new, with everything `posted` so far done.
    pub(crate) fn reset(&mut self, posted: u32) {
        *self = Self {
            executed: posted,
            ..Self::default()
        };
    }
}

impl QueuePairCore {
    /// Carries out `request`, which is the oldest of this queue pair.
    #[inline]
    pub(crate) fn execute(
        &self,
        requester: &mut Requester,
        held: Held<'_>,
        request: &SendWorkRequest<'_>,
        aftermath: &mut Aftermath,
    ) -> Progress {
        let mut listed = false;
        loop {
            match self.state.load() {
                QueuePairState::ReadyToSend => {}
                QueuePairState::Error => {
                    let flushed = CompletionStatus::WorkRequestFlushed;
                    return self.complete(requester, request, flushed, 0, aftermath);
                }
                // It was reset meanwhile, and what was outstanding is discarded.
                _ => {
                    requester.executed = requester.executed.wrapping_add(1);
                    self.context
                        .device
                        .send_slots
                        .free(self.number, requester.executed);
                    return Progress::Done;
                }
            }
            let timers = &self.context.timers;
            if requester.retry.may_try(|| timers.now_ns()) {
                let (reply, length) = self.attempt(requester, held, request, aftermath);
                let patience = &requester.patience;
                let waiting = match reply {
                    Reply::Acknowledged { .. } => {
                        requester.next_psn = (requester.next_psn + 1) & PSN_MASK;
                        let success = CompletionStatus::Success;
                        return self.complete(requester, request, success, length, aftermath);
                    }
                    Reply::Refused(status) => Err(status),
                    Reply::ReceiverNotReady { .. } if !listed => {
                        listed = true;
                        if let Some(peer) = &requester.peer {
                            peer.receives.wait(&self.this);
                        }
                        continue;
                    }
                    Reply::ReceiverNotReady { wait_ns } => requester
                        .retry
                        .receiver_not_ready(timers.now_ns(), wait_ns, patience.rnr_retry)
                        .map_err(|_| CompletionStatus::ReceiverNotReadyRetryExceeded),
                    Reply::NoAnswer => requester
                        .retry
                        .no_answer(timers.now_ns(), patience.timeout_ns, patience.retry_count)
                        .map_err(|_| CompletionStatus::RetryExceeded),
                    Reply::Held { until_ns } => {
                        requester.retry.held(until_ns);
                        Ok(())
                    }
                };
                if let Err(status) = waiting {
                    self.enter_error(aftermath);
                    return self.complete(requester, request, status, 0, aftermath);
                }
            }
            match requester.retry.deadline_ns() {
                Some(deadline) if deadline <= timers.now_ns() => {}
                Some(deadline) => {
                    timers.arm(deadline, &self.this);
                    return Progress::Stalled;
                }
                None => return Progress::Stalled,
            }
        }
    }

    /// Checks the local side, and sends it on its way.
    #[inline]
    fn attempt(
        &self,
        requester: &mut Requester,
        held: Held<'_>,
        request: &SendWorkRequest<'_>,
        aftermath: &mut Aftermath,
    ) -> (Reply, u64) {
        let device = &self.context.device;
        let operation = &request.operation;
        let refused = |status| (Reply::Refused(status), 0);
        let pieces;
        let local = match request.payload {
            Payload::Inline(bytes) => Local::Inline(bytes),
            Payload::Gather(list) => {
                let needed = if operation.brings_back() {
                    Access::LOCAL_WRITE
                } else {
                    Access::NONE
                };
                match Pieces::check(&device.keys, list, self.domain, needed, held) {
                    Ok(checked) => pieces = checked,
                    Err(_) => return refused(CompletionStatus::LocalProtection),
                }
                Local::Pieces(&pieces)
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
            return (Reply::NoAnswer, 0);
        }
        if requester.peer.is_none() {
            requester.peer = device.find(requester.remote);
        }
        let Some(peer) = &requester.peer else {
            return (Reply::NoAnswer, 0);
        };
        let message = Message {
            source: self.number,
            psn: requester.next_psn,
            operation,
            solicited: request.flags.contains(SendFlags::SOLICITED),
            local,
        };
        let trip = Trip {
            attempt: requester.retry.attempt,
            released: requester.retry.released,
            timers: &self.context.timers,
        };
        let reply = device.link.carry(peer, &message, trip, held, aftermath);
        if let (Reply::Acknowledged { original }, true, Local::Pieces(pieces)) =
            (reply, operation.is_atomic(), local)
        {
            pieces.fill_bytes(&original.to_ne_bytes());
        }
        (reply, length)
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
