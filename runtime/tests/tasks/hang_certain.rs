//! A hang that nothing can end is reported long before the hang period is over; a runtime that may
//! still go on does not hang.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::select;
use talpf_runtime::{Config, Error, Group, IdlePolicy, PendingEvent, Runtime};

use crate::common::{self, POLICIES, alone};

/// The hang period is ten times as long.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Long enough for a hang that is certain to be reported.
const LATER: Duration = Duration::from_millis(300);

/// The policies that park.
const PARKING: [IdlePolicy; 2] = [POLICIES[1], POLICIES[2]];

fn runtime(workers: usize, idle: IdlePolicy) -> Runtime {
    Runtime::new(Config { workers, idle, ..Config::default() }).unwrap()
}

/// Returns an event that keeps the waits of `group` from ending.
fn event(group: &Group) -> PendingEvent {
    PendingEvent::of_group(group, "starter").unwrap()
}

/// Returns the report of a wait that `cause` keeps from ending.
fn report_of<T>(runtime: &Runtime, cause: T) -> String {
    let begin = Instant::now();
    let result = runtime.wait_blocking();
    let took = begin.elapsed();
    drop(cause);
    match result {
        Err(Error::Hang(report)) if took < AT_ONCE => report.to_string(),
        other => panic!("after {took:?}: {other:?}"),
    }
}

/// Has `releases` drop an event some time later, and waits for that with all policies that park.
fn is_no_hang(releases: impl Fn(&Runtime, PendingEvent)) {
    for policy in PARKING {
        let runtime = runtime(2, policy);
        let event = event(&runtime);
        let begin = Instant::now();
        releases(&runtime, event);
        let result = runtime.wait_blocking();
        assert!(result.is_ok(), "{policy}: {result:?}");
        assert!(begin.elapsed() >= LATER, "the event was to be dropped later");
        runtime.shut_down().unwrap();
    }
}

#[test]
fn an_event_that_nobody_resolves_is_reported_at_once() {
    alone("hang_certain::an_event_that_nobody_resolves_is_reported_at_once", || {
        for (workers, policy) in PARKING.into_iter().flat_map(|idle| [(1, idle), (2, idle)]) {
            let runtime = runtime(workers, policy);
            let event = event(&runtime);
            let report = report_of(&runtime, event);
            assert!(report.contains("task `starter`"), "{workers} workers, {policy}: {report}");
        }
    });
}

#[test]
fn tasks_that_wait_for_each_other_are_reported_at_once() {
    alone("hang_certain::tasks_that_wait_for_each_other_are_reported_at_once", || {
        let runtime = runtime(2, IdlePolicy::default());
        let (first, second) = (runtime.group("first", 1), runtime.group("second", 2));
        let (sender, results) = mpsc::channel();
        // Neither may end before both wait.
        let events = [event(&first), event(&second)];
        for (group, other) in [(&first, &second), (&second, &first)] {
            let (other, sender) = (other.clone(), sender.clone());
            let task = group.task("waits");
            task.spawn_async(move || async move { sender.send(other.wait().await).unwrap() })
                .unwrap();
        }
        drop(events);
        let begin = Instant::now();
        let _ = first.wait_blocking();
        assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
        // Once the task that is notified first has ended, the other has nothing to wait for.
        let Err(Error::Hang(report)) = results.recv().unwrap() else { panic!("it has ended well") };
        assert!(report.contains("task `waits` of first is suspended"), "{report}");
        assert!(report.contains("task `waits` of second is suspended"), "{report}");
    });
}

#[test]
fn threads_that_wait_for_each_other_do_not_hide_a_hang() {
    alone("hang_certain::threads_that_wait_for_each_other_do_not_hide_a_hang", || {
        let runtime = runtime(2, IdlePolicy::default());
        let event = event(&runtime);
        let wait = runtime.wait();
        let waiter = thread::spawn(move || futures::executor::block_on(wait));
        let (kept, message) = mpsc::channel::<()>();
        thread::spawn(move || message.recv());
        assert!(report_of(&runtime, ()).contains("task `starter`"));
        assert!(matches!(waiter.join().unwrap(), Err(Error::Hang(_))));
        drop((event, kept));
    });
}

#[test]
fn a_thread_that_drops_an_event_later_is_no_hang() {
    alone("hang_certain::a_thread_that_drops_an_event_later_is_no_hang", || {
        is_no_hang(|_, event| {
            thread::spawn(move || {
                thread::sleep(LATER);
                drop(event);
            });
        });
    });
}

#[test]
fn a_thread_that_another_one_wakes_later_is_no_hang() {
    alone("hang_certain::a_thread_that_another_one_wakes_later_is_no_hang", || {
        is_no_hang(|_, event| {
            let (first, waits_for_first) = mpsc::channel();
            let (second, waits_for_second) = mpsc::channel();
            thread::spawn(move || drop(waits_for_second.recv().unwrap()));
            thread::spawn(move || second.send(waits_for_first.recv().unwrap()).unwrap());
            thread::spawn(move || {
                thread::sleep(LATER);
                first.send(event).unwrap();
            });
        });
    });
}

#[test]
fn a_thread_that_spawns_later_is_no_hang() {
    alone("hang_certain::a_thread_that_spawns_later_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let group = (**runtime).clone();
            thread::spawn(move || {
                thread::sleep(LATER);
                group.task("releases").spawn(move || drop(event)).unwrap();
            });
        });
    });
}

/// The task has last polled something of the runtime, which never comes.
#[test]
fn a_future_that_a_thread_wakes_later_is_no_hang() {
    alone("hang_certain::a_future_that_a_thread_wakes_later_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let (sender, receiver) = futures::channel::oneshot::channel();
            let group = (**runtime).clone();
            let task = runtime.task("selects");
            task.spawn_async(move || async move {
                let _event = event;
                select(receiver, pin!(group.wait())).await;
            })
            .unwrap();
            thread::spawn(move || {
                thread::sleep(LATER);
                sender.send(()).unwrap();
            });
        });
    });
}

#[test]
fn a_tokio_timer_beside_something_that_never_comes_is_no_hang() {
    alone("hang_certain::a_tokio_timer_beside_something_that_never_comes_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let group = (**runtime).clone();
            let task = runtime.task("selects");
            task.spawn_async(move || async move {
                let _event = event;
                select(pin!(tokio::time::sleep(LATER)), pin!(group.wait())).await;
            })
            .unwrap();
        });
    });
}

#[test]
fn a_blocked_thread_that_has_a_tokio_timer_is_no_hang() {
    alone("hang_certain::a_blocked_thread_that_has_a_tokio_timer_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let until = async {
                select(pin!(tokio::time::sleep(LATER)), pin!(runtime.wait())).await;
            };
            runtime.block_on(until).unwrap();
            drop(event);
        });
    });
}

#[test]
fn a_task_of_tokio_that_goes_on_later_is_no_hang() {
    alone("hang_certain::a_task_of_tokio_that_goes_on_later_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let begins = move || {
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    drop(event);
                });
            };
            runtime.task("begins").spawn(begins).unwrap();
        });
    });
}

#[test]
fn a_blocking_call_on_a_thread_of_tokio_is_no_hang() {
    alone("hang_certain::a_blocking_call_on_a_thread_of_tokio_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let calls = move || {
                tokio::task::spawn_blocking(move || {
                    thread::sleep(LATER);
                    drop(event);
                });
            };
            runtime.task("calls").spawn(calls).unwrap();
        });
    });
}

#[test]
fn a_thread_that_waits_for_another_process_is_no_hang() {
    alone("hang_certain::a_thread_that_waits_for_another_process_is_no_hang", || {
        is_no_hang(|_, event| {
            thread::spawn(move || {
                let mut sleep = Command::new("sleep");
                let mut child = sleep.arg("0.3").stdout(Stdio::piped()).spawn().unwrap();
                let mut output = child.stdout.take().unwrap();
                output.read_to_end(&mut Vec::new()).unwrap();
                child.wait().unwrap();
                drop(event);
            });
        });
    });
}

#[test]
fn a_service_that_polls_by_the_clock_is_no_hang() {
    alone("hang_certain::a_service_that_polls_by_the_clock_is_no_hang", || {
        is_no_hang(|runtime, event| {
            let group = runtime.group("polled", 1);
            let poller = group.clone();
            let begin = Instant::now();
            let service = group.spawn_service("poller", async move {
                while begin.elapsed() < LATER {
                    poller.wait_for(Duration::from_millis(20)).await;
                }
                drop(event);
            });
            drop(service.unwrap());
        });
    });
}

#[test]
fn another_runtime_that_goes_on_is_no_hang() {
    alone("hang_certain::another_runtime_that_goes_on_is_no_hang", || {
        let others = common::unwatched(1, IdlePolicy::Park);
        is_no_hang(|_, event| {
            let group = (*others).clone();
            let task = others.task("releases");
            task.spawn_async(move || async move {
                group.wait_for(LATER).await;
                drop(event);
            })
            .unwrap();
        });
    });
}
