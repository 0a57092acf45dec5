//! Groups: waits count their own tasks only, mains and services are counted by shutdown alone.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use futures::FutureExt;
use futures::channel::oneshot;
use talpf_runtime::{Array, Error};

use crate::common::Flag;

#[test]
fn a_wait_of_one_group_does_not_wait_for_another() {
    let runtime = common::runtime(2);
    let (one, other) = (runtime.group("one", 1), runtime.group("other", 2));
    let (open, gate) = oneshot::channel::<()>();
    let held = one.task("held");
    held.spawn_async(move || async move { gate.await.unwrap() }).unwrap();
    other.task("free").spawn(|| ()).unwrap();
    other.wait_blocking().unwrap();
    runtime.wait_blocking().unwrap();
    assert!(one.wait().now_or_never().is_none());
    assert_eq!((one.outstanding(), other.outstanding()), (1, 0));
    open.send(()).unwrap();
    one.wait_blocking().unwrap();
}

#[test]
fn groups_have_names_and_numbers() {
    let runtime = common::runtime(1);
    let group = runtime.group(String::from("rank 7"), 7);
    assert_eq!((group.name(), group.number()), ("rank 7", 7));
    assert_eq!((runtime.name(), runtime.number()), ("the runtime", 0));
    assert_eq!(format!("{group:?}"), "Group 7 `rank 7` (0 tasks)");
}

#[test]
fn an_array_shared_across_groups_keeps_the_order_of_spawns() {
    let runtime = common::runtime(2);
    let groups = [runtime.group("one", 1), runtime.group("other", 2)];
    let own = Array::new(&groups[0], vec![0usize; 1], 1).unwrap();
    let foreign = Array::new(&groups[1], vec![0usize; 1], 1).unwrap();
    for step in 0..1000 {
        let task = groups[step % 2].task("step").inout(&own.all()).inout(&foreign.all());
        task.spawn(move |mut own, mut foreign| {
            assert_eq!((own[0], foreign[0]), (step, step));
            own[0] += 1;
            foreign[0] += 1;
        })
        .unwrap();
    }
    groups.iter().for_each(|group| group.wait_blocking().unwrap());
}

#[test]
fn a_wait_does_not_count_mains_and_services() {
    let runtime = common::runtime(1);
    let group = runtime.group("rank", 1);
    let (open_main, main_gate) = oneshot::channel::<()>();
    let (open_service, service_gate) = oneshot::channel::<()>();
    let main = group.spawn_main("main", async { main_gate.await.unwrap() }).unwrap();
    let service = group.spawn_service("poller", async { service_gate.await.unwrap() }).unwrap();
    group.task("task").spawn(|| ()).unwrap();
    group.wait_blocking().unwrap();
    assert_eq!(group.outstanding(), 0);
    open_main.send(()).unwrap();
    open_service.send(()).unwrap();
    runtime.block_on(main).unwrap().unwrap();
    runtime.block_on(service).unwrap().unwrap();
}

#[test]
fn a_main_waits_for_its_group_again_and_again() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let group = runtime.group("rank", 1);
        let (program, count) = (group.clone(), Arc::new(AtomicUsize::new(0)));
        let main = group.spawn_main("main", async move {
            for step in 1..=20 {
                for _ in 0..50 {
                    let count = count.clone();
                    let add = move || {
                        count.fetch_add(1, Ordering::Relaxed);
                    };
                    program.task("add").spawn(add).unwrap();
                }
                program.wait().await.unwrap();
                assert_eq!(count.load(Ordering::Relaxed), 50 * step);
            }
        });
        runtime.block_on(main.unwrap()).unwrap().unwrap();
    }
}

#[test]
fn a_task_may_wait_for_another_group() {
    let runtime = common::runtime(1);
    let inner = runtime.group("inner", 1);
    let ran = Flag::default();
    let (group, running) = (inner.clone(), ran.clone());
    let task = runtime.task("outer");
    let outer = task.run_async(move || async move {
        let seen = running.clone();
        group.task("inner").spawn(move || running.set()).unwrap();
        group.wait().await.unwrap();
        seen.is_set()
    });
    assert!(runtime.block_on(outer.unwrap()).unwrap().unwrap());
    runtime.wait_blocking().unwrap();
}

#[test]
fn blocking_calls_in_a_task_are_errors() {
    let runtime = Arc::new(common::runtime(1));
    let group = runtime.group("inner", 1);
    let (inside, inner) = (runtime.clone(), group.clone());
    let handle = runtime
        .task("blocks")
        .run(move || (inner.wait_blocking(), inside.block_on(std::future::ready(()))));
    let (waited, blocked) = runtime.block_on(handle.unwrap()).unwrap().unwrap();
    assert!(matches!(waited, Err(Error::BlockingInTask { call: "wait_blocking", .. })));
    assert!(matches!(blocked, Err(Error::BlockingInTask { call: "block_on", task: "blocks" })));
    runtime.wait_blocking().unwrap();
}

#[test]
fn many_threads_wait_for_one_group() {
    let runtime = common::runtime(2);
    for _ in 0..50 {
        let (open, gate) = oneshot::channel::<()>();
        runtime.task("held").spawn_async(|| async { gate.await.unwrap() }).unwrap();
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| runtime.wait_blocking().unwrap())));
            open.send(()).unwrap();
        });
    }
}
