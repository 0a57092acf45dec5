//! Atomics of remote ranks that travel with their claims.
//!
//! The target carries one out itself, by its queue pair to itself, as soon as a window admits it, and answers with its
//! result. So it takes one message each way, where an atomic that waits for its grant takes two. The origin limits
//! these as its window requests: each waits there for its answer.

use std::sync::{Arc, OnceLock};

use ibverbs_sim::{Operation, Payload, RemoteAddress, SendFlags, SendWorkRequest, WordUpdate};

use super::control_message::ControlMessage;
use super::result_cells::ResultCells;
use super::window_grant::WindowGrant;
use super::{Processes, WindowRequest};
use crate::endpoint::silent;
use crate::error::Error;
use crate::immediate::{EagerArrival, Immediate, Kind};
use crate::peer::LocalPeer;
use crate::window::{Claim, Landing, Outcome, Parked, Post};

/// The words for results of the ranks of a process, each registered with the first atomic for its rank.
pub(super) type ResultCellsOfRanks = Box<[OnceLock<Option<Arc<ResultCells>>>]>;

/// An atomic of a remote rank.
struct EagerAtomic {
    /// The grant that answers in place of the result if this rank has no room for the atomic.
    grant: WindowGrant,
    operation: Operation,
    cells: Option<Arc<ResultCells>>,
}

impl Processes {
    /// Passes an atomic of a remote rank to the windows of this one.
    pub(super) fn take_eager_atomic(
        &self,
        number: u32,
        (request, claim): (WindowRequest, Claim),
        (remote, update): (RemoteAddress, WordUpdate),
    ) {
        let Some(own) = self.peers.local(request.target) else { return };
        let operation = update.operation(remote);
        let (peers, failure) = (self.peers.clone(), Arc::clone(&self.failure));
        let grant = WindowGrant { peers, failure, number, request, claim };
        let atomic = EagerAtomic { grant, operation, cells: self.result_cells_of(own) };
        match self.peers.land(request, claim, true, atomic) {
            Outcome::Posted(_) | Outcome::Parked => own.wake_poller_if_delayed(),
            // A remote origin limits its requests to its credit, so this table always has some.
            Outcome::Refused(atomic) | Outcome::Retry(atomic) => atomic.grant.refuse(),
        }
    }

    /// Returns the words for results of a rank; `None` if the device has no room for them.
    fn result_cells_of(&self, own: &LocalPeer) -> Option<Arc<ResultCells>> {
        let of_rank = self.result_cells.get(self.distribution.index_here(own.rank)?)?;
        let register = || ResultCells::new(&own.endpoint.domain).ok().map(Arc::new);
        of_rank.get_or_init(register).clone()
    }
}

impl EagerAtomic {
    /// Posts the atomic, and the message that counts it. Returns `false`, without any effect, if there is no room.
    fn post(&self) -> bool {
        let WindowGrant { peers, number, request, claim, .. } = &self.grant;
        let (WindowRequest { target, lane, round }, number) = (*request, *number);
        let Some(own) = peers.local(target) else { return false };
        let cell = self.cells.as_ref().and_then(ResultCells::take);
        let (Some(cell), Some(engine)) = (cell, own.engine()) else { return false };
        let entry = [cell.entry()];
        let (peers, source) = (peers.clone(), claim.source);
        let answer = move |result: Result<(), Error>| {
            if let (Ok(()), Some(source)) = (result, peers.remote(source)) {
                source.send(target, ControlMessage::AtomicResult { number, value: cell.value() });
            }
        };
        let wr_id = engine.pending().insert(Box::new(answer));
        let immediate = Immediate::new(Kind::Eager, lane, round).to_bits();
        let arrival = EagerArrival::of_atomic(source);
        let payload = Immediate::payload(round, arrival.to_bits()).to_ne_bytes();
        let (atomic, message) =
            (Payload::Gather(&entry), Operation::SendWithImmediate { immediate });
        let mut requests = [
            SendWorkRequest {
                wr_id,
                flags: SendFlags::SIGNALLED,
                ..silent(self.operation, atomic)
            },
            SendWorkRequest {
                flags: SendFlags::FENCE,
                ..silent(message, Payload::Inline(&payload))
            },
        ];
        let is_posted = own.endpoint.post_all(target, &mut requests).is_ok();
        if !is_posted {
            drop(engine.pending().take(wr_id));
        }
        is_posted
    }

    fn post_or_grant(&self) -> Post {
        if self.post() { Post::All } else { self.grant.grant() }
    }
}

impl Landing for EagerAtomic {
    fn post(&mut self) -> Post {
        self.post_or_grant()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for EagerAtomic {
    fn post(&mut self) -> Post {
        self.post_or_grant()
    }

    fn refuse(self: Box<Self>) {
        self.grant.refuse();
    }
}
