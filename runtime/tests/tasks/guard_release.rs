//! A region is released when its guard drops, wherever the guard has travelled (R2).

use crate::common;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use futures::channel::oneshot;
use talpf_runtime::{Array, InOut, Runtime};

use crate::common::Flag;

/// Spawns a successor of the present owner of `array`. The returned flag is set if the successor
/// has run by the time no other task can (see `dependency_order.rs`; the runtime has one worker).
fn successor(runtime: &Runtime, array: &Array<u64>) -> Flag {
    let ran = Flag::default();
    let running = ran.clone();
    runtime.task("successor").inout(&array.all()).spawn(move |_all| running.set()).unwrap();
    settle(runtime);
    ran
}

fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

#[test]
fn a_guard_moved_to_a_thread_holds_its_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let (send, receive) = mpsc::channel::<InOut<u64>>();
    let task = runtime.task("giver").inout(&array.all());
    task.spawn(move |all| send.send(all).unwrap()).unwrap();
    let mut guard = receive.recv().unwrap();
    let ran = successor(&runtime, &array);
    assert!(!ran.is_set());
    thread::spawn(move || guard.fill(1)).join().unwrap();
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
}

#[test]
fn a_guard_moved_to_another_task_holds_its_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let group = runtime.group("inner", 1);
    let inner = group.clone();
    let task = runtime.task("giver").inout(&array.all());
    task.spawn(move |all| {
        let keeper = inner.task("keeper");
        keeper.spawn_async(move || async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    })
    .unwrap();
    let ran = successor(&runtime, &array);
    assert!(!ran.is_set());
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
    group.wait_blocking().unwrap();
}

#[test]
fn a_guard_handed_back_by_run_holds_its_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let handle = runtime.task("giver").inout(&array.all()).run(|all| all).unwrap();
    let mut guard = runtime.block_on(handle).unwrap().unwrap();
    let ran = successor(&runtime, &array);
    assert!(!ran.is_set());
    assert!(common::eventually(|| runtime.outstanding() == 2), "giver is not complete");
    assert_eq!(runtime.outstanding(), 2);
    guard.fill(3);
    drop(guard);
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
}

#[test]
fn dropping_the_handle_drops_the_guard_in_it() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let handle = runtime.task("giver").inout(&array.all()).run(|all| all).unwrap();
    let ran = successor(&runtime, &array);
    assert!(!ran.is_set());
    drop(handle);
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
}

#[test]
fn each_of_several_guards_releases_its_own_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 8).unwrap();
    let task = runtime.task("giver").inout([array.region(0..4), array.region(4..8)]);
    let handle = task.run(|halves| halves).unwrap();
    let mut halves = runtime.block_on(handle).unwrap().unwrap();
    let [left, right] = [0..4, 4..8].map(|half| {
        let ran = Flag::default();
        let running = ran.clone();
        let task = runtime.task("successor").inout(&array.region(half));
        task.spawn(move |_half| running.set()).unwrap();
        ran
    });
    halves.pop();
    settle(&runtime);
    assert!(right.is_set() && !left.is_set());
    drop(halves);
    runtime.wait_blocking().unwrap();
    assert!(left.is_set());
}

#[test]
fn a_guard_dropped_by_a_panic_that_the_body_catches_is_released() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let task = runtime.task("catcher").inout(&array.all());
    task.spawn(|all| {
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _all = all;
            panic!("caught");
        }));
        assert!(caught.is_err());
    })
    .unwrap();
    let ran = successor(&runtime, &array);
    assert!(ran.is_set(), "the region is free and the task did not fail");
    runtime.wait_blocking().unwrap();
}
