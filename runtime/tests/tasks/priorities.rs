//! Ready tasks of higher priority run first; those below 0 run when nothing else can.

use std::sync::Arc;

use futures::channel::oneshot;
use talpf_runtime::{Runtime, Token};

use crate::common::{self, Log, Meeting};

/// Starts a runtime whose only worker is in a body until another participant joins the meeting.
fn held_up() -> (Runtime, Arc<Meeting>) {
    let runtime = common::runtime(1);
    let meeting = common::hold_worker(&runtime);
    (runtime, meeting)
}

#[test]
fn ready_tasks_run_highest_priority_first_and_then_in_order() {
    let (runtime, meeting) = held_up();
    let log = Log::new();
    let spawned = [(-1, 'a'), (3, 'b'), (i32::MIN, 'c'), (1, 'd'), (i32::MAX, 'e'), (3, 'f')];
    for (priority, name) in spawned {
        let log = log.clone();
        let task = runtime.task("task").priority(priority);
        task.spawn(move || log.add((priority, name))).unwrap();
    }
    meeting.join();
    runtime.wait_blocking().unwrap();
    let mut expected = spawned;
    expected.sort_by_key(|&(priority, name)| (std::cmp::Reverse(priority), name));
    assert_eq!(log.take(), expected);
}

#[test]
fn tasks_below_0_run_after_all_others_and_in_order() {
    let (runtime, meeting) = held_up();
    let log = Log::new();
    for number in 0..40 {
        let log = log.clone();
        let priority = if number % 4 == 0 { -1 } else { 0 };
        let task = runtime.task("task").priority(priority);
        task.spawn(move || log.add((priority, number))).unwrap();
    }
    meeting.join();
    runtime.wait_blocking().unwrap();
    let ran = log.take();
    // Those of priority 0 run about in order: now and then one is taken from outside first.
    let place =
        |&(priority, number): &(i32, i32)| (-priority, if priority < 0 { number } else { 0 });
    assert!(ran.is_sorted_by_key(place), "{ran:?}");
}

#[test]
fn a_released_task_overtakes_ready_ones_of_lower_priority() {
    let (runtime, meeting) = held_up();
    let token = Token::new(&runtime).unwrap();
    let log = Log::new();
    let (opener, urgent) = (log.clone(), log.clone());
    let task = runtime.task("opener").priority(5).output(&token.region());
    task.spawn(move |_| opener.add("opener")).unwrap();
    let task = runtime.task("urgent").priority(7).input(&token.region());
    task.spawn(move |_| urgent.add("urgent")).unwrap();
    for _ in 0..3 {
        let log = log.clone();
        runtime.task("low").priority(1).spawn(move || log.add("low")).unwrap();
    }
    meeting.join();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), ["opener", "urgent", "low", "low", "low"]);
}

#[test]
fn a_woken_task_keeps_its_priority() {
    let (runtime, meeting) = held_up();
    let log = Log::new();
    let (open, gate) = oneshot::channel::<()>();
    let woken = log.clone();
    let task = runtime.task("woken").priority(9);
    task.spawn_async(move || async move {
        gate.await.unwrap();
        woken.add("woken");
    })
    .unwrap();
    let opener = log.clone();
    runtime
        .task("opener")
        .priority(8)
        .spawn(move || {
            open.send(()).unwrap();
            opener.add("opener");
        })
        .unwrap();
    let low = log.clone();
    runtime.task("low").priority(2).spawn(move || low.add("low")).unwrap();
    meeting.join();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), ["opener", "woken", "low"]);
}
