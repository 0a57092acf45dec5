//! The link of a run in virtual time.

use std::sync::Arc;

use talpf_runtime::EventSource;

use super::world::World;

/// The link of a world, as the executor of virtual time moves it. Polling tasks of both ends wake
/// with what arrives.
pub(super) struct LinkEvents {
    /// `None` without ranks.
    pub(super) world: Option<Arc<World>>,
}

impl EventSource for LinkEvents {
    fn next_ns(&self) -> Option<u64> {
        self.world.as_ref()?.device.next_on_link_ns()
    }

    fn advance(&self, now_ns: u64) {
        if let Some(world) = &self.world {
            world.device.advance_link_and(now_ns, |from, to| {
                world.wake_poller(from);
                world.wake_poller(to);
            });
        }
    }
}
