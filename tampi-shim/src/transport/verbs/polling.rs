//! The polling task: a [`Service`] of each rank that makes progress. It sleeps until a peer rings
//! its doorbell, and the README explains why no message is slept through. In virtual time the link
//! wakes it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talpf_runtime::EventSource;
use talpf_runtime::service::{Demand, Polled, Service, Sleeper};

use super::Verbs;
use super::deferred::DeferredActions;
use super::sleep::fence_before_last_poll;
use super::world::World;
use crate::error::Error;
use crate::transport::Transport;

/// Polling of one rank, by the polling task or by idle workers. It ends when the programs of all
/// ranks have ended: nobody waits then for the operations still under way.
pub(super) struct Poller(pub(super) Arc<Verbs>);

impl Service for Poller {
    const EVENT: &'static str = "a message to arrive";

    fn poll(&self) -> Option<Polled> {
        let (world, state) = (&self.0.world, self.0.state());
        if world.has_timers {
            state.context.advance(state.group.clock().now_ns());
        }
        let found = self.0.pass() > 0;
        if let Err(error) = state.check_links() {
            world.fail(error);
        }
        if state.stop.load(Ordering::SeqCst) {
            return None;
        }
        let demand = if state.is_quiet() { Demand::Nothing } else { Demand::Polls };
        // No doorbell announces the timers of a link with faults.
        Some(Polled { found, demand, announced: !world.has_timers })
    }

    fn sleeper(&self) -> &Sleeper {
        &self.0.state().poller
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn prepare_sleep(&self) -> bool {
        if self.0.world.is_distant {
            // The link wakes the task with whatever comes, so peers need not know that it sleeps.
            let state = self.0.state();
            let found = self.0.try_progress(self.0.flush_batches());
            return found == 0 && !state.is_batching() && !state.stop.load(Ordering::SeqCst);
        }
        let found = poll_before_sleep(&self.0).unwrap_or_else(|error| {
            self.0.world.fail(error);
            1
        });
        found == 0 && !self.0.state().stop.load(Ordering::SeqCst)
    }

    fn event(&self) -> impl Future<Output = ()> + Send {
        self.0.state().channel.notified()
    }
}

/// Writes the batches, reports to the peers that this rank sleeps, arms the channel, and then polls
/// once more.
///
/// It holds the lock of the inbox from the report on: a task that took a doorbell in between would
/// report that the rank is awake.
fn poll_before_sleep(verbs: &Verbs) -> Result<usize, Error> {
    let state = verbs.state();
    let mut deferred = DeferredActions::default();
    if state.is_batching() {
        state.write_batch(&mut deferred);
    }
    let mut inbox = state.inbox.lock();
    let ready = state.report_asleep(&mut inbox, true).and_then(|()| {
        state.arm()?;
        fence_before_last_poll();
        state.check_links()
    });
    if let Err(error) = ready {
        drop(inbox);
        verbs.run_deferred(&mut deferred);
        return Err(error);
    }
    Ok(verbs.progress_from(inbox, true, deferred))
}

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
