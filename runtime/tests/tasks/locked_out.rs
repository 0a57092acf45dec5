//! A lock that is held over a spawn, inside which a task runs that takes it: the worker is blocked
//! for ever, and all waits report that.
#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use talpf_runtime::{Config, Error, IdlePolicy, Runtime};

use crate::common::{self, POLICIES};

const HANG_AFTER: Duration = Duration::from_millis(100);

fn runtime(workers: usize, idle: IdlePolicy) -> Runtime {
    let config = Config { workers, idle, throttle: 4, hang_after: HANG_AFTER, ..Config::default() };
    Runtime::new(config).unwrap()
}

/// Spawns a task that spawns many others with a lock held that they take. `false`: it keeps the
/// throttle from running them meanwhile.
fn hold_over_spawns(runtime: &Runtime, throttled: bool) -> Arc<Mutex<u64>> {
    let (sum, group) = (Arc::new(Mutex::new(0)), (**runtime).clone());
    let held = Arc::clone(&sum);
    let holder = move || {
        let _lock = held.lock().unwrap();
        for number in 1..=100 {
            let sum = Arc::clone(&held);
            let task = group.task("adds");
            let task = if throttled { task } else { task.unthrottled() };
            task.spawn(move || *sum.lock().unwrap() += number).unwrap();
        }
    };
    runtime.task("holder").spawn(holder).unwrap();
    sum
}

#[test]
fn a_worker_that_waits_inside_a_spawn_for_a_lock_of_the_spawner_is_reported() {
    let _watchdog = common::watchdog();
    for (workers, policy) in
        [(1, POLICIES[2]), (2, POLICIES[2]), (2, POLICIES[1]), (3, POLICIES[0])]
    {
        let runtime = runtime(workers, policy);
        hold_over_spawns(&runtime, true);
        let Err(Error::Hang(report)) = runtime.wait_blocking() else {
            panic!("{workers} workers, {policy}: the wait has ended well");
        };
        let part = "task `adds` of the runtime runs inside a spawn of `holder`";
        assert!(report.contains(part), "`{part}` is missing in:\n{report}");
        let ended = runtime.shut_down();
        assert!(matches!(ended, Err(Error::Hang(_))), "{ended:?}");
    }
}

#[test]
fn unthrottled_spawns_run_no_other_task() {
    let _watchdog = common::watchdog();
    let runtime = runtime(1, POLICIES[2]);
    let sum = hold_over_spawns(&runtime, false);
    runtime.wait_blocking().unwrap();
    assert_eq!(*sum.lock().unwrap(), 5050);
}

#[test]
fn a_body_that_sleeps_inside_a_spawn_is_no_hang() {
    let _watchdog = common::watchdog();
    let runtime = runtime(2, POLICIES[2]);
    let group = (*runtime).clone();
    let spawner = move || {
        for _ in 0..32 {
            group.task("sleeps").spawn(|| std::thread::sleep(HANG_AFTER)).unwrap();
        }
    };
    runtime.task("spawner").spawn(spawner).unwrap();
    runtime.wait_blocking().unwrap();
}
