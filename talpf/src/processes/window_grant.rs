//! Operations of remote ranks, to which the windows of this rank answer with a grant or a refusal.

use std::sync::Arc;

use super::WindowRequest;
use super::control_message::ControlMessage;
use crate::error::Error;
use crate::failure::RunFailure;
use crate::peer::Peers;
use crate::window::{Claim, Landing, Parked, Post};

/// The answer to the window request of a remote rank.
pub(super) struct WindowGrant {
    pub(super) peers: Peers,
    pub(super) failure: Arc<RunFailure>,
    pub(super) number: u32,
    pub(super) request: WindowRequest,
    pub(super) claim: Claim,
}

impl WindowGrant {
    /// Grants the operation, which may land at any time from now on.
    pub(super) fn grant(&self) -> Post {
        if let Some(source) = self.peers.remote(self.claim.source) {
            source.grant(self.request.target, self.number);
        }
        Post::All
    }

    /// Reports the refusal to both ranks (R7).
    pub(super) fn refuse(&self) {
        let WindowGrant { peers, failure, number, request, claim } = self;
        let refusal = ControlMessage::WindowRefusal { number: *number };
        report_refusal(peers, failure, request, claim, refusal);
    }
}

/// Sends the refusal of an operation to its origin, and fails the run, unless it has failed and both
/// ranks know.
pub(super) fn report_refusal(
    peers: &Peers,
    failure: &RunFailure,
    request: &WindowRequest,
    claim: &Claim,
    refusal: ControlMessage<'_>,
) {
    if failure.each().all(|failure| failure.has_failed()) {
        return;
    }
    let WindowRequest { target, lane, round } = *request;
    let error = Error::outside_window(claim, target, lane, round);
    // The failure of the origin may come back before this rank has failed.
    failure.of(target).set_error(error.clone());
    // Before the failure, which each pass of the target sends on once it begins, so that the origin can
    // name its operation.
    if let Some(source) = peers.remote(claim.source) {
        source.send(target, refusal);
    }
    failure.fail(&[target], &error);
}

impl Landing for WindowGrant {
    fn is_request(&self) -> bool {
        true
    }

    fn post(&mut self) -> Post {
        self.grant()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for WindowGrant {
    fn post(&mut self) -> Post {
        self.grant()
    }

    fn refuse(self: Box<Self>) {
        WindowGrant::refuse(&self);
    }
}
