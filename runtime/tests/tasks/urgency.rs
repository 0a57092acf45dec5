//! Urgency of ready tasks: priority first, then cost, both also as functions.
//!
//! No task has neither: now and then a worker takes one of those from outside first.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use futures::channel::oneshot;
use talpf_runtime::{Array, Group};

use crate::common::{self, Log};

/// Has `spawn` spawn tasks while the one worker is in a body, and returns the numbers that they log
/// in the order they ran.
fn order<const N: usize>(spawn: impl Fn(&Group, usize, Log<usize>)) -> Vec<usize> {
    let runtime = common::runtime(1);
    let meeting = common::hold_worker(&runtime);
    let log = Log::new();
    (0..N).for_each(|number| spawn(&runtime, number, log.clone()));
    meeting.join();
    runtime.wait_blocking().unwrap();
    log.take()
}

#[test]
fn costlier_tasks_of_a_priority_run_first() {
    let _watchdog = common::watchdog();
    let costs = [1_000, 50, 1_000_000, 1, 900];
    let ran = order::<5>(|group, number, log| {
        group.task("task").cost(costs[number]).spawn(move || log.add(number)).unwrap();
    });
    assert_eq!(ran, [2, 0, 4, 1, 3]);
    let priorities = [0, 1, 0, 2, 1];
    let ran = order::<5>(|group, number, log| {
        let task = group.task("task").priority(priorities[number]).cost(costs[number]);
        task.spawn(move || log.add(number)).unwrap();
    });
    assert_eq!(ran, [3, 4, 1, 2, 0]);
}

#[test]
fn priority_and_cost_may_be_functions() {
    let _watchdog = common::watchdog();
    let priority = |number: usize| [1, 3, 2][number];
    let ran = order::<3>(|group, number, log| {
        let task = group.task("task").priority_with(move || priority(number));
        task.spawn(move || log.add(number)).unwrap();
    });
    assert_eq!(ran, [1, 2, 0]);
    let cost = |number: usize| [10, 1_000, 100_000][number];
    let ran = order::<3>(|group, number, log| {
        let task = group.task("task").cost_with(move || cost(number));
        task.spawn(move || log.add(number)).unwrap();
    });
    assert_eq!(ran, [2, 1, 0]);
}

#[test]
fn the_last_function_counts_and_leaves_the_other_value_alone() {
    let _watchdog = common::watchdog();
    let ran = order::<3>(|group, number, log| {
        let task = group.task("task").priority(5).cost([10, 1_000, 100_000][number]);
        let task = task.priority_with(|| 7).priority_with(move || [1, 1, -1][number]);
        task.spawn(move || log.add(number)).unwrap();
    });
    assert_eq!(ran, [1, 0, 2]);
}

#[test]
fn a_priority_function_is_asked_when_the_task_is_ready() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let priority = Arc::new(AtomicI32::new(0));
    let (asked, seen) = (Arc::clone(&priority), Log::new());
    let sees = seen.clone();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("writes").output(&array.all());
    task.spawn_async(move |all| async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    let task = runtime.task("reads").input(&array.all()).priority_with(move || {
        sees.add(asked.load(Ordering::SeqCst));
        asked.load(Ordering::SeqCst)
    });
    task.spawn(|_| ()).unwrap();
    priority.store(5, Ordering::SeqCst);
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(seen.take(), [5]);
}
