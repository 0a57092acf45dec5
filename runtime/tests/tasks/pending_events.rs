//! A pending event holds the completion of its task and the waits for it, but no region.

use crate::common;
use std::sync::mpsc;
use std::thread;

use futures::FutureExt;
use talpf_runtime::{Array, Error, Group, PendingEvent};

use crate::common::{failure, labels};

/// Spawns a task over all of `array` that leaves an event open.
fn leave_event(group: &Group, array: &Array<u64>) -> PendingEvent {
    let (send, receive) = mpsc::channel();
    let task = group.task("starter").inout(&array.all());
    task.spawn(move |_all| send.send(PendingEvent::of_current_task().unwrap()).unwrap()).unwrap();
    receive.recv().unwrap()
}

#[test]
fn an_event_holds_the_wait_but_not_the_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let event = leave_event(&runtime, &array);
    let successor = runtime.task("successor").inout(&array.all()).run(|_all| ()).unwrap();
    runtime.block_on(successor).unwrap().unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 1), "only the starter is left");
    assert!(runtime.wait().now_or_never().is_none());
    thread::spawn(move || drop(event)).join().unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(runtime.outstanding(), 0);
}

#[test]
fn several_events_of_one_task_all_count() {
    let runtime = common::runtime(1);
    let handle = runtime
        .task("starter")
        .run(|| [(); 100].map(|()| PendingEvent::of_current_task().unwrap()))
        .unwrap();
    for event in runtime.block_on(handle).unwrap().unwrap() {
        assert!(runtime.wait().now_or_never().is_none());
        drop(event);
    }
    runtime.wait_blocking().unwrap();
}

#[test]
fn an_event_resolved_inside_the_body_holds_nothing() {
    let runtime = common::runtime(1);
    runtime.task("starter").spawn(|| drop(PendingEvent::of_current_task().unwrap())).unwrap();
    let task = runtime.task("async starter");
    task.spawn_async(|| async {
        let event = PendingEvent::of_current_task().unwrap();
        tokio::task::yield_now().await;
        drop(event);
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_group_waits_for_an_event_of_its_own() {
    let runtime = common::runtime(1);
    let (event, other) =
        (PendingEvent::of_group(&runtime, "held"), PendingEvent::of_group(&runtime, "gone"));
    let (event, other) = (event.unwrap(), other.unwrap());
    assert_eq!(runtime.outstanding(), 2);
    drop(event);
    assert_eq!(runtime.outstanding(), 1);
    other.fail("the peer is gone");
    let failed = failure(runtime.wait_blocking());
    assert_eq!(labels(&failed), ["gone"]);
    assert_eq!(failed.reason.as_deref(), Some("the peer is gone"));
}

#[test]
fn an_event_needs_a_running_task() {
    let outside = PendingEvent::of_current_task();
    assert!(matches!(outside, Err(Error::NotInTask("PendingEvent::of_current_task"))));
}

#[test]
fn a_failed_event_fails_its_task() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    leave_event(&runtime, &array).fail("the peer is gone");
    let failed = failure(runtime.wait_blocking());
    assert_eq!(labels(&failed), ["starter"]);
    assert_eq!(failed.reason.as_deref(), Some("the peer is gone"));
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_failed_event_poisons_what_guards_still_hold() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let task = runtime.task("starter").inout(&array.all());
    let handle = task.run(|all| (all, PendingEvent::of_current_task().unwrap())).unwrap();
    let (guard, event) = runtime.block_on(handle).unwrap().unwrap();
    let reader = runtime.task("reader").input(&array.all()).run(|_all| ()).unwrap();
    event.fail("no route");
    drop(guard);
    let failed = failure(runtime.block_on(reader).unwrap());
    assert_eq!(labels(&failed), ["reader", "starter"]);
    assert!(runtime.wait_blocking().is_err());
    runtime.task("again").inout(&array.all()).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
}
