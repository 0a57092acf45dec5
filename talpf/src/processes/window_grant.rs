//! Operations of remote ranks, to which the windows of this rank answer with a grant or a refusal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ControlMessage, Processes, WindowRequest};
use crate::error::Error;
use crate::window::{Claim, Landing, Parked, Post};
use crate::world::World;

/// The answer to the window request of a remote rank.
pub(super) struct WindowGrant {
    pub(super) world: Arc<World>,
    pub(super) processes: Arc<Processes>,
    pub(super) number: u32,
    pub(super) request: WindowRequest,
    pub(super) claim: Claim,
}

impl WindowGrant {
    /// Grants the operation, which may land at any time from now on.
    pub(super) fn grant(&self) -> Post {
        let source = self.claim.source;
        self.processes.peer(source).granted.fetch_add(1, Ordering::AcqRel);
        self.processes.send(source, ControlMessage::WindowGrant { number: self.number });
        Post::All
    }

    /// Reports the refusal to both ranks (R7), unless the run has failed and both know.
    pub(super) fn refuse(&self) {
        let WindowGrant { world, processes, number, request, claim } = self;
        if world.rank(request.target).has_failed() {
            return;
        }
        // Before the failure, so that the origin can name its operation.
        processes.send(claim.source, ControlMessage::WindowRefusal { number: *number });
        world.fail(
            &[request.target],
            &Error::outside_window(claim, request.target, request.lane, request.round),
        );
    }
}

impl Landing for WindowGrant {
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
