//! Weak accesses: a task does not wait for regions that it only lends, its children and successors
//! do.
//!
//! With one worker a task of negative priority runs once nothing else can: see
//! `dependency_order.rs`.

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Error, Runtime};

use crate::common::{self, Flag, Log};

fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

/// Spawns a task that has `part` of the array until the gate opens.
fn hold(
    runtime: &Runtime,
    array: &Array<u64>,
    part: std::ops::Range<usize>,
) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel::<()>();
    let holder = runtime.task("holder").inout(&array.region(part));
    holder
        .spawn_async(|mut part| async move {
            gate.await.unwrap();
            part.iter_mut().for_each(|cell| *cell += 1);
        })
        .unwrap();
    open
}

#[test]
fn a_weak_task_starts_before_what_its_children_wait_for() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![1u64; 8], 3).unwrap();
    let open = hold(&runtime, &array, 0..4);
    let log = Log::new();
    let entries = log.clone();
    let parent = runtime.task("parent").weak_inout(&array.all());
    parent
        .spawn(move |all| {
            entries.add("parent");
            let children = Children::of_current_task().unwrap();
            for (name, part) in [("left", 0..4), ("right", 4..8)] {
                let log = entries.clone();
                let child = children.task("child").inout(&all.region(part));
                child
                    .spawn(move |mut part| {
                        log.add(name);
                        part.iter_mut().for_each(|cell| *cell *= 10);
                    })
                    .unwrap();
            }
        })
        .unwrap();
    settle(&runtime);
    assert_eq!(log.take(), ["parent", "right"]);
    open.send(()).unwrap();
    let all = runtime.task("look").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(runtime.block_on(all).unwrap().unwrap(), [20, 20, 20, 20, 10, 10, 10, 10]);
    assert_eq!(log.take(), ["left"]);
    runtime.wait_blocking().unwrap();
}

#[test]
fn children_of_different_weak_tasks_overlap() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let log = Log::new();
    let (open, gate) = oneshot::channel::<()>();
    let mut gate = Some(gate);
    for step in 0..3 {
        let (log, mut gate) = (log.clone(), gate.take());
        let parent = runtime.task("step").weak_inout(&array.all());
        parent
            .spawn(move |all| {
                let children = Children::of_current_task().unwrap();
                for half in 0..2 {
                    let (log, gate) = (log.clone(), gate.take_if(|_| half == 1));
                    let child = children.task("half").inout(&all.region(2 * half..2 * half + 2));
                    child
                        .spawn_async(move |region| async move {
                            if let Some(gate) = gate {
                                gate.await.unwrap();
                            }
                            log.add((half, step));
                            drop(region);
                        })
                        .unwrap();
                }
            })
            .unwrap();
    }
    settle(&runtime);
    assert_eq!(log.take(), [(0, 0), (0, 1), (0, 2)], "one half does not wait for the other");
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), [(1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_successor_waits_for_what_a_weak_task_has_not_touched() {
    let _watchdog = common::watchdog();
    // Whether the weak task is through by the time the successor is spawned.
    for settled in [false, true] {
        let runtime = common::runtime(1);
        let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
        let open = hold(&runtime, &array, 0..8);
        for _ in 0..3 {
            runtime.task("weak").weak_inout(&array.all()).spawn(drop).unwrap();
        }
        if settled {
            settle(&runtime);
        }
        let ran = Flag::default();
        let running = ran.clone();
        let successor = runtime.task("successor").input(&array.region(2..3));
        successor
            .spawn(move |part| {
                assert_eq!(part[0], 1);
                running.set();
            })
            .unwrap();
        settle(&runtime);
        assert!(!ran.is_set(), "settled: {settled}");
        open.send(()).unwrap();
        runtime.wait_blocking().unwrap();
        assert!(ran.is_set());
    }
}

#[test]
fn weak_readers_and_what_they_read_overlap() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![7u64; 4], 2).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let reader = runtime.task("reader").input(&array.all());
    reader.spawn_async(|all| async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    let (ran, written) = (Flag::default(), Flag::default());
    let running = ran.clone();
    let weak = runtime.task("weak").weak_input(&array.all());
    weak.spawn(move |all| {
        let children = Children::of_current_task().unwrap();
        let refused = children.task("writer").inout(&all.all()).spawn(|_all| ());
        assert!(matches!(refused, Err(Error::NotLent { .. })));
        let child = children.task("child").input(&all.region(1..3));
        child
            .spawn(move |part| {
                assert_eq!(*part, [7, 7]);
                running.set();
            })
            .unwrap();
    })
    .unwrap();
    let writing = written.clone();
    runtime.task("writer").inout(&array.all()).spawn(move |_all| writing.set()).unwrap();
    settle(&runtime);
    assert!(ran.is_set() && !written.is_set());
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(written.is_set());
}

#[test]
fn a_weak_task_may_have_its_region_after_all() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![1u64; 4], 2).unwrap();
    let open = hold(&runtime, &array, 0..4);
    let weak = runtime.task("weak").weak_inout(&array.all());
    let seen = weak.run_async(|all| async move {
        let children = Children::of_current_task().unwrap();
        let all = children.task("back").inout(&all.all()).run(|all| all).unwrap();
        all.await.unwrap().to_vec()
    });
    settle(&runtime);
    open.send(()).unwrap();
    assert_eq!(runtime.block_on(seen.unwrap()).unwrap().unwrap(), [2; 4]);
    runtime.wait_blocking().unwrap();
}

#[test]
fn weak_and_strong_accesses_of_one_task_conflict() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![1u64; 4], 2).unwrap();
    let open = hold(&runtime, &array, 0..4);
    let task = runtime.task("twice").weak_inout(&array.all()).input(&array.region(0..1));
    assert!(matches!(task.spawn(|_, _| ()), Err(Error::OverlappingAccesses { .. })));
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    runtime.task("after").inout(&array.all()).spawn(|_all| ()).unwrap();
    runtime.wait_blocking().unwrap();
}
