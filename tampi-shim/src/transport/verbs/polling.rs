//! The polling task: one task of each rank that makes progress and suspends itself in between.
//!
//! Idle workers poll in its place; while there is none, it polls a few times now and then. After
//! enough polls in vain it asks the peers to ring its doorbell, and sleeps. The README explains why
//! no message is slept through.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use super::Verbs;
use super::deferred::DeferredActions;
use super::sleeper::fence_before_last_poll;
use crate::error::Error;

/// Polls in vain before the task sleeps, with operations under way.
const PATIENCE: u32 = 2_000;
/// Polls in vain before the task sleeps, with no operation under way.
const PATIENCE_WITHOUT_WORK: u32 = 200;
/// Period of checking the timers of a link with faults.
const RETRY_PERIOD: Duration = Duration::from_micros(100);
/// Longest wait for an idle worker, before the task polls itself.
const LATEST: Duration = Duration::from_micros(20);

/// Polling of one rank, by the polling task or by idle workers.
pub(super) struct Poller {
    verbs: Arc<Verbs>,
    /// Approximate number of polls since the last one that found something: several threads may
    /// count.
    in_vain: AtomicU32,
}

/// Next action of the polling task.
enum PollerAction {
    /// Wait until a timer may be due.
    Pause,
    /// Sleep until something happens.
    Sleep,
    End,
}

impl Poller {
    pub(super) fn new(verbs: &Arc<Verbs>) -> Arc<Self> {
        Arc::new(Poller { verbs: Arc::clone(verbs), in_vain: AtomicU32::new(0) })
    }

    /// Runs the polling task until the programs of all ranks have ended: nobody waits then for the
    /// operations still under way.
    pub(super) async fn poll(self: Arc<Self>) {
        let (world, group) = (&self.verbs.world, &self.verbs.state().group);
        loop {
            let this = Arc::clone(&self);
            match group.idle_until(LATEST, move || this.poll_once()).await {
                PollerAction::Pause => group.wait_for(RETRY_PERIOD).await,
                PollerAction::Sleep => {
                    self.in_vain.store(0, Ordering::Relaxed);
                    if let Err(error) = sleep(&self.verbs).await {
                        world.fail(error);
                    }
                }
                PollerAction::End => return,
            }
        }
    }

    /// Makes progress. Returns the next action, or `None` to poll again as soon as a worker is
    /// idle.
    fn poll_once(&self) -> Option<PollerAction> {
        let (world, state) = (&self.verbs.world, self.verbs.state());
        if world.has_timers {
            state.context.advance(state.group.clock().now_ns());
        }
        let before = self.in_vain.load(Ordering::Relaxed);
        let in_vain = if self.verbs.pass() > 0 { 0 } else { before.saturating_add(1) };
        self.in_vain.store(in_vain, Ordering::Relaxed);
        if let Err(error) = state.check_links() {
            world.fail(error);
        }
        let patience = if state.is_quiet() { PATIENCE_WITHOUT_WORK } else { PATIENCE };
        match in_vain < patience {
            _ if state.stop.load(Ordering::SeqCst) => Some(PollerAction::End),
            true => None,
            false if world.has_timers => Some(PollerAction::Pause),
            false => Some(PollerAction::Sleep),
        }
    }
}

/// Sleeps until something happens.
pub(super) async fn sleep(verbs: &Verbs) -> Result<(), Error> {
    let state = verbs.state();
    state.poller.prepare_sleep();
    let found = poll_before_sleep(verbs)? > 0;
    if !found && !state.stop.load(Ordering::SeqCst) {
        let mut notified = pin!(state.channel.notified());
        poll_fn(|cx| {
            let is_woken = !state.poller.register(cx.waker());
            if is_woken || notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            talpf_runtime::note_wait("a message to arrive");
            Poll::Pending
        })
        .await;
    }
    state.poller.end_sleep();
    Ok(())
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
