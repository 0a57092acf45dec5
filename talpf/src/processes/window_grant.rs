//! Operations of ranks elsewhere, as the windows of this one see them: something to let go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ControlMessage, Processes, WindowRequest};
use crate::error::Error;
use crate::window::{Claim, Landing, Parked, Post};
use crate::world::World;

/// An operation that a rank elsewhere has asked for.
pub(super) struct WindowGrant {
    pub(super) world: Arc<World>,
    pub(super) processes: Arc<Processes>,
    pub(super) number: u32,
    pub(super) request: WindowRequest,
    pub(super) claim: Claim,
}

impl WindowGrant {
    /// Lets it go: from now on it may land at any time.
    pub(super) fn go(&self) -> Post {
        let source = self.claim.source;
        self.processes.peer(source).granted.fetch_add(1, Ordering::AcqRel);
        self.processes.send(source, ControlMessage::WindowGrant { number: self.number });
        Post::All
    }

    /// Says so to both ranks (R7), unless the run has failed and both know.
    pub(super) fn refuse(&self) {
        let WindowGrant { world, processes, number, request, claim } = self;
        if world.rank(request.target).has_failed() {
            return;
        }
        // First, so that the origin can say which operation of its own it was.
        processes.send(claim.source, ControlMessage::WindowRefusal { number: *number });
        world.fail(
            &[request.target],
            &Error::outside_window(claim, request.target, request.lane, request.round),
        );
    }
}

impl Landing for WindowGrant {
    fn post(&mut self) -> Post {
        self.go()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for WindowGrant {
    fn post(&mut self) -> Post {
        self.go()
    }

    fn refuse(self: Box<Self>) {
        WindowGrant::refuse(&self);
    }
}
