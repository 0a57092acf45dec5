//! Waiting for idleness: after all other tasks, no later than the given time, with conditions that
//! workers poll meanwhile.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use talpf_runtime::{Error, Group, IdlePolicy, PendingEvent};

use crate::common::{self, Flag, Log, Meeting, POLICIES};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

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
        group.idle(HOUR).await;
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
        let mut idle = pin!(group.idle(HOUR));
        assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(common::eventually(|| woken.is_set()), "its worker was not idle, the other was");
    });
    runtime.block_on(task.unwrap()).unwrap().unwrap();
}

#[test]
fn an_idle_worker_polls_for_a_worker_in_a_task_besides_its_own() {
    let runtime = common::unwatched(2, IdlePolicy::Park);
    let (meeting, over) = (Meeting::of(2), Flag::default());
    let (group, polls) = (runtime.group("idle", 1), Arc::new(AtomicU32::new(0)));
    let (other, own, ends) = (Arc::clone(&meeting), group.clone(), over.clone());
    let waits = runtime.task("waits at its own worker");
    waits
        .spawn_async(move || async move {
            assert!(other.join(), "one worker for both tasks");
            own.idle_until(HOUR, move || ends.is_set().then_some(())).await;
        })
        .unwrap();
    let task = runtime.task("in a task").run(move || {
        assert!(meeting.join(), "one worker for both tasks");
        let counted = Arc::clone(&polls);
        let mut idle = pin!(group.idle_until::<()>(HOUR, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            None
        }));
        assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        // The first poll is that of the task itself.
        let polled = common::eventually(|| polls.load(Ordering::Relaxed) > 1);
        over.set();
        polled
    });
    assert!(runtime.block_on(task.unwrap()).unwrap().unwrap(), "its worker was not idle");
    runtime.wait_blocking().unwrap();
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
        let mut idle = pin!(patient.idle(HOUR));
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

#[test]
fn idle_workers_poll_until_something_is_found() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let (group, polls) = (runtime.group("idle", 1), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&polls);
        let found = runtime.task("waits").run_async(move || async move {
            let poll = move || {
                let polls = counted.fetch_add(1, Ordering::Relaxed);
                (polls >= 99).then_some(polls)
            };
            group.idle_until(HOUR, poll).await
        });
        assert_eq!(runtime.block_on(found.unwrap()).unwrap().unwrap(), 99, "{policy}");
        assert_eq!(polls.load(Ordering::Relaxed), 100, "{policy}: polled on");
    }
}

#[test]
fn ready_tasks_come_before_every_poll() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let (group, other, log) = (runtime.group("idle", 1), runtime.group("tasks", 2), Log::new());
    let polled = log.clone();
    let task = runtime.task("waits");
    task.spawn_async(move || async move {
        let polls = AtomicU32::new(0);
        let poll = move || {
            polled.add("poll");
            let added = polled.clone();
            other.task("made ready by a poll").spawn(move || added.add("task")).unwrap();
            (polls.fetch_add(1, Ordering::Relaxed) == 2).then_some(())
        };
        group.idle_until(HOUR, poll).await;
    })
    .unwrap();
    runtime.shut_down().unwrap();
    assert_eq!(log.take(), ["poll", "task"].repeat(3));
}

#[test]
fn a_wait_that_is_polled_for_is_not_late() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let group = runtime.group("idle", 1);
    let found = runtime.task("waits").run_async(move || async move {
        let (clock, start_ns) = (group.clock().clone(), group.clock().now_ns());
        let in_task = AtomicU32::new(0);
        let poll = move || {
            in_task
                .fetch_add(u32::from(PendingEvent::of_current_task().is_ok()), Ordering::Relaxed);
            let is_over = clock.now_ns() - start_ns > 10_000_000;
            is_over.then(|| in_task.load(Ordering::Relaxed))
        };
        group.idle_until(MS, poll).await
    });
    let in_task = runtime.block_on(found.unwrap()).unwrap().unwrap();
    assert_eq!(in_task, 1, "the task polls once, as it begins to wait");
}

#[test]
fn beside_a_busy_worker_the_task_polls_at_its_latest_time() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let (over, group) = (Flag::default(), runtime.group("idle", 1));
    let busy = keep_busy(runtime.group("busy", 2), over.clone());
    runtime.task("busy").spawn_async(|| busy).unwrap();
    let found = runtime.task("waits").run_async(move || async move {
        let (clock, start_ns) = (group.clock().clone(), group.clock().now_ns());
        let polls = AtomicU32::new(0);
        let poll =
            move || (polls.fetch_add(1, Ordering::Relaxed) == 2).then(|| clock.now_ns() - start_ns);
        let found = group.idle_until(2 * MS, poll).await;
        over.set();
        found
    });
    let found_ns = runtime.block_on(found.unwrap()).unwrap().unwrap();
    assert!(found_ns >= 4_000_000, "the first poll is at once, the others late: {found_ns}");
}

#[test]
fn a_poll_that_panics_fails_the_task_that_waits() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let group = runtime.group("idle", 1);
    let task = runtime.task("waits");
    task.spawn_async(move || async move {
        group.idle_until(HOUR, || -> Option<()> { panic!("a poll") }).await;
    })
    .unwrap();
    let Err(Error::TaskFailed(failure)) = runtime.wait_blocking() else {
        panic!("the task did not fail")
    };
    let reason = failure.reason.as_deref();
    assert_eq!((failure.label.as_str(), reason), ("waits", Some("a poll")));
    let answer = runtime.task("after").run(|| 42).unwrap();
    assert_eq!(runtime.block_on(answer).unwrap().unwrap(), 42);
}

#[test]
fn nobody_polls_for_a_dropped_wait_and_its_closure_is_freed() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let (group, polls) = (runtime.group("idle", 1), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&polls);
    let dropped = runtime.task("drops").run(move || {
        let poll = move || Some(counted.fetch_add(1, Ordering::Relaxed)).filter(|polls| *polls > 0);
        let mut idle = pin!(group.idle_until(HOUR, poll));
        assert!(idle.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    });
    runtime.block_on(dropped.unwrap()).unwrap().unwrap();
    runtime.shut_down().unwrap();
    assert_eq!(polls.load(Ordering::Relaxed), 1, "the task's own");
    assert_eq!(Arc::strong_count(&polls), 1, "the runtime has ended and keeps the closure");
}
