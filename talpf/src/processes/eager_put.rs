//! Puts of remote ranks whose bytes travel with the claim.
//!
//! The target writes them itself, by its queue pair to itself, as soon as a window admits them:
//! there is no grant, and no answer. So the source counts how many have not landed, as far as it
//! knows. Once these are as many as its credit allows, others wait for a report; if none comes for
//! long, they request windows as other operations do (`eager_counts.rs`). The target reports the
//! number that has landed with its own eager puts, and by a message of its own at every half of what
//! the credit allows.

use std::sync::Arc;

use ibverbs_sim::{Operation, Payload, PostError, RemoteAddress};
use smallvec::SmallVec;

use super::WindowRequest;
use super::control_message::ControlMessage;
use super::window_grant::report_refusal;
use crate::endpoint::Endpoint;
use crate::failure::RunFailure;
use crate::immediate::{EagerArrival, Immediate, Kind};
use crate::peer::Peers;
use crate::window::{Claim, Landing, Parked, Post};

/// A put of a remote rank, with its bytes `B`.
pub(super) struct EagerPut<B> {
    pub(super) peers: Peers,
    pub(super) failure: Arc<RunFailure>,
    pub(super) request: WindowRequest,
    pub(super) claim: Claim,
    pub(super) remote: RemoteAddress,
    pub(super) bytes: B,
    /// Set once the bytes were posted. Then the message follows that counts the put, with this
    /// payload.
    pub(super) posted: Option<u32>,
}

/// A put that waits here, with a copy of its bytes.
pub(super) type OwnedPut = EagerPut<SmallVec<[u8; 64]>>;

/// Posts the message that counts puts, from the target of a request to itself. `arrival` are the bits
/// of an [`EagerArrival`].
pub(super) fn post_arrival(
    endpoint: &Endpoint,
    request: WindowRequest,
    arrival: u32,
) -> Result<(), PostError> {
    let WindowRequest { target, lane, round } = request;
    let immediate = Immediate::new(Kind::Eager, lane, round).to_bits();
    let payload = Immediate::payload(round, arrival).to_ne_bytes();
    endpoint.post_inline(target, Operation::SendWithImmediate { immediate }, &payload)
}

impl<B: AsRef<[u8]>> EagerPut<B> {
    /// Writes the bytes, and sends the message that counts the put.
    pub(super) fn write(&mut self) -> Post {
        let (here, source) = (self.request.target, self.claim.source);
        let (Some(own), Some(peer)) = (self.peers.local(here), self.peers.remote(source)) else {
            return Post::All;
        };
        let endpoint = &own.endpoint;
        let payload = match self.posted {
            Some(payload) => payload,
            None => {
                let bytes = Payload::Inline(self.bytes.as_ref());
                match endpoint.post_silent(here, Operation::Write { remote: self.remote }, bytes) {
                    Ok(()) => {}
                    Err(error) => return own.not_posted(self.failure.of(here), error),
                }
                // Another thread may work on the queue pair.
                let has_landed = endpoint.is_drained(here);
                if !has_landed {
                    peer.count_granted(here);
                }
                let arrival = EagerArrival { source, puts: 1, was_granted: !has_landed };
                *self.posted.insert(arrival.to_bits())
            }
        };
        match post_arrival(endpoint, self.request, payload) {
            Ok(()) => Post::All,
            Err(error) => match own.not_posted(self.failure.of(here), error) {
                Post::Nothing => Post::Some,
                post => post,
            },
        }
    }

    /// Reports the refusal to both ranks (R7).
    pub(super) fn refuse(&self) {
        let EagerPut { peers, failure, request, claim, .. } = self;
        let refusal = ControlMessage::PutRefusal { request: *request, claim: *claim };
        report_refusal(peers, failure, request, claim, refusal);
    }
}

impl EagerPut<&[u8]> {
    /// Returns the put with a copy of its bytes.
    pub(super) fn into_owned(self) -> OwnedPut {
        let EagerPut { peers, failure, request, claim, remote, bytes, posted } = self;
        let bytes = SmallVec::from_slice(bytes);
        EagerPut { peers, failure, request, claim, remote, bytes, posted }
    }
}

impl Landing for EagerPut<&[u8]> {
    fn post(&mut self) -> Post {
        self.write()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self.into_owned())
    }
}

impl Landing for OwnedPut {
    fn post(&mut self) -> Post {
        self.write()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for OwnedPut {
    fn post(&mut self) -> Post {
        self.write()
    }

    fn refuse(self: Box<Self>) {
        EagerPut::refuse(&self);
    }
}
