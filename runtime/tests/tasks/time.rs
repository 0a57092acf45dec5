//! Waiting for a time and for idleness: in order, never early, and no later than it must be.

use crate::common;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use talpf_runtime::{Group, IdlePolicy};

use crate::common::{Flag, Log, POLICIES};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_wait_is_never_early() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let handles: Vec<_> = [0, 1, 50_000, 1_000_000, 3_000_000]
            .into_iter()
            .map(|period_ns| {
                let group = runtime.group("timed", 1);
                let task = runtime.task("wait");
                let waited = task.run_async(move || async move {
                    let start_ns = group.clock().now_ns();
                    group.wait_for(Duration::from_nanos(period_ns)).await;
                    group.clock().now_ns() - start_ns
                });
                (period_ns, waited.unwrap())
            })
            .collect();
        for (period_ns, handle) in handles {
            assert!(runtime.block_on(handle).unwrap().unwrap() >= period_ns, "{policy}");
        }
    }
}

#[test]
fn waits_end_in_the_order_of_their_times_even_if_all_are_late() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let log = Log::new();
    for period in [9, 3, 6, 1] {
        let (log, group) = (log.clone(), runtime.group("timed", period));
        let task = runtime.task("wait");
        task.spawn_async(move || async move {
            group.wait_for(period * MS).await;
            log.add(period);
        })
        .unwrap();
    }
    // The only worker looks at the time again when all have passed.
    runtime.task("compute").spawn(|| common::pass(20 * MS)).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), [1, 3, 6, 9]);
}

#[test]
fn a_thread_outside_may_wait_for_a_time() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let start_ns = runtime.clock().now_ns();
        runtime.block_on(runtime.wait_for(2 * MS)).unwrap();
        assert!(runtime.clock().now_ns() - start_ns >= 2_000_000);
    }
}

#[test]
fn a_thread_outside_may_wait_for_idleness() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        common::pass(3 * MS); // All workers park, if that is their policy.
        let in_time = thread::scope(|scope| {
            let waiter = scope.spawn(|| runtime.block_on(runtime.idle(MS)).unwrap());
            let in_time = common::eventually(|| waiter.is_finished());
            runtime.task("wakes a worker").spawn(|| ()).unwrap();
            in_time
        });
        assert!(in_time, "{policy}");
    }
}

#[test]
fn idleness_comes_after_all_ready_tasks() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let log = Log::new();
    let (group, spawner, first) =
        (runtime.group("idle", 1), runtime.group("tasks", 2), log.clone());
    let task = runtime.task("idle");
    task.spawn_async(move || async move {
        for number in 0..10 {
            let log = first.clone();
            spawner.task("ready").priority(-number).spawn(move || log.add("ready")).unwrap();
        }
        group.idle(Duration::from_secs(3600)).await;
        first.add("idle");
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
    let entries = log.take();
    assert_eq!((entries.len(), entries.last()), (11, Some(&"idle")));
}

#[test]
fn an_idle_worker_ends_a_wait_for_idleness_that_began_on_one_in_a_task() {
    let runtime = common::unwatched(2, IdlePolicy::Park);
    let (group, woken) = (Group::clone(&runtime), Flag::default());
    let waker = Waker::from(Arc::new(Sets(woken.clone())));
    let task = runtime.task("in a task").run(move || {
        let mut idle = pin!(group.idle(Duration::from_secs(3600)));
        assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(common::eventually(|| woken.is_set()), "its worker was not idle, the other was");
    });
    runtime.block_on(task.unwrap()).unwrap().unwrap();
}

struct Sets(Flag);

impl Wake for Sets {
    fn wake(self: Arc<Self>) {
        self.0.set();
    }
}

/// Keeps the only worker busy with short tasks until `over`, or for as long as patience lasts.
async fn keep_busy(group: Group, over: Flag) {
    let deadline_ns = group.clock().now_ns() + common::PATIENCE.as_nanos() as u64;
    while !over.is_set() && group.clock().now_ns() < deadline_ns {
        // Woken while it runs, the task goes to the end of the queue: the worker is never idle.
        tokio::task::yield_now().await;
    }
    assert!(over.is_set(), "waited longer than for its latest time");
}

#[test]
fn a_busy_worker_ends_a_wait_for_idleness_at_its_latest_time() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let (over, group) = (Flag::default(), runtime.group("idle", 1));
    let busy = keep_busy(runtime.group("busy", 2), over.clone());
    runtime.task("busy").spawn_async(|| busy).unwrap();
    let task = runtime.task("idle");
    task.spawn_async(move || async move {
        let start_ns = group.clock().now_ns();
        group.idle(2 * MS).await;
        assert!(group.clock().now_ns() - start_ns >= 2_000_000, "the worker was not idle");
        over.set();
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_patient_wait_for_idleness_does_not_hold_up_another() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let (over, group) = (Flag::default(), runtime.group("idle", 1));
    let (patient, busy) = (group.clone(), keep_busy(runtime.group("busy", 2), over.clone()));
    let task = runtime.task("patient");
    let starts = Flag::default();
    let start = starts.clone();
    task.spawn_async(move || async move {
        let mut idle = pin!(patient.idle(Duration::from_secs(3600)));
        starts.set();
        idle.as_mut().await;
    })
    .unwrap();
    runtime.task("busy").spawn_async(|| busy).unwrap();
    let task = runtime.task("hurried");
    task.spawn_async(move || async move {
        assert!(start.is_set());
        group.idle(2 * MS).await;
        over.set();
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
}
