//! Operations of ranks elsewhere, as the windows of this one see them: something to let go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Ask, Letter, Processes};
use crate::error::Error;
use crate::window::{Claim, Landing, Parked, Post};
use crate::world::World;

/// An operation that a rank elsewhere has asked for.
pub(super) struct Grant {
    pub(super) world: Arc<World>,
    pub(super) processes: Arc<Processes>,
    pub(super) number: u32,
    pub(super) ask: Ask,
    pub(super) claim: Claim,
}

impl Grant {
    /// Lets it go: from now on it may land at any time.
    pub(super) fn go(&self) -> Post {
        let source = self.claim.source;
        self.processes.peer(source).granted.fetch_add(1, Ordering::AcqRel);
        self.processes.tell(source, Letter::Go { number: self.number });
        Post::All
    }

    /// Says so to both ranks (R7), unless the run has failed and both know.
    pub(super) fn refuse(&self) {
        let Grant { world, processes, number, ask, claim } = self;
        if world.rank(ask.target).has_failed() {
            return;
        }
        // First, so that the origin can say which operation of its own it was.
        processes.tell(claim.source, Letter::Refused { number: *number });
        world.fail(&[ask.target], &Error::outside_window(claim, ask.target, ask.lane, ask.round));
    }
}

impl Landing for Grant {
    fn post(&mut self) -> Post {
        self.go()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for Grant {
    fn post(&mut self) -> Post {
        self.go()
    }

    fn refuse(self: Box<Self>) {
        Grant::refuse(&self);
    }
}
