//! Puts of remote ranks whose bytes travel with the claim.
//!
//! The target writes them itself, by its queue pair to itself, as soon as a window admits them:
//! there is no grant, and no answer. So the source counts how many have not landed, as far as it
//! knows. Once these are as many as its credit allows, others wait for a report; if none comes for
//! long, they request windows as other operations do (`eager_counts.rs`). The target reports the
//! number that has landed with its own eager puts, and by a message of its own at every half of what
//! the credit allows.

use std::sync::Arc;

use ibverbs_sim::{Operation, Payload, RemoteAddress, SendWorkRequest};
use smallvec::SmallVec;

use super::WindowRequest;
use super::control_message::ControlMessage;
use super::put_list::MOST_PUTS;
use super::window_grant::report_refusal;
use crate::endpoint::{FEWEST_SENDS, SIGNAL_EVERY, silent};
use crate::failure::RunFailure;
use crate::immediate::{EagerArrival, Immediate, Kind};
use crate::numbers::Rank;
use crate::peer::{LocalPeer, Peers};
use crate::window::{Claim, Landing, Parked, Post};

/// Requests of puts that need no memory from the heap.
const USUAL_REQUESTS: usize = 8;
/// Most requests of puts that land together.
const MOST_REQUESTS: u32 = MOST_PUTS as u32 + 1;
const _: () = assert!(MOST_REQUESTS + 2 * SIGNAL_EVERY <= FEWEST_SENDS, "there is room for them");

/// A put of a remote rank that waits here, with its bytes.
pub(super) struct EagerPut {
    pub(super) peers: Peers,
    pub(super) failure: Arc<RunFailure>,
    pub(super) request: WindowRequest,
    pub(super) claim: Claim,
    pub(super) remote: RemoteAddress,
    pub(super) bytes: SmallVec<[u8; 64]>,
}

/// Posts the bytes of so many `puts` of one round, in writes from the target of a request, `own`, to
/// itself, and the message that counts the puts: all or nothing.
pub(super) fn post_writes<'a>(
    (own, failure): (&LocalPeer, &RunFailure),
    WindowRequest { target, lane, round }: WindowRequest,
    (source, puts): (Rank, u32),
    writes: impl Iterator<Item = (RemoteAddress, &'a [u8])>,
) -> Post {
    let immediate = Immediate::new(Kind::Eager, lane, round).to_bits();
    let arrival = EagerArrival { source, puts };
    let payload = Immediate::payload(round, arrival.to_bits()).to_ne_bytes();
    let writes = writes.map(|(remote, bytes)| (Operation::Write { remote }, bytes));
    let message = (Operation::SendWithImmediate { immediate }, &payload[..]);
    let request = |(operation, bytes)| silent(operation, Payload::Inline(bytes));
    let mut requests = SmallVec::<[SendWorkRequest<'_>; USUAL_REQUESTS]>::new();
    requests.extend(writes.chain([message]).map(request));
    match own.endpoint.post_all(target, &mut requests) {
        Ok(()) => Post::All,
        Err(error) => own.not_posted(failure.of(target), error),
    }
}

impl EagerPut {
    /// Reports the refusal to both ranks (R7).
    pub(super) fn refuse(&self) {
        let EagerPut { peers, failure, request, claim, .. } = self;
        let refusal = ControlMessage::PutRefusal { request: *request, claim: *claim };
        report_refusal(peers, failure, request, claim, refusal);
    }
}

impl Landing for EagerPut {
    fn post(&mut self) -> Post {
        Parked::post(self)
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for EagerPut {
    fn post(&mut self) -> Post {
        let Some(own) = self.peers.local(self.request.target) else { return Post::All };
        let writes = [(self.remote, &*self.bytes)].into_iter();
        post_writes((own, &self.failure), self.request, (self.claim.source, 1), writes)
    }

    fn refuse(self: Box<Self>) {
        EagerPut::refuse(&self);
    }
}
