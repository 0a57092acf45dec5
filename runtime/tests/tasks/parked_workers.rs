//! A parked worker takes over the work that busy ones have no time for: successors, woken tasks,
//! timers.
//!
//! Each test begins with all workers parked and keeps all but one of them busy until the last one
//! has done its work.

use crate::common;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use talpf_runtime::{Array, IdlePolicy};

use crate::common::{Flag, Meeting, POLICIES};

const MS: Duration = Duration::from_millis(1);
/// Time for the workers to park, if that is their policy.
const TO_PARK: Duration = Duration::from_millis(3);

/// Serialises the tests: with others beside it the workers of a test do not get to park.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_guard_dropped_inside_a_long_body_lets_the_successor_run() {
    let _alone = alone();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
        for round in 0..10 {
            common::pass(TO_PARK);
            let (spawned, ran) = (Flag::default(), Flag::default());
            let (go, seen) = (spawned.clone(), ran.clone());
            let task = runtime.task("long").inout(&array.all());
            let long = task.run(move |all| {
                assert!(common::eventually(|| go.is_set()));
                drop(all);
                common::eventually(|| seen.is_set())
            });
            runtime.task("next").inout(&array.all()).spawn(move |_all| ran.set()).unwrap();
            spawned.set();
            let released = runtime.block_on(long.unwrap()).unwrap().unwrap();
            assert!(released, "{policy}, round {round}");
        }
    }
}

/// As above, where workers wait before they steal, as large tiles have them do.
#[test]
fn a_worker_that_parks_again_and_again_still_takes_the_successor() {
    const LARGE: usize = 128 << 10;
    let _alone = alone();
    let runtime = common::unwatched(2, IdlePolicy::default());
    let group = runtime.group_at("group", 1, 1);
    let _tiles = Array::new(&group, vec![0u8; LARGE], LARGE).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let mut times = Vec::new();
    for _ in 0..3 {
        let (spawned, ran) = (Flag::default(), Flag::default());
        let (go, seen) = (spawned.clone(), ran.clone());
        let task = runtime.task("long").inout(&array.all());
        let long = task.run(move |all| {
            assert!(common::eventually(|| go.is_set()));
            common::pass(TO_PARK); // Several times as long as a worker parks beside this one.
            drop(all);
            let begin = Instant::now();
            assert!(common::eventually(|| seen.is_set()));
            begin.elapsed()
        });
        runtime.task("next").inout(&array.all()).spawn(move |_all| ran.set()).unwrap();
        spawned.set();
        times.push(runtime.block_on(long.unwrap()).unwrap().unwrap());
    }
    // Two parks at most, and what else the machine does.
    assert!(times.iter().min() < Some(&(50 * MS)), "{times:?}");
}

#[test]
fn a_task_woken_inside_a_long_body_runs_on_another_worker() {
    let _alone = alone();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        for round in 0..10 {
            common::pass(TO_PARK);
            let (open, gate) = oneshot::channel::<()>();
            let ran = Flag::default();
            let (running, seen) = (ran.clone(), ran);
            let waiter = runtime.task("waiter");
            waiter
                .spawn_async(move || async move { gate.await.map(|()| running.set()).unwrap() })
                .unwrap();
            let long = runtime.task("long").run(move || {
                open.send(()).unwrap();
                common::eventually(|| seen.is_set())
            });
            let woken = runtime.block_on(long.unwrap()).unwrap().unwrap();
            assert!(woken, "{policy}, round {round}");
        }
    }
}

#[test]
fn a_wait_ends_in_time_while_all_workers_but_one_compute() {
    let _alone = alone();
    let runtime = common::unwatched(3, IdlePolicy::Park);
    for round in 0..5 {
        common::pass(TO_PARK); // All workers park, none of them for a time.
        let (over, group) = (Flag::default(), runtime.group("timed", 1));
        let (ends, started) = (over.clone(), Meeting::of(2));
        let task = runtime.task("wait");
        task.spawn_async(move || async move {
            group.wait_for(20 * MS).await;
            ends.set();
        })
        .unwrap();
        common::pass(TO_PARK); // Those that know the time park again, and are woken first.
        let bodies = [(), ()].map(|()| {
            let (over, started) = (over.clone(), started.clone());
            let task = runtime.task("compute");
            task.run(move || started.join() && common::eventually(|| over.is_set())).unwrap()
        });
        for body in bodies {
            assert!(runtime.block_on(body).unwrap().unwrap(), "round {round}");
        }
    }
}
