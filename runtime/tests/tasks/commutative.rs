//! Commutative tasks exclude each other in any order, and none of them occupies a worker while it
//! waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Commutative, Config, Error, Runtime};

use crate::common::{self, Flag, Log};

/// Spawns a commutative task that keeps its tile lock until the returned end drops or sends.
fn holder(runtime: &Runtime, array: &Array<u64>) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("holder").commutative(&array.all());
    task.spawn_async(|mut all| async move {
        let _ = gate.await;
        all[0] += 1;
    })
    .unwrap();
    open
}

/// Lets the one worker of `runtime` do all that it can.
fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

fn mark(runtime: &Runtime, array: &Array<u64>) -> Flag {
    let ran = Flag::default();
    let running = ran.clone();
    let task = runtime.task("marker").commutative(&array.all());
    task.spawn(move |mut all| {
        all[0] += 1;
        running.set();
    })
    .unwrap();
    ran
}

#[test]
fn a_task_that_waits_for_a_tile_lock_keeps_no_worker() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let open = holder(&runtime, &array);
    settle(&runtime);
    let ran = [mark(&runtime, &array), mark(&runtime, &array)];
    settle(&runtime);
    assert!(!ran[0].is_set() && !ran[1].is_set());
    drop(open);
    runtime.wait_blocking().unwrap();
    assert!(ran[0].is_set() && ran[1].is_set());
}

#[test]
fn a_task_that_is_ready_overtakes_one_that_is_not() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let other = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let slow = runtime.task("slow").output(&other.all());
    slow.spawn_async(|other| async move { gate.await.map(|()| drop(other)).unwrap() }).unwrap();
    let late = runtime.task("late").input(&other.all()).commutative(&array.all());
    let late = late.run(|_other, mut all| std::mem::replace(&mut all[0], 2)).unwrap();
    runtime.task("early").commutative(&array.all()).spawn(|mut all| all[0] = 1).unwrap();
    settle(&runtime);
    open.send(()).unwrap();
    assert_eq!(runtime.block_on(late).unwrap().unwrap(), 1);
}

#[test]
fn others_wait_for_all_of_them_and_they_for_others() {
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    for round in 1..=50u64 {
        for _ in 0..20 {
            let task = runtime.task("add").commutative(&array.region(2..6));
            task.spawn(|mut part| part.iter_mut().for_each(|x| *x += 1)).unwrap();
        }
        let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
        let seen = runtime.block_on(read).unwrap().unwrap();
        let sum = 20 * round;
        assert_eq!(seen, [0, 0, sum, sum, sum, sum, 0, 0]);
    }
}

#[test]
fn locks_of_several_tiles_are_taken_without_a_deadlock() {
    let runtime = common::runtime(2);
    let (a, b) = (Array::new(&runtime, vec![0u64; 4], 1), Array::new(&runtime, vec![0u64; 2], 1));
    let (a, b) = (a.unwrap(), b.unwrap());
    let inside = Arc::new(AtomicUsize::new(0));
    for round in 0..500 {
        let tiles = [a.tile(round % 4), a.tile((round + 1) % 4), a.tile((round + 2) % 4)];
        let tiles = if round % 2 == 0 { tiles } else { [tiles[2], tiles[0], tiles[1]] };
        let inside = Arc::clone(&inside);
        let task = runtime.task("several").commutative(tiles).commutative(&b.tile(0));
        task.spawn(move |mut tiles, mut one| {
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two have the turn of `b`");
            tiles.iter_mut().for_each(|tile| tile[0] += 1);
            one[0] += 1;
            inside.fetch_sub(1, Ordering::Relaxed);
        })
        .unwrap();
    }
    runtime.wait_blocking().unwrap();
    let a = runtime.task("read").input(&a.all()).run(|a| a.iter().sum::<u64>()).unwrap();
    let b = runtime.task("read").input(&b.all()).run(|b| b[0]).unwrap();
    assert_eq!(runtime.block_on(a).unwrap().unwrap(), 1500);
    assert_eq!(runtime.block_on(b).unwrap().unwrap(), 500);
}

#[test]
fn a_tile_lock_is_held_as_long_as_any_guard_of_its_tile() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let halves = [array.region(0..2), array.region(2..4)];
    let taken = runtime.task("halves").commutative(halves).run(|halves| halves).unwrap();
    let mut halves: Vec<Commutative<u64>> = runtime.block_on(taken).unwrap().unwrap();
    let ran = mark(&runtime, &array);
    settle(&runtime);
    halves.pop();
    settle(&runtime);
    assert!(!ran.is_set(), "the other half is still held");
    halves.pop();
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
}

#[test]
fn one_that_waits_while_the_holder_fails_does_not_run() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("holder").commutative(&array.all());
    task.spawn_async(|all| async move {
        let _all = all;
        let _ = gate.await;
        panic!("poisoned");
    })
    .unwrap();
    settle(&runtime);
    let waits = mark(&runtime, &array);
    settle(&runtime);
    drop(open);
    let failure = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failure), ["marker", "holder"]);
    assert!(!waits.is_set());
    let after = mark(&runtime, &array);
    runtime.wait_blocking().unwrap();
    assert!(after.is_set(), "the turn was given up and the data is defined again");
}

#[test]
fn a_failure_in_another_part_of_the_tile_keeps_nobody_from_running() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let task = runtime.task("fails").commutative(&array.region(0..2));
    task.spawn(|_half| talpf_runtime::fail_current_task("poisoned").unwrap()).unwrap();
    let task = runtime.task("other half").commutative(&array.region(2..4));
    let other = task.run(|_half| ()).unwrap();
    runtime.block_on(other).unwrap().unwrap();
    assert!(runtime.wait_blocking().is_err());
}

#[test]
fn overlapping_commutative_accesses_of_one_task_are_refused() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    let twice = [array.region(0..5), array.region(4..8)];
    let refused = runtime.task("twice").commutative(twice).spawn(|_| panic!("ran"));
    assert!(matches!(refused, Err(Error::OverlappingAccesses { .. })), "{refused:?}");
    let ran = mark(&runtime, &array);
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set(), "the refused task has given its turns up");
}

#[test]
fn an_array_is_freed_after_the_tasks_that_wait_for_its_tile_locks() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let open = holder(&runtime, &array);
    let ran = [mark(&runtime, &array), mark(&runtime, &array)];
    drop(array);
    settle(&runtime);
    drop(open);
    runtime.wait_blocking().unwrap();
    assert!(ran[0].is_set() && ran[1].is_set());
}

#[test]
fn a_hang_report_names_tasks_that_wait_for_a_tile_lock() {
    let _watchdog = common::watchdog();
    let hang_after = Duration::from_millis(20);
    let runtime = Runtime::new(Config { workers: 1, hang_after, ..Config::default() }).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let held = runtime.task("keeper").commutative(&array.all()).run(|all| all).unwrap();
    let held = runtime.block_on(held).unwrap().unwrap();
    let _ran = mark(&runtime, &array);
    match runtime.wait_blocking() {
        Err(Error::Hang(text)) => {
            assert!(text.contains("task `marker` of the runtime waits for a tile lock"), "{text}");
        }
        other => panic!("a hang was expected, not {other:?}"),
    }
    drop(held);
}

#[test]
fn a_child_that_touches_nothing_of_a_poisoned_array_runs() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
        runtime.task("fails").inout(&array.all()).spawn(|_| panic!("on purpose")).unwrap();
        assert!(runtime.wait_blocking().is_err());
        for range in [4..4, 2..6] {
            let ran = Log::new();
            let runs = ran.clone();
            let task = runtime.task("parent").inout(&array.region(range));
            task.spawn(move |part| {
                let (children, part) = (Children::of_current_task().unwrap(), part.lend());
                for _ in 0..3 {
                    let runs = runs.clone();
                    let child = children.task("child").commutative(&part.region(..0));
                    child.spawn(move |_| runs.add("child")).unwrap();
                }
            })
            .unwrap();
            runtime.wait_blocking().unwrap();
            assert_eq!(ran.take(), ["child"; 3]);
        }
    }
}
