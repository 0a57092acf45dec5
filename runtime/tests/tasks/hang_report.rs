//! A runtime that hangs reports all tasks and the accesses that they wait for, to all waits.

use crate::common;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use talpf_runtime::{Array, Config, Error, Group, IdlePolicy, PendingEvent, Runtime};

use crate::common::{Flag, POLICIES};

fn watched(workers: usize, idle: IdlePolicy) -> Runtime {
    let hang_after = Duration::from_millis(20);
    Runtime::new(Config { workers, idle, hang_after, ..Config::default() }).unwrap()
}

/// Returns an event of a task `starter` that nobody resolves.
fn event(runtime: &Runtime, group: &Group) -> PendingEvent {
    let handle = group.task("starter").run(PendingEvent::of_current_task).unwrap();
    runtime.block_on(handle).unwrap().unwrap().unwrap()
}

fn report<T: Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Hang(text)) => text.to_string(),
        other => panic!("a hang was expected, not {other:?}"),
    }
}

/// Waits for `runtime` on another thread. If that is not notified of the hang in bounded time,
/// `cause` goes and the wait ends well.
fn report_of_wait<T>(runtime: &Runtime, cause: T) -> String {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| runtime.wait_blocking());
        common::eventually(|| waiter.is_finished());
        drop(cause);
        report(waiter.join().unwrap())
    })
}

fn contains(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "`{part}` is missing in:\n{report}");
    }
}

#[test]
fn a_guard_that_a_thread_keeps_is_named_with_who_waits_for_it() {
    let _watchdog = common::watchdog();
    let runtime = watched(2, IdlePolicy::default());
    let array = Array::new(&runtime, vec![0u8; 8], 4).unwrap();
    let task = runtime.task("giver").inout(&array.region(2..5));
    let handle = task.run(|part| part).unwrap();
    let guard = runtime.block_on(handle).unwrap().unwrap();
    runtime.task("taker").input(&array.all()).spawn(|_| ()).unwrap();
    let reporter = runtime.on_hang(|text| text.push_str("rank 3 waits for a put\n"));
    drop(runtime.on_hang(|text| text.push_str("gone\n")));
    let text = report_of_wait(&runtime, guard);
    let region = format!("array {}[2..5], awaited by `taker`", array.id());
    contains(&text, &["task `giver`", "task `taker`", "rank 3 waits for a put", &region]);
    assert!(!text.contains("gone"), "{text}");
    drop(reporter);
}

#[test]
fn a_reporter_that_takes_a_dump_is_called_once_a_report() {
    const ENOUGH: usize = 100;
    let _watchdog = common::watchdog();
    let (runtime, other) = (watched(1, IdlePolicy::Park), watched(1, IdlePolicy::Park));
    let calls = Arc::new(AtomicUsize::new(0));
    let dumps = |of: &Runtime, name: &'static str| {
        let (group, calls) = ((**of).clone(), Arc::clone(&calls));
        move |text: &mut String| {
            // Before the stack ends.
            assert!(calls.fetch_add(1, Ordering::Relaxed) < ENOUGH, "it calls itself");
            text.push_str(&format!("{name} knows:\n{}", group.dump()));
        }
    };
    let first = runtime.on_hang(dumps(&runtime, "the first"));
    let around = [
        runtime.on_hang(dumps(&other, "the one around")),
        other.on_hang(dumps(&runtime, "the other one")),
    ];
    let text = runtime.dump().to_string();
    assert_eq!(calls.swap(0, Ordering::Relaxed), 3, "{text}");
    contains(&text, &["the first knows:", "the one around knows:", "the other one knows:"]);
    drop(around);
    let event = event(&runtime, &runtime);
    contains(&report_of_wait(&runtime, event), &["the first knows:", "task `starter`"]);
    // Two threads may have come to report it.
    assert!(calls.load(Ordering::Relaxed) <= 2);
    drop(first);
}

#[test]
fn an_event_that_is_never_resolved_is_named_with_every_idle_policy() {
    let _watchdog = common::watchdog();
    for policy in POLICIES.into_iter().rev() {
        let runtime = watched(1, policy);
        let group = runtime.group("rank 5", 5);
        let event = event(&runtime, &group);
        let held = thread::scope(|scope| {
            let waiter = scope.spawn(|| group.wait_blocking());
            common::eventually(|| waiter.is_finished());
            drop(event);
            waiter.join().unwrap()
        });
        assert!(held.is_err(), "{policy}");
        contains(&report(held), &["task `starter` of rank 5 has ended"]);
    }
}

#[test]
fn a_hang_is_reported_to_all_later_waits() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let event = event(&runtime, &runtime);
    for _ in 0..3 {
        assert!(matches!(runtime.wait_blocking(), Err(Error::Hang(_))));
    }
    drop(event);
}

#[test]
fn a_task_that_waits_for_its_own_group_is_notified() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let group = runtime.group("own", 1);
    let (inner, notified) = (group.clone(), Flag::default());
    let notify = notified.clone();
    let task = group.task("waits");
    task.spawn_async(move || async move {
        let text = report(inner.wait().await);
        contains(&text, &["task `waits` of own is suspended and waits for its group's tasks"]);
        notify.set();
    })
    .unwrap();
    assert!(common::eventually(|| notified.is_set()));
}

#[test]
fn a_main_that_waits_is_notified() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let group = runtime.group("rank", 1);
    let (event, program, notified) = (event(&runtime, &group), group.clone(), Flag::default());
    let notify = notified.clone();
    let main = group.spawn_main("main", async move {
        contains(&report(program.wait().await), &["task `starter`", "task `main`"]);
        notify.set();
    });
    assert!(common::eventually(|| notified.is_set()));
    drop((main, event));
}

#[test]
fn a_shutdown_is_notified_though_one_group_has_no_tasks() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let event = event(&runtime, &runtime.group("rank", 1));
    contains(&report(runtime.shut_down()), &["task `starter` of rank has ended"]);
    drop(event);
}

#[test]
fn a_thread_that_waits_with_another_executor_is_notified() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let (event, wait) = (event(&runtime, &runtime), runtime.wait());
    let waiter = thread::spawn(move || futures::executor::block_on(wait));
    let notified = common::eventually(|| waiter.is_finished());
    drop(event);
    assert!(notified, "woken by the hang, not by the end of the task");
    contains(&report(waiter.join().unwrap()), &["task `starter`"]);
}

#[test]
fn a_service_that_waits_for_a_time_again_and_again_does_not_hide_a_hang() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let (stop, group) = (Flag::default(), runtime.group("polled", 1));
    let (stopped, poller) = (stop.clone(), group.clone());
    let service = group.spawn_service("poller", async move {
        while !stopped.is_set() {
            poller.wait_for(Duration::from_micros(100)).await;
        }
    });
    let event = event(&runtime, &runtime);
    contains(&report_of_wait(&runtime, (event, stop_at_end(stop))), &["task `starter`"]);
    drop(service);
}

#[test]
fn a_service_that_waits_for_idleness_again_and_again_does_not_hide_a_hang() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let (stop, group) = (Flag::default(), runtime.group("polled", 1));
    let (stopped, poller) = (stop.clone(), group.clone());
    let service = group.spawn_service("poller", async move {
        while !stopped.is_set() {
            poller.idle(Duration::from_micros(100)).await;
        }
    });
    let event = event(&runtime, &runtime);
    contains(&report_of_wait(&runtime, (event, stop_at_end(stop))), &["task `starter`"]);
    drop(service);
}

/// Sets `flag` when it drops.
fn stop_at_end(flag: Flag) -> impl Send {
    struct Stop(Flag);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.set();
        }
    }
    Stop(flag)
}
