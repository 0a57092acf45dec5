//! The polling task: tests what is under way for as long as there is anything.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use talpf_runtime::Group;

use super::period::{Next, Pace};
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

/// The body of the polling task. `crowded`: there are more workers than cores on this machine.
///
/// Where only home may call MPI, it stands for home among the tasks.
pub(super) async fn poll(
    transport: Arc<MpiTransport>,
    group: Group,
    mut pace: Pace,
    crowded: bool,
) {
    if !transport.library.may_call_anywhere() {
        return stand_for_home(&transport.sleeper).await;
    }
    let mut started = 0;
    while !transport.sleeper.stops() {
        let before = std::mem::replace(&mut started, transport.started());
        // A turn of this task costs more than a test.
        let mut ended = transport.advance_while_spare(LOOKS);
        if ended == 0 && transport.heed_alarm() {
            // What has failed ends, before there is nothing to do.
            ended += transport.advance(|| false);
        }
        let news = ended + (started - before) as usize;
        match pace.next(news, transport.is_busy()) {
            Next::Started => sleep(&transport).await,
            Next::Soon => {
                if crowded {
                    std::thread::yield_now();
                }
                from_outside(group.idle(LATEST)).await;
            }
            Next::After(period) => from_outside(group.wait_for(period)).await,
        }
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
async fn from_outside(wait: impl Future<Output = ()>) {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        let polled = wait.as_mut().poll(cx);
        talpf_runtime::note_outside();
        polled
    })
    .await;
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
