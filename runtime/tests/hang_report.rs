//! A runtime that hangs says what waits for what, wherever somebody waits for it.

mod common;

use std::fmt::Debug;
use std::thread;
use std::time::Duration;

use talpf_runtime::{Array, Config, Error, IdlePolicy, PendingEvent, Runtime};

use common::POLICIES;

fn watched(workers: usize, idle: IdlePolicy) -> Runtime {
    let hang_after = Duration::from_millis(20);
    Runtime::new(Config {
        workers,
        idle,
        hang_after,
        ..Config::default()
    })
    .unwrap()
}

fn report<T: Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Hang(text)) => text.to_string(),
        other => panic!("a hang was expected, not {other:?}"),
    }
}

fn contains(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "`{part}` is missing in:\n{report}");
    }
}

#[test]
fn a_guard_that_a_thread_keeps_is_named_with_who_waits_for_it() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = watched(2, policy);
        let array = Array::new(&runtime, vec![0u8; 8], 4).unwrap();
        let task = runtime.task("giver").inout(&array.region(2..5));
        let handle = task.run(|part| part).unwrap();
        let guard = runtime.block_on(handle).unwrap().unwrap();
        runtime
            .task("taker")
            .input(&array.all())
            .spawn(|_| ())
            .unwrap();
        let reporter = runtime.on_hang(|text| text.push_str("rank 3 waits for a put\n"));
        let text = report(runtime.wait_blocking());
        let region = format!("array {}[2..5]", array.id());
        contains(
            &text,
            &[
                "task `giver`",
                "task `taker`",
                "rank 3 waits for a put",
                &region,
            ],
        );
        contains(&text, &["awaited by `taker`"]);
        assert!(
            matches!(runtime.wait_blocking(), Err(Error::Hang(_))),
            "from then on for ever"
        );
        drop((guard, reporter));
    }
}

#[test]
fn an_event_that_is_never_resolved_is_named() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = watched(1, policy);
        let group = runtime.group("rank 5", 5);
        let task = group.task("starter");
        let handle = task
            .run(|| PendingEvent::of_current_task().unwrap())
            .unwrap();
        let event = runtime.block_on(handle).unwrap().unwrap();
        let text = report(group.wait_blocking());
        contains(&text, &["task `starter` of rank 5 has ended"]);
        drop(event);
    }
}

#[test]
fn a_task_that_waits_for_its_own_group_is_told() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let group = runtime.group("own", 1);
    let inner = group.clone();
    let task = group
        .task("waits")
        .run_async(move || async move { inner.wait().await });
    let waited = runtime.block_on(task.unwrap());
    let text = report(waited.and_then(|joined| joined).and_then(|waited| waited));
    contains(
        &text,
        &["task `waits` of own is suspended and waits for its group's tasks"],
    );
}

#[test]
fn a_main_that_waits_is_told() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let group = runtime.group("rank", 1);
    let task = group.task("starter");
    let event = task
        .run(|| PendingEvent::of_current_task().unwrap())
        .unwrap();
    let event = runtime.block_on(event).unwrap().unwrap();
    let program = group.clone();
    let main = group
        .spawn_main("main", async move { program.wait().await.is_err() })
        .unwrap();
    while group.wait_blocking().is_ok() {}
    // The main has been woken with the error and ends.
    assert!(matches!(runtime.shut_down(), Err(Error::Hang(_))));
    drop((main, event));
}

#[test]
fn a_thread_that_waits_with_another_executor_is_told() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    let task = runtime.task("starter");
    let event = task
        .run(|| PendingEvent::of_current_task().unwrap())
        .unwrap();
    let event = runtime.block_on(event).unwrap().unwrap();
    let wait = runtime.wait();
    let waiter = thread::spawn(move || futures::executor::block_on(wait));
    let told = common::eventually(|| waiter.is_finished());
    drop(event);
    assert!(told, "woken by the hang, not by the end of the task");
    contains(&report(waiter.join().unwrap()), &["task `starter`"]);
}

#[test]
fn a_service_that_polls_does_not_hide_a_hang() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        for sleeps in [true, false] {
            let runtime = watched(1, policy);
            let group = runtime.group("polled", 1);
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let poller = group.clone();
            let service = group.spawn_service("poller", async move {
                let empty = std::sync::mpsc::TryRecvError::Empty;
                while stopped.try_recv() == Err(empty) {
                    let period = Duration::from_micros(100);
                    if sleeps {
                        poller.wait_for(period).await
                    } else {
                        poller.idle(period).await
                    }
                }
            });
            let task = runtime.task("starter");
            let event = task
                .run(|| PendingEvent::of_current_task().unwrap())
                .unwrap();
            let event = runtime.block_on(event).unwrap().unwrap();
            let waited = runtime.wait();
            // Bounded here, so that a runtime that says nothing fails the test.
            let limit = runtime.wait_for(common::PATIENCE);
            let either = futures::future::select(waited, Box::pin(limit));
            let told = runtime.block_on(either);
            drop((event, stop, service));
            let told = match told {
                Err(Error::Hang(_)) => true,
                Ok(futures::future::Either::Left((waited, _))) => waited.is_err(),
                _ => false,
            };
            assert!(told, "{policy}, sleeps: {sleeps}");
        }
    }
}

#[test]
fn a_reporter_that_is_gone_says_nothing() {
    let _watchdog = common::watchdog();
    let runtime = watched(1, IdlePolicy::Park);
    drop(runtime.on_hang(|text| text.push_str("gone\n")));
    let kept = runtime.on_hang(|text| text.push_str("kept\n"));
    let task = runtime.task("starter");
    let event = task
        .run(|| PendingEvent::of_current_task().unwrap())
        .unwrap();
    let event = runtime.block_on(event).unwrap().unwrap();
    let text = report(runtime.wait_blocking());
    assert!(text.contains("kept") && !text.contains("gone"), "{text}");
    drop((kept, event));
}
