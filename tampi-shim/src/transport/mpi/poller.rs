//! The polling task: tests the operations under way as long as there are any. Idle workers poll in
//! its place.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use talpf_primitives::{Mutex, TryLock};
use talpf_runtime::Group;

use super::period::{Pace, Pause};
use super::transport::MpiTransport;

/// Longest wait for an idle worker, before the task polls itself.
const LATEST: Duration = Duration::from_micros(20);

/// Tests of one poll, if they are in vain: a few microseconds.
const TESTS: usize = 64;

/// Sleep state of the polling task, its waker, and the request to end.
#[derive(Default)]
pub(super) struct Sleeper {
    asleep: AtomicBool,
    stopped: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Wakes the task if it sleeps.
    ///
    /// **Cost**: a load if the task does not sleep.
    pub(super) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            // First, for a task that is about to register its waker.
            self.asleep.store(false, Ordering::SeqCst);
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Lets the task end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn stops(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

/// Polling of this process, by the polling task or by idle workers.
pub(super) struct Poller {
    transport: Arc<MpiTransport>,
    /// `true` if there are more workers than cores on this machine.
    oversubscribed: bool,
    state: TryLock<PollState>,
}

/// Next action of the polling task.
enum PollerAction {
    Pause(Pause),
    End,
}

/// State kept from one poll to the next.
struct PollState {
    pace: Pace,
    /// Number of operations started before the last poll.
    started: u64,
}

impl Poller {
    pub(super) fn new(transport: Arc<MpiTransport>, pace: Pace, oversubscribed: bool) -> Arc<Self> {
        Arc::new(Poller {
            transport,
            oversubscribed,
            state: TryLock::new(PollState { pace, started: 0 }),
        })
    }

    /// Runs the polling task.
    pub(super) async fn poll(self: Arc<Self>, group: Group) {
        loop {
            let this = Arc::clone(&self);
            match from_outside(group.idle_until(LATEST, move || this.poll_once())).await {
                PollerAction::Pause(Pause::For(period)) => {
                    from_outside(group.wait_for(period)).await
                }
                PollerAction::Pause(Pause::UntilStarted) => sleep(&self.transport).await,
                PollerAction::End => return,
            }
        }
    }

    /// Ends complete operations. Returns the next action, or `None` to poll again as soon as a
    /// worker is idle.
    fn poll_once(&self) -> Option<PollerAction> {
        if self.transport.sleeper.stops() {
            return Some(PollerAction::End);
        }
        // Otherwise another worker polls.
        let mut state = self.state.try_lock()?;
        let PollState { pace, started } = &mut *state;
        let before = std::mem::replace(started, self.transport.started());
        let news = *started - before;
        // A poll costs more than a test.
        let mut ended = self.transport.advance_while_spare(TESTS);
        if ended == 0 && self.transport.poll_failure_broadcast() {
            // Failed operations end before the pace finds nothing under way.
            ended += self.transport.advance(|| false);
        }
        let pause = pace.next(ended + news as usize, self.transport.is_busy());
        if pause.is_none() && self.oversubscribed {
            std::thread::yield_now();
        }
        pause.map(PollerAction::Pause)
    }
}

/// Waits on behalf of tasks that another process may wake, so that this process does not count as
/// hanging.
async fn from_outside<R>(wait: impl Future<Output = R>) -> R {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        let polled = wait.as_mut().poll(cx);
        talpf_runtime::note_outside();
        polled
    })
    .await
}

/// Sleeps until an operation is started.
async fn sleep(transport: &MpiTransport) {
    let sleeper = &transport.sleeper;
    sleeper.asleep.store(true, Ordering::SeqCst);
    poll_fn(|cx| {
        *sleeper.waker.lock() = Some(cx.waker().clone());
        let woken = !sleeper.asleep.load(Ordering::SeqCst);
        if woken || sleeper.stops() || transport.is_busy() {
            return Poll::Ready(());
        }
        talpf_runtime::note_wait("an operation");
        Poll::Pending
    })
    .await;
    sleeper.asleep.store(false, Ordering::SeqCst);
    sleeper.waker.lock().take();
}
