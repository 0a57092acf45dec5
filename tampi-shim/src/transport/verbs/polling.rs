//! The polling task: one a rank, an ordinary task that makes progress and suspends itself in
//! between.
//!
//! Workers that have nothing else to do look in its place; when none has, it looks a few times in a
//! while. After it has looked in vain often enough it tells the peers to ring and sleeps; see the
//! README for why no message is slept through.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use super::Verbs;
use super::aftermath::Aftermath;
use super::sleeper::before_the_last_look;
use crate::error::Error;

/// Passes in vain before the task sleeps, with something under way and without.
const PATIENCE: u32 = 2_000;
const PATIENCE_WITHOUT_WORK: u32 = 200;
/// How often the task looks at the timers of a link with faults.
const RETRY_PERIOD: Duration = Duration::from_micros(100);
/// How long the task waits for an idle worker before it looks all the same.
const LATEST: Duration = Duration::from_micros(20);

/// What the polling task does, and idle workers in its place.
pub(super) struct Poller {
    verbs: Arc<Verbs>,
    /// Passes in vain since the last one that was not, about: several threads may count.
    in_vain: AtomicU32,
}

/// What the task does next.
enum Next {
    /// Waits until a timer may be due.
    Pause,
    /// Sleeps until something happens.
    Sleep,
    End,
}

impl Poller {
    pub(super) fn new(verbs: &Arc<Verbs>) -> Arc<Self> {
        Arc::new(Poller { verbs: Arc::clone(verbs), in_vain: AtomicU32::new(0) })
    }

    /// The body of the polling task. It ends when the programs of all ranks have: nobody waits then
    /// for what is still under way.
    pub(super) async fn poll(self: Arc<Self>) {
        let (world, group) = (&self.verbs.world, &self.verbs.state().group);
        loop {
            let this = Arc::clone(&self);
            match group.idle_until(LATEST, move || this.turn()).await {
                Next::Pause => group.wait_for(RETRY_PERIOD).await,
                Next::Sleep => {
                    self.in_vain.store(0, Ordering::Relaxed);
                    if let Err(error) = sleep(&self.verbs).await {
                        world.fail(error);
                    }
                }
                Next::End => return,
            }
        }
    }

    /// Makes progress. What to do next, but to look again as soon as a worker has nothing else to do.
    fn turn(&self) -> Option<Next> {
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
            _ if state.stop.load(Ordering::SeqCst) => Some(Next::End),
            true => None,
            false if world.has_timers => Some(Next::Pause),
            false => Some(Next::Sleep),
        }
    }
}

/// Sleeps until something happens.
pub(super) async fn sleep(verbs: &Verbs) -> Result<(), Error> {
    let state = verbs.state();
    state.poller.falls_asleep();
    let found = look_before_sleep(verbs)? > 0;
    if !found && !state.stop.load(Ordering::SeqCst) {
        let mut notified = pin!(state.channel.notified());
        poll_fn(|cx| {
            let is_woken = !state.poller.waits(cx.waker());
            if is_woken || notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            talpf_runtime::note_wait("a message to arrive");
            Poll::Pending
        })
        .await;
    }
    state.poller.is_up();
    Ok(())
}

/// Writes what was collected, tells the peers and arms the channel, and then looks once more.
///
/// From the telling on it holds the lock of the inbox: a task that took a bell in between would tell
/// the peers that this rank is awake.
fn look_before_sleep(verbs: &Verbs) -> Result<usize, Error> {
    let state = verbs.state();
    let mut after = Aftermath::default();
    if state.is_collecting() {
        state.write_collected(&mut after);
    }
    let mut inbox = state.inbox.lock();
    let ready = state.tell_asleep(&mut inbox, true).and_then(|()| {
        state.arm()?;
        before_the_last_look();
        state.check_links()
    });
    if let Err(error) = ready {
        drop(inbox);
        verbs.settle(&mut after);
        return Err(error);
    }
    Ok(verbs.progress_from(inbox, true, after))
}
