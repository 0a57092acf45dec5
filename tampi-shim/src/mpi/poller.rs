//! The polling task: tests what is under way for as long as there is anything. Workers that have
//! nothing else to do look in its place.

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

/// How long the task waits for an idle worker before it looks all the same.
const LATEST: Duration = Duration::from_micros(20);

/// Tests in vain of a turn: a few microseconds.
const LOOKS: usize = 64;

/// Wakes a polling task that sleeps, and tells it to end.
#[derive(Default)]
pub(super) struct Sleeper {
    asleep: AtomicBool,
    stopped: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// **Cost**: a load when the task does not sleep.
    pub(super) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            // First, for a task that is about to leave its waker.
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

/// What the polling task does, and idle workers in its place.
pub(super) struct Poller {
    transport: Arc<MpiTransport>,
    /// Whether there are more workers than cores on this machine.
    crowded: bool,
    turns: TryLock<Turns>,
}

/// What the task does next.
enum Next {
    Pause(Pause),
    End,
}

/// What is known of the turns so far.
struct Turns {
    pace: Pace,
    /// Operations that were started before the last one.
    started: u64,
}

impl Poller {
    pub(super) fn new(transport: Arc<MpiTransport>, pace: Pace, crowded: bool) -> Arc<Self> {
        Arc::new(Poller { transport, crowded, turns: TryLock::new(Turns { pace, started: 0 }) })
    }

    /// The body of the polling task.
    ///
    /// Where only home may call MPI, it stands for home among the tasks.
    pub(super) async fn poll(self: Arc<Self>, group: Group) {
        let sleeper = &self.transport.sleeper;
        if !self.transport.library.may_call_anywhere() {
            return stand_for_home(sleeper).await;
        }
        loop {
            let this = Arc::clone(&self);
            match from_outside(group.idle_until(LATEST, move || this.turn())).await {
                Next::Pause(Pause::For(period)) => from_outside(group.wait_for(period)).await,
                Next::Pause(Pause::UntilStarted) => sleep(&self.transport).await,
                Next::End => return,
            }
        }
    }

    /// Ends what is complete. What to do next, but to look again as soon as a worker has nothing
    /// else to do.
    fn turn(&self) -> Option<Next> {
        if self.transport.sleeper.stops() {
            return Some(Next::End);
        }
        // Else another worker does.
        let mut turns = self.turns.try_lock()?;
        let Turns { pace, started } = &mut *turns;
        let before = std::mem::replace(started, self.transport.started());
        let news = *started - before;
        // A turn costs more than a test.
        let mut ended = self.transport.advance_while_spare(LOOKS);
        if ended == 0 && self.transport.heed_alarm() {
            // What has failed ends, before there is nothing to do.
            ended += self.transport.advance(|| false);
        }
        let pause = pace.next(ended + news as usize, self.transport.is_busy());
        if pause.is_none() && self.crowded {
            std::thread::yield_now();
        }
        pause.map(Next::Pause)
    }
}

/// Sleeps until the run ends. A suspended task that says nothing may be woken from outside, and so
/// may those that wait for home: they do not count as hanging.
async fn stand_for_home(sleeper: &Sleeper) {
    poll_fn(|cx| {
        *sleeper.waker.lock() = Some(cx.waker().clone());
        sleeper.asleep.store(true, Ordering::SeqCst);
        if sleeper.stops() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Waits on behalf of tasks that another process may let go on, so that this one does not count as
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

/// Sleeps until something is started.
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
