//! Services: they poll while they are patient, and then sleep or nap, and miss nothing.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use talpf_runtime::service::{Demand, Pace, Polled, Service, Sleeper, serve};
use talpf_runtime::{IdlePolicy, JoinHandle, Runtime};

use crate::common::{self, Flag, POLICIES};

/// A service that ends once `over` is set, and counts what is called.
#[derive(Default)]
struct Counting {
    /// `true` if `over` is announced, by a wake or the event.
    announced: bool,
    is_oversubscribed: bool,
    over: Flag,
    sleeper: Sleeper,
    event: Mutex<Option<Waker>>,
    polls: AtomicU32,
    last_polls: AtomicU32,
    flushes: AtomicU32,
}

impl Counting {
    fn announced() -> Self {
        Counting { announced: true, ..Counting::default() }
    }

    /// Fires the event.
    fn fire(&self) {
        let waker = self.event.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn last_polls(&self) -> u32 {
        self.last_polls.load(Ordering::SeqCst)
    }
}

/// Another handle of the service, for its task.
struct Handle(Arc<Counting>);

impl Service for Handle {
    const EVENT: &'static str = "the test";
    const SERVES_OTHERS: bool = true;

    fn poll(&self) -> Option<Polled> {
        self.0.polls.fetch_add(1, Ordering::SeqCst);
        let polled = Polled { found: false, demand: Demand::Polls, announced: self.0.announced };
        (!self.0.over.is_set()).then_some(polled)
    }

    fn sleeper(&self) -> &Sleeper {
        &self.0.sleeper
    }

    fn is_oversubscribed(&self) -> bool {
        self.0.is_oversubscribed
    }

    fn flush(&self) {
        self.0.flushes.fetch_add(1, Ordering::SeqCst);
    }

    fn prepare_sleep(&self) -> bool {
        assert!(self.0.announced, "a sleep from which nothing wakes");
        // The first time it finds something.
        self.0.last_polls.fetch_add(1, Ordering::SeqCst) > 0 && !self.0.over.is_set()
    }

    fn event(&self) -> impl Future<Output = ()> + Send {
        poll_fn(|cx| {
            *self.0.event.lock().unwrap() = Some(cx.waker().clone());
            if self.0.over.is_set() { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

fn start(runtime: &Runtime, service: Counting, pace: Pace) -> (Arc<Counting>, JoinHandle<()>) {
    let service = Arc::new(service);
    let group = runtime.group("service", 1);
    let task = serve(group.clone(), Handle(Arc::clone(&service)), pace);
    (service, group.spawn_service("serve", task).unwrap())
}

/// Runs a service until it has slept, ends it by `end`, and checks that it polls no more while it
/// sleeps.
fn sleeps_until(end: impl Fn(&Counting)) {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        for workers in [1, 2] {
            let runtime = common::unwatched(workers, policy);
            let (service, task) = start(&runtime, Counting::announced(), Pace::Adaptive);
            let has_event = || service.event.lock().unwrap().is_some();
            assert!(common::eventually(has_event), "{policy}");
            assert_eq!(service.last_polls(), 2, "one that finds something, one before the sleep");
            let polls = service.polls.load(Ordering::SeqCst);
            runtime.task("beside").spawn(|| ()).unwrap();
            runtime.wait_blocking().unwrap();
            // Another worker may have been in a poll.
            assert!(service.polls.load(Ordering::SeqCst) <= polls + 1, "{policy}");
            service.over.set();
            end(&service);
            runtime.block_on(task).unwrap().unwrap();
        }
    }
}

#[test]
fn a_wake_ends_a_sleep() {
    sleeps_until(|service| service.sleeper.wake());
}

#[test]
fn an_event_ends_a_sleep() {
    sleeps_until(Counting::fire);
}

#[test]
fn a_service_without_an_event_naps_and_never_sleeps() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        for is_oversubscribed in [false, true] {
            let runtime = common::unwatched(1, policy);
            let counting = Counting { is_oversubscribed, ..Counting::default() };
            let (service, task) = start(&runtime, counting, Pace::Adaptive);
            // Several naps, with a task in between.
            let flushed = |least| service.flushes.load(Ordering::SeqCst) >= least;
            assert!(common::eventually(|| flushed(2)), "{policy}");
            runtime.task("beside").spawn(|| ()).unwrap();
            runtime.wait_blocking().unwrap();
            assert!(common::eventually(|| flushed(10)), "{policy}");
            service.over.set();
            runtime.block_on(task).unwrap().unwrap();
        }
    }
}

#[test]
fn a_service_with_a_pace_naps_from_the_first_poll_on() {
    let _watchdog = common::watchdog();
    let runtime = common::unwatched(1, POLICIES[0]);
    let pace = Pace::Naps { least: Duration::ZERO, most: Duration::ZERO };
    let (service, task) = start(&runtime, Counting::announced(), pace);
    assert!(common::eventually(|| service.flushes.load(Ordering::SeqCst) >= 10));
    service.over.set();
    runtime.block_on(task).unwrap().unwrap();
    let polls = service.polls.load(Ordering::SeqCst);
    assert!(polls <= service.flushes.load(Ordering::SeqCst) + 1, "{polls} polls");
    assert_eq!(service.last_polls(), 0);
}

/// While it spins, a worker sees the ends of naps that are shorter, and does not park.
#[test]
fn a_worker_that_has_parked_for_a_nap_spins_no_more_after_it() {
    let _watchdog = common::watchdog();
    let spin = Duration::from_millis(100);
    let runtime = common::unwatched(1, IdlePolicy::Adaptive { spin });
    let nap = Duration::from_millis(10);
    let pace = Pace::Naps { least: nap, most: nap };
    let (service, task) = start(&runtime, Counting::default(), pace);
    let parks = || runtime.metrics().parks;
    assert!(common::eventually(|| parks() > 0));
    let before = parks();
    common::pass(spin * 4);
    let parks = parks() - before;
    service.over.set();
    runtime.block_on(task).unwrap().unwrap();
    // Between naps it would spin ten times as long.
    assert!(parks > 10, "{parks} parks in {:?}", spin * 4);
}
