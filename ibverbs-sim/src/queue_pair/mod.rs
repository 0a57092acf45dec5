//! Queue pairs: two ends of a reliable connection.
//!
//! A queue pair is created in RESET and goes through INIT (it accepts receives), READY TO RECEIVE
//! (it responds to its peer) and READY TO SEND (it accepts send requests). Any failure moves it to
//! ERROR, where everything outstanding is flushed; from there it can only go to RESET.
//!
//! - `requester`: carries out send requests; runs under the gate (see `send_queue`).
//! - `responder`: the peer's half of a request, run by the requester's thread. The fields it
//!   changes belong to the holder of the *peer's* gate.
//! - `transition`: the state machine; one transition at a time, which waits for the holders of all
//!   gates.
//! - `remote`: the connection to a peer in another process, for both halves; `outstanding`: the
//!   requests under way to it.
//! - `stored_request`: requests in the retry queue.

mod attributes;
mod checked_list;
mod core;
#[cfg(all(test, talpf_loom))]
mod loom_tests;
mod outstanding;
mod post;
mod remote;
mod requester;
mod responder;
mod retry;
mod send_slots;
mod state;
mod stored_request;
mod transition;

use std::{fmt, sync::Arc};

pub(crate) use self::{
    checked_list::{CheckedList, LocalBuffer},
    core::QueuePairCore,
    send_slots::SendSlots,
};
pub use attributes::{Connection, QueuePairAttributes, QueuePairInit};
pub use state::QueuePairState;

use crate::{QueuePairNumber, Result, protection_domain::DomainCore};

/// An end of a reliable connection. Any thread may post. Dropping it destroys the end, discards
/// outstanding requests and leaves the peer without responses.
pub struct QueuePair {
    core: Arc<QueuePairCore>,
}

impl QueuePair {
    pub(crate) fn create(domain: &Arc<DomainCore>, init: &QueuePairInit) -> Result<Self> {
        Ok(Self { core: QueuePairCore::create(domain, init)? })
    }

    /// Returns the number by which peers name this queue pair.
    pub fn number(&self) -> QueuePairNumber {
        self.core.number
    }

    /// Returns the current state; requests of peers may move it to ERROR at any time.
    pub fn state(&self) -> QueuePairState {
        self.core.state.load()
    }

    /// Returns `true` if every send request posted so far has been carried out; its completion may
    /// still have to be polled. Corresponds to `sq_draining` of a verbs query.
    #[inline]
    pub fn is_drained(&self) -> bool {
        // In this order: a request is under way before its gate is free.
        self.core.sends.is_idle() && !self.core.remote_peer.has_requests()
    }

    /// Returns `true` if send requests are under way to a peer in another process. Unless the queue pair fails or
    /// is reset before, a later [`Device::progress`](crate::Device::progress) ends them.
    pub fn awaits_response(&self) -> bool {
        self.core.remote_peer.has_requests()
    }

    /// Returns the most send requests that may be outstanding.
    pub fn max_send_wr(&self) -> u32 {
        self.core.limits.max_send_wr
    }

    /// Returns the most receives that may be outstanding; at least the number that was requested, 0
    /// with a shared queue.
    pub fn max_recv_wr(&self) -> u32 {
        if self.core.shared_receives { 0 } else { self.core.receives.capacity() }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.core.destroy();
    }
}

impl fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePair")
            .field("number", &self.number())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
