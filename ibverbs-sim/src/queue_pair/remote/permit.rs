//! Permits: the right of the peer in another process to use the memory of a domain at once.
//!
//! A permit is a key by the rail of the device, for memory of no bytes. It is registered as the queue pair
//! begins to respond, and deregistered once it responds no more, before the first request is flushed:
//! `Port::copy_at_once` needs it open for each copy. Whoever registers one checks the state after that,
//! and whoever changes the state closes the permit after that: so none is left open.

use talpf_primitives::Ordering;

use crate::{
    Access, Operation, QueuePairNumber, RemoteAddress,
    port::{Packet, Permit},
    queue_pair::{QueuePairCore, requester::Requester},
};

/// Bytes from which on the data of a request that has a packet anyway is copied at once.
const LONG: u64 = 512;

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
        let access = right(Access::REMOTE_WRITE, true) | right(Access::REMOTE_READ, reads);
        *permit = port.map_nothing(access);
        self.remote_peer.is_permit_sent.store(false, Ordering::Relaxed);
        // Who ends the responses closes the permit after that.
        if !self.state.responds()
            && let Some(early) = permit.take()
        {
            port.unmap(&early);
        }
    }

    /// Ends the use of memory by the peer. Returns once it touches none. The caller holds no lock.
    pub(crate) fn close_permit(&self) {
        let Some(port) = &self.context.device.port else { return };
        let mut permit = self.permit.lock();
        if let Some(key) = permit.take() {
            port.unmap(&key);
        }
    }
}

/// Returns the permit for an operation whose data can be copied at once, and the address at the
/// peer. Data does not overtake that of earlier requests.
pub(super) fn copies_at_once<'a>(
    requester: &'a Requester,
    operation: &Operation,
    length: u64,
) -> Option<(&'a Permit, RemoteAddress)> {
    let permit = requester.permit.as_deref().filter(|_| requester.outstanding.is_delivered())?;
    match *operation {
        Operation::Write { remote } if length > 0 => Some((permit, remote)),
        Operation::WriteWithImmediate { remote, .. } if length >= LONG => Some((permit, remote)),
        Operation::Read { remote } if length > 0 => Some((permit, remote)),
        _ => None,
    }
}
