//! Children are ordered where their parent is, and lent regions are released piece by piece.
//!
//! With one worker a task of negative priority runs once nothing else can: see
//! `dependency_order.rs`.

use std::ops::Range;

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Error, Matrix, Runtime, Tiling, Token};

use crate::common::{self, Flag, Log};

/// Lets everything run that can.
fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

/// Spawns a successor on a part of `array` that sets a flag when it runs.
fn successor(runtime: &Runtime, array: &Array<u64>, part: std::ops::Range<usize>) -> Flag {
    let ran = Flag::default();
    let running = ran.clone();
    let task = runtime.task("successor").inout(&array.region(part));
    task.spawn(move |_part| running.set()).unwrap();
    ran
}

/// Spawns a task with two children: one writes 0..4, the other holds 4..8 until the gate opens.
fn half_held(runtime: &Runtime, array: &Array<u64>) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel::<()>();
    let parent = runtime.task("parent").inout(&array.all());
    parent
        .spawn(move |all| {
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            let left = children.task("left").inout(&all.region(..4));
            left.spawn(|mut left| left.fill(1)).unwrap();
            let right = children.task("right").inout(&all.region(4..));
            right
                .spawn_async(|mut right| async move {
                    gate.await.unwrap();
                    right.fill(2);
                })
                .unwrap();
        })
        .unwrap();
    open
}

#[test]
fn a_region_is_released_piece_by_piece() {
    let _watchdog = common::watchdog();
    for spawned_first in [true, false] {
        let runtime = common::runtime(1);
        let array = Array::new(&runtime, vec![0u64; 8], 3).unwrap();
        let open = half_held(&runtime, &array);
        if !spawned_first {
            settle(&runtime);
        }
        let [left, right, both] = [0..4, 4..8, 3..5].map(|part| successor(&runtime, &array, part));
        settle(&runtime);
        assert!(left.is_set(), "spawned first: {spawned_first}");
        assert!(!right.is_set() && !both.is_set(), "spawned first: {spawned_first}");
        open.send(()).unwrap();
        runtime.wait_blocking().unwrap();
        assert!(right.is_set() && both.is_set());
    }
}

#[test]
fn nothing_is_released_that_a_child_may_still_get() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 8).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let parent = runtime.task("parent").inout(&array.all());
    parent
        .spawn_async(|all| async move {
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            children.task("first").inout(&all.all()).spawn(|mut all| all.fill(1)).unwrap();
            gate.await.unwrap();
            let second = children.task("second").inout(&all.all());
            second.spawn(|mut all| all.iter_mut().for_each(|cell| *cell += 1)).unwrap();
        })
        .unwrap();
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    let ran = successor(&runtime, &array, 0..1);
    settle(&runtime);
    assert!(!ran.is_set());
    open.send(()).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), [2; 8]);
    runtime.wait_blocking().unwrap();
}

#[test]
fn siblings_that_share_nothing_are_not_ordered() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let matrix = Matrix::new(&runtime, vec![0u64; 16], 4, Tiling::new(2, 3)).unwrap();
    let log = Log::new();
    let (open, gate) = oneshot::channel::<()>();
    let entries = log.clone();
    let parent = runtime.task("parent").output(&matrix.region(1..4, 1..4));
    parent
        .spawn(move |part| {
            let (children, part) = (Children::of_current_task().unwrap(), part.lend());
            assert_eq!((part.rows(), part.cols()), (3, 3));
            let held = children.task("held").output(&part.region(0..2, 0..2));
            held.spawn_async(|part| async move { gate.await.map(|()| drop(part)).unwrap() })
                .unwrap();
            for (name, rows, cols) in [("beside", 2..3, 0..3), ("across", 0..3, 1..2)] {
                let log = entries.clone();
                let task = children.task("other").inout(&part.region(rows, cols));
                task.spawn(move |_part| log.add(name)).unwrap();
            }
        })
        .unwrap();
    settle(&runtime);
    assert_eq!(log.take(), ["beside"]);
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), ["across"]);
}

#[test]
fn a_parent_is_complete_when_its_children_are() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (open, gate) = oneshot::channel::<()>();
    let parent = runtime.task("parent").run(|| {
        let children = Children::of_current_task().unwrap();
        children.task("child").spawn_async(|| async { gate.await.unwrap() }).unwrap();
    });
    runtime.block_on(parent.unwrap()).unwrap().unwrap();
    settle(&runtime);
    assert!(common::eventually(|| runtime.outstanding() == 2), "parent and child are left");
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_wait_in_a_body_is_for_the_children_only() {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let (open, gate) = oneshot::channel::<()>();
        runtime.task("other").spawn_async(|| async { gate.await.unwrap() }).unwrap();
        let parent = runtime.task("parent").run_async(|| async {
            let children = Children::of_current_task().unwrap();
            children.wait().await.unwrap();
            for count in 1..=20 {
                let log = Log::new();
                for number in 0..count {
                    let log = log.clone();
                    children.task("child").spawn(move || log.add(number)).unwrap();
                }
                children.wait().await.unwrap();
                assert_eq!(log.take().len(), count);
            }
        });
        runtime.block_on(parent.unwrap()).unwrap().unwrap();
        open.send(()).unwrap();
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_body_has_back_what_its_children_have_written() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, (0..100u64).collect(), 7).unwrap();
    let parent = runtime.task("sum").input(&array.all());
    let sum = parent.run_async(|all| async move {
        let (children, all) = (Children::of_current_task().unwrap(), all.lend());
        let parts: Vec<_> = (0..100).step_by(10).map(|at| all.region(at..at + 10)).collect();
        let sums = parts.iter().map(|part| {
            children.task("part").input(part).run(|part| part.iter().sum::<u64>()).unwrap()
        });
        let mut sum = 0;
        for part in sums.collect::<Vec<_>>() {
            sum += part.await.unwrap();
        }
        let all = children.task("back").input(&all.all()).run(|all| all).unwrap();
        (sum, all.await.unwrap().iter().sum::<u64>())
    });
    assert_eq!(runtime.block_on(sum.unwrap()).unwrap().unwrap(), (4950, 4950));
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_child_declares_only_what_is_lent_to_it() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    let (group, own) = (runtime.group("other", 1), array.clone());
    let parent = runtime.task("parent").inout(&array.region(0..4)).input(&array.region(4..8));
    let refused = parent.run(move |write, read| {
        let children = Children::of_current_task().unwrap();
        let child = || children.task("child");
        let (write, read) = (write.lend(), read.lend());
        child().inout(&write.region(4..)).spawn(|_| ()).unwrap();
        let backwards = std::ops::Range { start: 3, end: 2 };
        vec![
            child().inout(&write.region(3..5)).spawn(|_| ()),
            child().inout(&write.region(backwards)).spawn(|_| ()),
            child().input(&write.region(usize::MAX - 1..usize::MAX)).spawn(|_| ()),
            child().inout(&read.region(..)).spawn(|_| ()),
            child().input(&own.all()).spawn(|_| ()),
            child().input(&own.region(0..1)).input(&read.all()).spawn(|_, _| ()),
            group.task("no child").input(&read.all()).spawn(|_| ()),
        ]
    });
    for result in runtime.block_on(refused.unwrap()).unwrap().unwrap() {
        assert!(matches!(result, Err(Error::NotLent { .. })), "{result:?}");
    }
    runtime.wait_blocking().unwrap();
}

#[test]
fn only_the_task_that_has_declared_a_region_lends_it() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    let guard = runtime.task("owner").inout(&array.all()).run(|all| all).unwrap();
    let guard = runtime.block_on(guard).unwrap().unwrap();
    let other = runtime.task("other").run(move || {
        let (children, all) = (Children::of_current_task().unwrap(), guard.lend());
        children.task("child").inout(&all.all()).spawn(|_all| ())
    });
    let refused = runtime.block_on(other.unwrap()).unwrap().unwrap();
    let Err(Error::NotLent { label, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(label, "child");
    runtime.wait_blocking().unwrap();
}

#[test]
fn children_are_of_a_task() {
    assert!(matches!(Children::of_current_task(), Err(Error::NotInTask(_))));
}

#[test]
fn an_array_is_kept_until_children_have_let_go_of_it() {
    let _watchdog = common::watchdog();
    for (part, drops_early) in
        [(1..3, true), (1..3, false), (2..2, true), (2..2, false)] as [(Range<usize>, bool); 4]
    {
        let runtime = common::runtime(1);
        let drops = common::Drops::default();
        let array = Array::new(&runtime, drops.items(4), 2).unwrap();
        let (open, gate) = oneshot::channel::<()>();
        let (stay, gate_of_parent) = oneshot::channel::<()>();
        let parent = runtime.task("parent").inout(&array.all());
        parent
            .spawn_async(|all| async move {
                let (children, all) = (Children::of_current_task().unwrap(), all.lend());
                let child = children.task("child").inout(&all.region(part));
                child
                    .spawn_async(|part| async move { gate.await.map(|()| drop(part)).unwrap() })
                    .unwrap();
                drop(all);
                gate_of_parent.await.unwrap();
            })
            .unwrap();
        let mut handle = Some(array).filter(|_| !drops_early);
        settle(&runtime);
        handle.take();
        settle(&runtime);
        assert_eq!(drops.count(), 0);
        open.send(()).unwrap();
        // The parent has released the array long before it is complete.
        assert!(common::eventually(|| drops.count() == 4));
        stay.send(()).unwrap();
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn tasks_are_nested_deeply() {
    fn descend(token: talpf_runtime::InOut<()>, levels: usize, log: Log<&'static str>) {
        let Some(levels) = levels.checked_sub(1) else {
            return log.add("bottom");
        };
        let (children, token) = (Children::of_current_task().unwrap(), token.lend());
        let child = children.task("level").inout(&token.all());
        child.spawn(move |token| descend(token, levels, log)).unwrap();
    }
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let token = Token::new(&runtime).unwrap();
    let log = Log::new();
    let entries = log.clone();
    let top = runtime.task("top").inout(&token.region());
    top.spawn(move |token| descend(token, 20_000, entries)).unwrap();
    let entries = log.clone();
    runtime.task("after").inout(&token.region()).spawn(move |_token| entries.add("after")).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), ["bottom", "after"]);
}

#[test]
fn commutative_children_exclude_each_other() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(4);
    let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    for _ in 0..50 {
        let parent = runtime.task("parent").inout(&array.all());
        parent
            .spawn(|all| {
                let (children, all) = (Children::of_current_task().unwrap(), all.lend());
                for _ in 0..8 {
                    let child = children.task("add").commutative(&all.region(1..4));
                    child.spawn(|mut part| part.iter_mut().for_each(|cell| *cell += 1)).unwrap();
                }
            })
            .unwrap();
        runtime.task("add").commutative(&array.all()).spawn(|mut all| all[1] += 1).unwrap();
    }
    let all = runtime.task("look").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(runtime.block_on(all).unwrap().unwrap(), [0, 450, 400, 400]);
    runtime.wait_blocking().unwrap();
}

#[test]
fn children_of_a_final_task_run_where_they_are_spawned() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    for (is_final, expected) in
        [(true, ["leaf", "child", "parent"]), (false, ["parent", "child", "leaf"])]
    {
        let log = Log::new();
        let entries = log.clone();
        let parent = runtime.task("parent").final_if(is_final);
        parent
            .spawn(move || {
                let children = Children::of_current_task().unwrap();
                assert_eq!(children.is_final(), is_final);
                let log = entries.clone();
                let child = children.task("child");
                child
                    .spawn(move || {
                        let leaf = log.clone();
                        let children = Children::of_current_task().unwrap();
                        children.task("leaf").spawn(move || leaf.add("leaf")).unwrap();
                        log.add("child");
                    })
                    .unwrap();
                entries.add("parent");
            })
            .unwrap();
        runtime.wait_blocking().unwrap();
        assert_eq!(log.take(), expected, "final: {is_final}");
    }
}

#[test]
fn a_task_that_is_not_deferred_runs_where_it_is_spawned() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let log = Log::new();
    let entries = log.clone();
    let group = runtime.group("inner", 1);
    let parent = runtime.task("parent");
    parent
        .spawn(move || {
            for deferred in [true, false] {
                let log = entries.clone();
                let task = group.task("task").deferred_if(deferred);
                task.spawn(move || log.add(if deferred { "later" } else { "at once" })).unwrap();
            }
        })
        .unwrap();
    runtime.shut_down().unwrap();
    assert_eq!(log.take(), ["at once", "later"]);
}
