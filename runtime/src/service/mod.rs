//! Services: tasks that poll for what happens outside all tasks.
//!
//! A [`Service`] says how to poll once, what it waits for and what to sleep on; [`serve`] is the
//! body of its task. Idle workers poll in place of the task; while none is idle, the task polls now
//! and then. A service that finds nothing polls on for a time, its patience (`timing.rs`), because
//! what it waits for often comes sooner than a thread wakes up. After that it
//!
//! - sleeps, if whatever it waits for is announced, by its event or by a call of [`Sleeper::wake`],
//! - or naps, for longer and longer, with a poll after each nap.
//!
//! On oversubscribed cores it yields its core after every empty poll. The README beside this
//! file says why nothing is slept through.
//!
//! Several threads may poll for one service at the same time: the task, when it is woken late, and
//! an idle worker. Only the task sleeps.

mod backoff;
mod empty_polls;
mod sleeper;
mod spin;
mod timing;

pub use self::backoff::{Backoff, Demand, Pace, Polled};
pub use self::sleeper::Sleeper;
pub use self::spin::poll_while_spare;
pub use self::timing::{
    PATIENCE, PATIENCE_BEFORE_NAPS, PATIENCE_OVERSUBSCRIBED, SPARE_POLLS_BESIDE_TASKS,
};

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use talpf_primitives::yield_now;

use self::backoff::Step;
use self::timing::{LONGEST_WAIT, PERIOD_UNANNOUNCED};
use crate::group::Group;
use crate::record::{note_outside, note_wait};

/// Something that is polled for, on behalf of tasks that wait.
pub trait Service: Send + Sync + 'static {
    /// Name of the event that the service sleeps on, for reports of hangs.
    const EVENT: &'static str;
    /// `true` if other processes may wake tasks that wait for the service, which then does not count
    /// as hanging while it polls.
    const SERVES_OTHERS: bool = false;

    /// Polls once. Returns `None` if the service has ended.
    fn poll(&self) -> Option<Polled>;

    /// Returns the state of the task's sleep, by which others wake it.
    fn sleeper(&self) -> &Sleeper;

    /// Returns `true` if other threads or processes need the core between two polls.
    fn is_oversubscribed(&self) -> bool {
        false
    }

    /// Returns `true` if whatever is not announced follows from a task or from an event of virtual
    /// time, so that polls before the next one of these find nothing.
    fn follows_others(&self) -> bool {
        false
    }

    /// Sends what later polls would send. Called before a nap.
    fn flush(&self) {}

    /// Arms the event, sends what later polls would send, and then polls for the last time. Returns
    /// `true` if the task may sleep. Called after the sleep was announced.
    fn prepare_sleep(&self) -> bool;

    /// Returns a future that completes with the event, as long as that is armed. Without an event,
    /// only [`Sleeper::wake`] ends a sleep.
    fn event(&self) -> impl Future<Output = ()> + Send {
        pending()
    }
}

/// A service with the state of its back-off, for the task and the workers that poll.
struct Served<S> {
    service: S,
    group: Group,
    backoff: Backoff,
}

/// Runs a service until it ends. To be spawned by [`Group::spawn_service`].
///
/// In virtual time it sleeps on its event, and polls at the first multiple of the period after that.
pub async fn serve<S: Service>(group: Group, service: S, pace: Pace) {
    if group.is_virtual() {
        return serve_in_virtual_time(&group, &service, pace).await;
    }
    let served = Arc::new(Served { service, group, backoff: Backoff::new(pace) });
    let Served { service, group, backoff } = &*served;
    loop {
        let polling = Arc::clone(&served);
        let step = group.idle_until(LONGEST_WAIT, move || polling.poll());
        match noted::<S, _>(step).await {
            Step::Pause(period) => noted::<S, _>(group.wait_for(period)).await,
            Step::Nap(period) => {
                service.flush();
                noted::<S, _>(group.wait_for(period)).await;
            }
            Step::Sleep => {
                backoff.reset();
                sleep(service).await;
            }
            Step::End => return,
        }
    }
}

/// Runs a service in virtual time, with a period and without an event a period while nothing
/// happens: the task sleeps on its event, and polls at the first multiple of the period after that;
/// at once with an adaptive pace. What is not announced it polls for, after whatever may have caused
/// it or else every period, of [`PERIOD_UNANNOUNCED`] at least.
async fn serve_in_virtual_time<S: Service>(group: &Group, service: &S, pace: Pace) {
    let period = match pace {
        Pace::Adaptive => Duration::ZERO,
        Pace::Naps { most, .. } => most,
    };
    while let Some(polled) = service.poll() {
        if polled.found {
            group.note_change();
            continue;
        }
        if polled.announced {
            sleep(service).await;
            noted::<S, _>(until_multiple(group, period, 0)).await;
            continue;
        }
        service.flush();
        let period = period.max(PERIOD_UNANNOUNCED);
        if service.follows_others() {
            let polled_ns = group.clock().now_ns();
            sleep_until_change(group, service).await;
            noted::<S, _>(until_multiple(group, period, polled_ns + 1)).await;
        } else {
            noted::<S, _>(group.wait_for(period)).await;
        }
    }
}

/// Waits until the time is a multiple of `period`, and at least `least_ns`.
async fn until_multiple(group: &Group, period: Duration, least_ns: u64) {
    let period_ns = period.as_nanos() as u64;
    if period_ns > 0 {
        let now_ns = group.clock().now_ns();
        let until_ns = now_ns.max(least_ns).next_multiple_of(period_ns);
        group.wait_for(Duration::from_nanos(until_ns - now_ns)).await;
    }
}

/// Sleeps, in virtual time, until a wake or a change: a task or an event outside all services.
async fn sleep_until_change<S: Service>(group: &Group, service: &S) {
    let sleeper = service.sleeper();
    sleeper.announce();
    woken_or::<S>(sleeper, group.changed()).await;
    sleeper.end();
}

impl<S: Service> Served<S> {
    /// Polls once. Returns the next step of the task; `None` to poll again as soon as a worker is
    /// idle.
    fn poll(&self) -> Option<Step> {
        let Some(polled) = self.service.poll() else {
            return Some(Step::End);
        };
        let yields = self.service.is_oversubscribed();
        let step = self.backoff.next(polled, yields, || self.group.clock().now_ns());
        if yields && step.is_none() && !polled.found {
            yield_now();
        }
        step
    }
}

/// Waits as `wait` does. Notes that the service may be woken from outside this process, if so.
async fn noted<S: Service, R>(wait: impl Future<Output = R>) -> R {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        let polled = wait.as_mut().poll(cx);
        if S::SERVES_OTHERS {
            note_outside();
        }
        polled
    })
    .await
}

/// Sleeps until the event or a wake, unless the last poll before finds something.
pub async fn sleep<S: Service>(service: &S) {
    let sleeper = service.sleeper();
    sleeper.announce();
    if service.prepare_sleep() {
        woken_or::<S>(sleeper, service.event()).await;
    }
    sleeper.end();
}

/// Waits for a wake of a service that has announced its sleep, or for the end of `event`.
async fn woken_or<S: Service>(sleeper: &Sleeper, event: impl Future<Output = ()>) {
    let mut event = pin!(event);
    poll_fn(|cx| {
        if !sleeper.register(cx.waker()) || event.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        note_wait(S::EVENT);
        Poll::Pending
    })
    .await;
}
