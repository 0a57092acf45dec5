//! The order in which a worker runs ready tasks.

use std::sync::{Arc, Mutex};

use talpf_runtime::{Array, Config, Runtime};

use crate::common;

/// Runs two groups of tasks on one worker: readers of what one task writes, and others that are
/// ready before it ends. Returns whether all readers ran first.
fn readers_run_first() -> bool {
    let runtime = Runtime::new(Config { workers: 1, ..Config::default() }).unwrap();
    let group = runtime.group("spawner", 1);
    let (spawner, order) = (group.clone(), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&order);
    let main = group.spawn_main("main", async move {
        let array = Array::new(&spawner, vec![0_u8; 1], 1)?;
        spawner.task("write").output(&array.all()).spawn(|mut array| array[0] = 1)?;
        for _ in 0..3 {
            let log = Arc::clone(&log);
            let task = spawner.task("read").input(&array.all());
            task.spawn(move |array| log.lock().unwrap().push(array[0]))?;
        }
        for _ in 0..3 {
            let log = Arc::clone(&log);
            spawner.task("other").spawn(move || log.lock().unwrap().push(2))?;
        }
        spawner.wait().await
    });
    runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
    *order.lock().unwrap() == [1, 1, 1, 2, 2, 2]
}

/// In one round of 64 what waits longest comes first.
#[test]
fn what_a_task_makes_ready_runs_before_what_was_ready_already() {
    let _watchdog = common::watchdog();
    assert!((0..20).any(|_| readers_run_first()));
}
