//! Peers in other processes: requests become packets, of which several are under way.
//!
//! The holder of the gate queues the packet of a request in the port of the device, which sends it
//! once the gate is free, and adds the request to the `outstanding` ones. The thread that delivers
//! a response takes the gate, waiting for its holder, and ends the requests that the response is
//! for, the oldest first: so completions come in the order of posting. A request that finds too many
//! outstanding stalls until then.
//!
//! A rail loses nothing and keeps the order, so requests are sent again for two reasons only, without faults
//! (`faults`): the peer had no receive for the oldest, or was not connected and has dropped them. Then the oldest is
//! sent alone, and the others follow once it was carried out. The peer recognises requests that it
//! has carried out by their sequence numbers.
//!
//! Data is copied at once instead where the rail maps memory and the peer has sent its permit
//! (`port::mapped`): a write or read with nothing under way before it ends in its post, and a long
//! write with an immediate sends a packet without data, as does a write or read behind such ones. Data is
//! copied only while no earlier request has its effect by a packet, so the order of effects is that
//! of posting. A word is changed at once as well. An empty write has no effect but its notice. Much data waits for the acknowledgement of the requests
//! before it, rather than that a packet carries it. A request that is sent again has its data in the packet, unless it has changed a word.
//!
//! A rail that carries out long writes and reads (`Rail::write_long`, `Rail::read_long`) moves the data of such a
//! request, also of several at a time. Only then its packet is sent, without data, and after it those behind
//! it: other requests wait until all these packets were sent. If the rail is refused, the packet has or asks for the
//! data, and the responder decides. A request that ends before the rail has is cancelled there first.
//!
//! The peer stores no request for which it has no receive. It responds so, lists itself for the
//! next receive and checks for one again, in this order: so the notification of a receive comes
//! after the response that none was posted.

mod faults;
mod peer;
mod permit;
mod responding;

pub(crate) use self::peer::RemotePeer;

use talpf_primitives::Ordering;

use crate::{
    CompletionStatus, Operation, Payload, QueuePairNumber, QueuePairState, SendFlags,
    SendWorkRequest,
    deferred::Deferred,
    gate::GateHeld,
    link::AttemptError,
    port::{Packet, Request, Response, Syndrome},
    queue_pair::{
        CheckedList, LocalBuffer, QueuePairCore,
        outstanding::{ListBuffer, Way},
        requester::{Executor, PSN_MASK, Requester},
    },
};

/// The requesting end.
impl QueuePairCore {
    /// Queues a packet, and defers its send.
    fn queue_packet(
        &self,
        process: u32,
        packet: &Packet<'_>,
        more: Option<LocalBuffer<'_>>,
        deferred: &mut Deferred,
    ) {
        let device = &self.context.device;
        if let Some(port) = &device.port {
            port.queue(process, packet, more);
            deferred.send(device);
        }
    }

    /// Sends a request to the peer in `process`, unless too many are outstanding, or carries it out
    /// at once. The error says which of the first two.
    #[cold]
    pub(super) fn attempt_remote(
        &self,
        process: u32,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        local: LocalBuffer<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptError {
        let length = local.len();
        let device = &self.context.device;
        let Some(port) = &device.port else { return AttemptError::NoResponse };
        let is_long = permit::is_long(requester, &request.operation, length, port);
        if !requester.outstanding.has_room(request, length, requester.max_rd_atomic, is_long) {
            return AttemptError::Busy;
        }
        if requester.outstanding.is_empty() && port.is_lost(process) {
            return AttemptError::Refused(CompletionStatus::RetryExceeded);
        }
        if device.link.has_faults()
            && let Some(held_back) = self.held_back_by_faults(requester)
        {
            return held_back;
        }
        if is_long && let Some(attempted) = self.post_long(process, requester, request, local) {
            return attempted;
        }
        let copied = permit::copy_at_once(port, process, requester, &request.operation, local);
        let Some(is_delivered) = copied else { return AttemptError::Busy };
        let has_notice = matches!(request.operation, Operation::WriteWithImmediate { .. });
        if is_delivered && !has_notice && requester.outstanding.is_empty() {
            let success = CompletionStatus::Success;
            self.complete(requester, request, success, length, deferred);
            return AttemptError::UnderWay;
        }
        let (psn, remote) = (requester.next_psn, requester.remote);
        let local = match is_delivered {
            // The packet only keeps the order of completions.
            true if request.operation.returns_data() => LocalBuffer::Delivered { length: 0 },
            true => LocalBuffer::Delivered { length },
            false => local,
        };
        self.send_request(process, remote, (psn, 0), request, local, deferred);
        requester.next_psn = (psn + 1) & PSN_MASK;
        let way = if is_delivered { Way::Copied } else { Way::Packet };
        requester.outstanding.push(request, length, way);
        self.remote_peer.under_way.store(requester.outstanding.len() as u32, Ordering::SeqCst);
        if requester.outstanding.len() == 1 {
            self.await_response(requester, held, deferred);
        }
        AttemptError::UnderWay
    }

    /// Sends a request with its sequence number, by the attempt of this number.
    fn send_request(
        &self,
        process: u32,
        remote: QueuePairNumber,
        (psn, attempt): (u32, u32),
        request: &SendWorkRequest<'_>,
        local: LocalBuffer<'_>,
        deferred: &mut Deferred,
    ) {
        let payload = if let LocalBuffer::Inline(bytes) = local { bytes } else { &[] };
        let is_delivered = matches!(local, LocalBuffer::Delivered { .. });
        let operation = match request.operation.source() {
            Some(remote) if is_delivered => Operation::Write { remote },
            _ => request.operation,
        };
        let packet = Request {
            to: remote,
            from: self.number,
            psn,
            connection: self.remote_peer.connection.load(Ordering::SeqCst),
            solicited: request.flags.contains(SendFlags::SOLICITED),
            is_delivered,
            operation,
            length: local.len(),
            payload,
        };
        let more = matches!(local, LocalBuffer::Source(_)).then_some(local);
        let fate = self.context.device.link.fate(self.number, psn, attempt);
        if fate.is_lost {
            return;
        }
        self.queue_packet(process, &Packet::Request(packet), more, deferred);
        if fate.arrives_twice {
            self.queue_packet(process, &Packet::Request(packet), more, deferred);
        }
    }

    /// Takes a response that has arrived.
    pub(crate) fn take_response(&self, response: &Response<'_>, deferred: &mut Deferred) {
        let handle =
            |requester: &mut Requester, held: GateHeld<'_>, executor: &mut Executor<'_>| {
                self.handle_response(requester, held, response, executor.deferred);
            };
        self.sends.deliver(handle, self.executor(deferred));
    }

    /// Takes the notification that the peer has a receive.
    pub(crate) fn receiver_ready(&self, deferred: &mut Deferred) {
        self.resume_remote(true, deferred);
    }

    /// Goes on with the requests under way, because the time has moved, the peer has a receive, or
    /// this end has failed.
    pub(super) fn resume_remote(&self, is_ready: bool, deferred: &mut Deferred) {
        let handle =
            |requester: &mut Requester, held: GateHeld<'_>, executor: &mut Executor<'_>| {
                self.advance(requester, held, is_ready, executor.deferred);
            };
        self.sends.deliver(handle, self.executor(deferred));
    }

    fn handle_response(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        response: &Response<'_>,
        deferred: &mut Deferred,
    ) {
        let is_current = response.connection == self.remote_peer.connection.load(Ordering::SeqCst);
        if !is_current || self.state.load() != QueuePairState::ReadyToSend {
            return;
        }
        let under_way = requester.outstanding.len();
        let oldest = requester.next_psn.wrapping_sub(under_way as u32);
        let nth = (response.psn.wrapping_sub(oldest) & PSN_MASK) as usize;
        if nth >= under_way || !requester.outstanding.is_sent(nth) {
            return;
        }
        let acknowledged =
            Response { syndrome: Syndrome::Ack { original: 0 }, payload: &[], ..*response };
        for earlier in 0..=nth {
            if self.loses_response(requester, response) {
                if earlier == 0 {
                    return;
                }
                break;
            }
            let response = if earlier < nth { &acknowledged } else { response };
            let is_last = earlier == nth;
            match self.outcome(requester, held, response, is_last) {
                Ok(()) => self.end_oldest(requester, CompletionStatus::Success, deferred),
                Err(AttemptError::ReceiverNotReady { wait_ns }) => {
                    return self.await_receive(requester, held, wait_ns, deferred);
                }
                Err(AttemptError::Refused(status)) => {
                    return self.fail_oldest(requester, status, deferred);
                }
                Err(_) => return,
            }
        }
        requester.outstanding.open();
        self.send_again(requester, held, deferred);
        self.await_response(requester, held, deferred);
    }

    /// Returns the outcome of the oldest request, with its data brought in.
    fn outcome(
        &self,
        requester: &Requester,
        held: GateHeld<'_>,
        response: &Response<'_>,
        is_last: bool,
    ) -> Result<(), AttemptError> {
        let original = match response.syndrome {
            Syndrome::Ack { original } => original,
            Syndrome::RnrNak { wait_ns } => return Err(AttemptError::ReceiverNotReady { wait_ns }),
            Syndrome::Nak(status) => return Err(AttemptError::Refused(status)),
        };
        let mut list = ListBuffer::default();
        let Some((request, length)) = requester.outstanding.oldest(&mut list) else {
            return Err(AttemptError::NoResponse);
        };
        if !request.operation.returns_data() || requester.outstanding.is_oldest_delivered() {
            return Ok(());
        }
        let is_atomic = request.operation.is_atomic();
        let is_whole = is_atomic || response.payload.len() as u64 == length;
        // Data has a response of its own.
        if !is_last || !is_whole {
            return Err(AttemptError::Refused(CompletionStatus::RemoteOperation));
        }
        let Payload::Gather(pieces) = request.payload else { return Ok(()) };
        let keys = &self.context.device.keys;
        let pieces = CheckedList::to_write(keys, pieces, self.domain, held)
            .map_err(|_| AttemptError::Refused(CompletionStatus::LocalProtection))?;
        if is_atomic {
            pieces.fill_bytes(&original.to_ne_bytes());
        } else {
            pieces.fill_bytes(response.payload);
        }
        Ok(())
    }

    /// Ends the oldest request.
    fn end_oldest(
        &self,
        requester: &mut Requester,
        status: CompletionStatus,
        deferred: &mut Deferred,
    ) {
        let mut list = ListBuffer::default();
        if requester.outstanding.is_long(0) {
            self.cancel_long(requester);
        }
        let Some((request, length)) = requester.outstanding.oldest(&mut list) else { return };
        let length = if status == CompletionStatus::Success { length } else { 0 };
        requester.outstanding.pop();
        self.remote_peer.under_way.store(requester.outstanding.len() as u32, Ordering::SeqCst);
        requester.outstanding.response = Default::default();
        self.complete(requester, &request, status, length, deferred);
    }

    /// Ends the oldest request without success. The others are flushed once this end has failed.
    fn fail_oldest(
        &self,
        requester: &mut Requester,
        status: CompletionStatus,
        deferred: &mut Deferred,
    ) {
        self.enter_error(deferred);
        self.end_oldest(requester, status, deferred);
    }

    /// Ends all requests under way as flushed.
    pub(super) fn flush_outstanding(&self, requester: &mut Requester, deferred: &mut Deferred) {
        while !requester.outstanding.is_empty() {
            self.end_oldest(requester, CompletionStatus::WorkRequestFlushed, deferred);
        }
    }

    /// Waits for a receive of the peer, which had none for the oldest request.
    #[cold]
    fn await_receive(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        wait_ns: u64,
        deferred: &mut Deferred,
    ) {
        let now_ns = self.context.timers.now_ns();
        let retries = requester.retry_limits.rnr_retry;
        requester.outstanding.response = Default::default();
        if requester.retry.receiver_not_ready(now_ns, wait_ns, retries).is_err() {
            let status = CompletionStatus::ReceiverNotReadyRetryExceeded;
            return self.fail_oldest(requester, status, deferred);
        }
        requester.outstanding.rewind(0);
        self.advance(requester, held, false, deferred);
    }

    /// Begins the wait for the response to the oldest request, unless one is under way.
    fn await_response(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) {
        let Requester { outstanding, retry_limits, .. } = requester;
        // The rail ends what it moves, or loses the peer.
        if outstanding.is_empty() || outstanding.is_long(0) || retry_limits.timeout_ns == 0 {
            return;
        }
        let now_ns = self.context.timers.now_ns();
        let limits = (retry_limits.timeout_ns, retry_limits.retry_count);
        if outstanding.response.no_response(now_ns, limits.0, limits.1).is_err() {
            return self.fail_oldest(requester, CompletionStatus::RetryExceeded, deferred);
        }
        let deadline_ns = outstanding.response.deadline_ns();
        if deadline_ns.is_some_and(|deadline| !self.arm(requester, deadline)) {
            self.advance(requester, held, false, deferred);
        }
    }

    /// Arms a timer, unless one is armed that ends no later. Returns `false` if the deadline has
    /// been reached.
    fn arm(&self, requester: &mut Requester, deadline_ns: u64) -> bool {
        let timers = &self.context.timers;
        let is_armed = |armed: u64| armed <= deadline_ns && armed > timers.now_ns();
        if requester.outstanding.armed_ns.is_some_and(is_armed) {
            return true;
        }
        requester.outstanding.armed_ns = Some(deadline_ns);
        timers.arm(deadline_ns, &self.this)
    }

    /// Goes on with the requests under way.
    fn advance(
        &self,
        requester: &mut Requester,
        held: GateHeld<'_>,
        is_ready: bool,
        deferred: &mut Deferred,
    ) {
        let mut is_ready = is_ready;
        while let (false, Some(process)) = (requester.outstanding.is_empty(), requester.process) {
            match self.state.load() {
                QueuePairState::ReadyToSend => {}
                QueuePairState::Error => return self.flush_outstanding(requester, deferred),
                _ => return,
            }
            if self.context.device.port.as_ref().is_some_and(|port| port.is_lost(process)) {
                return self.fail_oldest(requester, CompletionStatus::RetryExceeded, deferred);
            }
            let now_ns = self.context.timers.now_ns();
            let is_reached = |deadline: u64| deadline <= now_ns;
            if requester.outstanding.awaits_receive() {
                let deadline_ns = requester.retry.deadline_ns();
                if is_ready || deadline_ns.is_some_and(is_reached) {
                    requester.outstanding.rewind(1);
                    self.send_again(requester, held, deferred);
                    return self.await_response(requester, held, deferred);
                }
                if deadline_ns.is_none_or(|deadline| self.arm(requester, deadline)) {
                    return;
                }
            } else {
                if requester.outstanding.response.is_expired(now_ns)
                    && !self.delays_repetition(requester)
                {
                    requester.outstanding.rewind(1);
                    self.send_again(requester, held, deferred);
                    return self.await_response(requester, held, deferred);
                }
                let deadline_ns = requester.outstanding.response.deadline_ns();
                if deadline_ns.is_none_or(|deadline| self.arm(requester, deadline)) {
                    return;
                }
            }
            is_ready = false;
        }
    }

    /// Sends requests under way that were not sent, or that the peer has not carried out, as far as it may
    /// have room.
    fn send_again(&self, requester: &mut Requester, held: GateHeld<'_>, deferred: &mut Deferred) {
        let Some(process) = requester.process else { return };
        let mut list = ListBuffer::default();
        let oldest = requester.next_psn.wrapping_sub(requester.outstanding.len() as u32);
        let repeated = requester.outstanding.repeated;
        loop {
            let remote = requester.remote;
            let again = requester.outstanding.next_to_send(&mut list);
            let Some((nth, request, length, is_notification)) = again else { return };
            let psn = oldest.wrapping_add(nth as u32) & PSN_MASK;
            let numbers = (psn, if nth == 0 { repeated } else { 0 });
            if is_notification {
                // That of a read only keeps the order of completions.
                let is_read = request.operation.returns_data();
                let local = LocalBuffer::Delivered { length: if is_read { 0 } else { length } };
                self.send_request(process, remote, numbers, &request, local, deferred);
                requester.outstanding.sent_again();
                continue;
            }
            let checked = self.with_local(&request, held, |local| {
                self.send_request(process, remote, numbers, &request, local, deferred);
            });
            if let Err(status) = checked {
                // Memory of the request is not registered any more. A later one waits until it is
                // the oldest, so that completions keep the order.
                if nth == 0 {
                    self.fail_oldest(requester, status, deferred);
                }
                return;
            }
            requester.outstanding.sent_again();
        }
    }
}
