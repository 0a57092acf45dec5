//! A runtime that may still make progress reports no hang.

use crate::common;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use talpf_runtime::{Array, Config, IdlePolicy, Runtime};

const HANG_AFTER: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_millis(60);

fn watched(workers: usize) -> Runtime {
    let config =
        Config { workers, idle: IdlePolicy::Park, hang_after: HANG_AFTER, ..Config::default() };
    Runtime::new(config).unwrap()
}

/// Checks that the runtime still works.
fn works(runtime: &Runtime) {
    runtime.task("after").spawn(|| ()).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_long_body_is_no_hang() {
    let runtime = watched(2);
    let array = Array::new(&runtime, vec![0u8; 1], 1).unwrap();
    let group = runtime.group("clock", 1);
    let task = runtime.task("computes").inout(&array.all());
    task.spawn(move |_all| {
        let until_ns = group.clock().now_ns() + LONG.as_nanos() as u64;
        while group.clock().now_ns() < until_ns {}
    })
    .unwrap();
    runtime.task("waits").inout(&array.all()).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn awaiting_a_tokio_timer_is_no_hang() {
    let runtime = watched(2);
    let group = runtime.group("program", 1);
    group.task("sleeps").spawn_async(|| tokio::time::sleep(LONG)).unwrap();
    let program = group.clone();
    let main = group.spawn_main("main", async move { program.wait().await }).unwrap();
    runtime.block_on(main).unwrap().unwrap().unwrap();
    works(&runtime);
}

#[test]
fn waiting_for_a_time_is_no_hang() {
    let runtime = watched(1);
    let group = runtime.group("clock", 1);
    runtime.task("sleeps").spawn_async(move || async move { group.wait_for(LONG).await }).unwrap();
    runtime.wait_blocking().unwrap();
    works(&runtime);
}

#[test]
fn a_thread_outside_may_wait_for_a_time() {
    let runtime = watched(1);
    let handle = runtime.task("giver").run(talpf_runtime::PendingEvent::of_current_task).unwrap();
    let event = runtime.block_on(handle).unwrap().unwrap().unwrap();
    runtime.block_on(runtime.wait_for(LONG)).unwrap();
    drop(event);
    works(&runtime);
}

#[test]
fn a_service_with_nothing_to_serve_is_no_hang() {
    let runtime = watched(1);
    let group = runtime.group("served", 1);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let poller = group.clone();
    let service = group.spawn_service("poller", async move {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            poller.wait_for(Duration::from_millis(1)).await;
        }
    });
    common::pass(LONG);
    works(&runtime);
    drop(stop);
    runtime.block_on(service.unwrap()).unwrap().unwrap();
}

#[test]
fn a_guard_that_nobody_waits_for_is_no_hang() {
    let runtime = watched(1);
    let array = Array::new(&runtime, vec![0u8; 1], 1).unwrap();
    let handle = runtime.task("result").input(&array.all()).run(|all| all).unwrap();
    let guard = runtime.block_on(handle).unwrap().unwrap();
    common::pass(LONG);
    drop(guard);
    works(&runtime);
}

#[test]
fn what_one_task_has_given_up_waiting_for_is_not_held_against_the_next() {
    let runtime = watched(1);
    let group = runtime.group("clock", 1);
    let waiter = group.clone();
    let task = runtime.task("gives up");
    task.spawn_async(move || async move {
        let mut wait = pin!(waiter.wait_for(Duration::from_secs(3600)));
        poll_fn(|cx| {
            assert!(wait.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    })
    .unwrap();
    group.task("sleeps").spawn_async(|| tokio::time::sleep(LONG)).unwrap();
    group.wait_blocking().unwrap();
    runtime.wait_blocking().unwrap();
    works(&runtime);
}

#[test]
fn waiting_for_ours_or_a_tokio_timer_is_no_hang() {
    let runtime = watched(1);
    let group = runtime.group("clock", 1);
    let waiter = group.clone();
    let task = runtime.task("selects");
    task.spawn_async(move || async move {
        let never = pin!(waiter.wait_for(Duration::from_secs(3600)));
        futures::future::select(pin!(tokio::time::sleep(LONG)), never).await;
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
    works(&runtime);
}

#[test]
fn a_runtime_may_be_configured_never_to_report_hangs() {
    for hang_after in [Duration::ZERO, Duration::MAX] {
        let config = Config { workers: 1, hang_after, ..Config::default() };
        let runtime = Runtime::new(config).unwrap();
        let task = runtime.task("starter");
        let event = task.run(talpf_runtime::PendingEvent::of_current_task).unwrap();
        let event = runtime.block_on(event).unwrap().unwrap().unwrap();
        common::pass(LONG);
        drop(event);
        works(&runtime);
    }
}
