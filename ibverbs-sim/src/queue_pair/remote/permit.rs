//! Permits: the right of the peer in another process to use the memory of a domain at once.
//!
//! A permit is a key by the rail of the device, for memory of no bytes. It is registered as the queue pair
//! begins to respond, and deregistered once it responds no more, before the first request is flushed:
//! `Port::copy_at_once` needs it open for each copy. Whoever registers one checks the state after that,
//! and whoever changes the state closes the permit after that: so none is left open.
//!
//! Long writes and reads that the rail carries out need a permit, too.

use talpf_primitives::Ordering;

use crate::{
    Access, CompletionStatus, Operation, Payload, QueuePairNumber, QueuePairState, RailError,
    RemoteAddress, SendWorkRequest, WordUpdate,
    deferred::Deferred,
    gate::GateHeld,
    link::AttemptError,
    port::{LongRequest, Packet, Permit, Port},
    queue_pair::{
        LocalBuffer, QueuePairCore,
        outstanding::Way,
        requester::{Executor, PSN_MASK, Requester},
    },
};

/// Bytes from which on the data of a request that has a packet anyway is copied at once.
const LONG: u64 = 512;
/// Bytes from which on data waits to be copied: a packet takes longer than the acknowledgement of those before.
const MUCH: u64 = 8 << 10;

impl QueuePairCore {
    /// Returns the packet with the permit of this end, unless the peer has got it.
    pub(crate) fn permit_to_send(&self) -> Option<Packet<'static>> {
        let peer = &self.remote_peer;
        if peer.is_permit_sent.swap(true, Ordering::Relaxed) {
            return None;
        }
        let key = (*self.permit.lock())?;
        Some(Packet::Permit {
            to: QueuePairNumber(self.responder.remote.load(Ordering::Relaxed)),
            from: self.number,
            connection: peer.peer_connection.load(Ordering::Relaxed),
            permit: Permit { domain: self.domain.get(), key },
        })
    }

    /// Lets the peer use memory of this domain at once, as far as this end gives it the rights, and
    /// as long as this end responds. The caller holds no lock.
    pub(crate) fn renew_permit(&self) {
        let Some(port) = &self.context.device.port else { return };
        let mut permit = self.permit.lock();
        if let Some(before) = permit.take() {
            port.unmap(&before);
        }
        if self.remote_peer.process().is_none() || !self.state.responds() {
            return;
        }
        let reads = self.responder.max_rd_atomic.load(Ordering::SeqCst) > 0;
        let access = Access::from_bits(self.responder.access.load(Ordering::SeqCst));
        let right = |right: Access, is_given: bool| {
            if is_given && access.contains(right) { right } else { Access::NONE }
        };
        let access = right(Access::REMOTE_WRITE, true)
            | right(Access::REMOTE_READ, reads)
            | right(Access::REMOTE_ATOMIC, reads);
        *permit = port.map_nothing(access);
        self.remote_peer.is_permit_sent.store(false, Ordering::Relaxed);
        // Who ends the responses closes the permit after that.
        if !self.state.responds()
            && let Some(early) = permit.take()
        {
            port.unmap(&early);
        }
    }

    /// Takes the permit of the peer for a connection. On a link with faults all data is in packets.
    pub(crate) fn take_permit(&self, connection: u32, permit: Permit, deferred: &mut Deferred) {
        if self.context.device.link.has_faults() {
            return;
        }
        let handle = |requester: &mut Requester, _: GateHeld<'_>, _: &mut Executor<'_>| {
            if connection == self.remote_peer.connection.load(Ordering::SeqCst) {
                requester.permit = Some(Box::new(permit));
            }
        };
        self.sends.deliver(handle, self.executor(deferred));
    }

    /// Ends the use of memory by the peer. Returns once it touches none. The caller holds no lock.
    pub(crate) fn close_permit(&self) {
        let Some(port) = &self.context.device.port else { return };
        let mut permit = self.permit.lock();
        if let Some(key) = permit.take() {
            port.unmap(&key);
        }
    }

    /// Lets the rail move the data of a request, whose packet follows. Returns `None` if a packet has to
    /// carry the data, and may be sent now.
    pub(super) fn post_long(
        &self,
        process: u32,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        local: LocalBuffer<'_>,
    ) -> Option<AttemptError> {
        let (port, length) = (self.context.device.port.as_ref()?, local.len());
        let (permit, remote) = of_long(requester, &request.operation)?;
        let Payload::Gather(list) = request.payload else { return None };
        let context = self.long_request(requester.next_psn).number();
        let outstanding = &mut requester.outstanding;
        let is_behind = !outstanding.is_empty();
        if outstanding.overlaps_long(&request.operation, length) {
            return Some(AttemptError::Busy);
        }
        match port.post_long(process, permit, remote, (local, list), context) {
            Ok(true) => {}
            // A packet would overtake data.
            Ok(false) if outstanding.holds() => return Some(AttemptError::Busy),
            Err(RailError::NoRoom { .. }) if is_behind => return Some(AttemptError::Busy),
            Ok(false) | Err(_) => return None,
        }
        outstanding.push(request, length, Way::Rail);
        requester.next_psn = (requester.next_psn + 1) & PSN_MASK;
        self.remote_peer.under_way.store(outstanding.len() as u32, Ordering::SeqCst);
        Some(AttemptError::UnderWay)
    }

    fn long_request(&self, psn: u32) -> LongRequest {
        let connection = self.remote_peer.connection.load(Ordering::SeqCst) as u8;
        LongRequest { queue_pair: self.number, connection, psn }
    }

    /// Cancels all requests whose data the rail moves, of which none succeeds any more. Afterwards the rail does not
    /// use their memory.
    #[cold]
    pub(crate) fn cancel_long(&self, requester: &mut Requester) {
        let Some((port, process)) = self.context.device.port.as_ref().zip(requester.process) else {
            return;
        };
        let under_way = requester.outstanding.len();
        let oldest = requester.next_psn.wrapping_sub(under_way as u32);
        for nth in (0..under_way).filter(|nth| requester.outstanding.is_long(*nth)) {
            let psn = oldest.wrapping_add(nth as u32) & PSN_MASK;
            port.cancel_long(process, self.long_request(psn).number());
        }
        (0..under_way).for_each(|nth| requester.outstanding.end_long(nth, false));
    }

    /// Takes the end of an operation of the rail.
    pub(crate) fn take_long_end(
        &self,
        ended: LongRequest,
        status: CompletionStatus,
        deferred: &mut Deferred,
    ) {
        let handle =
            |requester: &mut Requester, held: GateHeld<'_>, executor: &mut Executor<'_>| {
                if ended != self.long_request(ended.psn) {
                    return;
                }
                let under_way = requester.outstanding.len() as u32;
                let oldest = requester.next_psn.wrapping_sub(under_way);
                let nth = (ended.psn.wrapping_sub(oldest) & PSN_MASK) as usize;
                requester.outstanding.end_long(nth, status == CompletionStatus::Success);
                if self.state.load() == QueuePairState::ReadyToSend {
                    self.send_again(requester, held, executor.deferred);
                    if nth == 0 {
                        self.await_response(requester, held, executor.deferred);
                    }
                }
            };
        self.sends.deliver(handle, self.executor(deferred));
    }
}

/// Copies the data of an operation at once, or changes its word, if the peer permits it. Returns `true` if it has, `false`
/// if a packet has to do that, and `None` if it is to be copied once earlier requests have ended: data does not overtake
/// theirs.
pub(super) fn copy_at_once(
    port: &Port,
    process: u32,
    requester: &Requester,
    operation: &Operation,
    local: LocalBuffer<'_>,
) -> Option<bool> {
    let length = local.len();
    let Some(permit) = requester.permit.as_deref() else { return Some(false) };
    let at = match *operation {
        Operation::Write { remote } | Operation::Read { remote } if length > 0 => remote,
        Operation::WriteWithImmediate { remote, .. } if length >= LONG => remote,
        Operation::FetchAdd { .. } | Operation::CompareSwap { .. } => {
            return Some(update_at_once(port, process, permit, requester, operation, local));
        }
        _ => return Some(false),
    };
    if requester.outstanding.is_delivered() {
        return Some(port.copy_at_once(process, permit, at, local));
    }
    (length < MUCH || !port.copies(process, permit, at)).then_some(false)
}

/// Changes the word of an atomic operation at once. Returns `false` if a packet has to do that.
fn update_at_once(
    port: &Port,
    process: u32,
    permit: &Permit,
    requester: &Requester,
    operation: &Operation,
    local: LocalBuffer<'_>,
) -> bool {
    let update = || {
        let (remote, update) = WordUpdate::of(operation)?;
        port.update_at_once(process, permit, remote, update)
    };
    let (LocalBuffer::Target(result), true) = (local, requester.outstanding.is_delivered()) else {
        return false;
    };
    let Some(original) = update() else { return false };
    result.fill_bytes(&original.to_ne_bytes());
    true
}

/// Returns the permit for an operation of the rail, and its address at the peer.
fn of_long(requester: &Requester, operation: &Operation) -> Option<(Permit, RemoteAddress)> {
    let permit = *requester.permit.as_deref()?;
    match *operation {
        Operation::Write { remote }
        | Operation::WriteWithImmediate { remote, .. }
        | Operation::Read { remote } => Some((permit, remote)),
        _ => None,
    }
}

/// Returns `true` if the rail may move the data of a request. Data does not overtake that of earlier
/// requests.
pub(super) fn is_long(
    requester: &Requester,
    operation: &Operation,
    length: u64,
    port: &Port,
) -> bool {
    port.is_long(length)
        && requester.outstanding.is_delivered()
        && of_long(requester, operation).is_some()
}
