//! Concurrent tasks share a region with each other and with no other task.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::channel::oneshot;
use talpf_runtime::Array;

use crate::common::{self, Flag};

fn zeros(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn a_concurrent_task_runs_while_another_holds_the_region() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, zeros(4), 2).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("first").concurrent(&array.all());
    task.spawn_async(|all| async move {
        gate.await.unwrap();
        all[0].fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    let task = runtime.task("second").concurrent(&array.region(0..3));
    let second = task.run(|part| part[0].fetch_add(1, Ordering::Relaxed)).unwrap();
    assert_eq!(runtime.block_on(second).unwrap().unwrap(), 0, "the first one still waits");
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn every_other_access_waits_for_all_concurrent_ones() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, zeros(4), 2).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("slow").concurrent(&array.all());
    task.spawn_async(|all| async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    runtime.task("quick").concurrent(&array.all()).spawn(drop).unwrap();
    let [read, change, commute] = [(); 3].map(|()| Flag::default());
    let (reads, changes, commutes) = (read.clone(), change.clone(), commute.clone());
    let task = runtime.task("turn").commutative(&array.tile(1));
    task.spawn(move |_| commutes.set()).unwrap();
    runtime.task("read").input(&array.tile(0)).spawn(move |_| reads.set()).unwrap();
    runtime.task("change").inout(&array.all()).spawn(move |_| changes.set()).unwrap();
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
    assert!(!read.is_set() && !change.is_set() && !commute.is_set());
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(read.is_set() && change.is_set() && commute.is_set());
}

#[test]
fn a_concurrent_task_waits_for_what_its_peers_have_waited_for() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, zeros(4), 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("reader").input(&array.all());
    task.spawn_async(|all| async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    let ran = [Flag::default(), Flag::default()];
    for ran in ran.clone() {
        runtime.task("update").concurrent(&array.all()).spawn(move |_| ran.set()).unwrap();
    }
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
    assert!(!ran[0].is_set() && !ran[1].is_set());
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(ran[0].is_set() && ran[1].is_set());
}

#[test]
fn successors_of_a_failed_concurrent_task_do_not_run() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, zeros(4), 4).unwrap();
    runtime.task("fails").concurrent(&array.all()).spawn(|_| panic!("poisoned")).unwrap();
    runtime.task("reader").input(&array.all()).spawn(|_| panic!("ran")).unwrap();
    let failure = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failure), ["reader", "fails"]);
}
