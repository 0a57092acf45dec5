//! The memory of an array is freed once: after its last handle and its last access.

use crate::common;
use futures::channel::oneshot;
use talpf_runtime::{Array, Config, Error, Matrix, Runtime, Tiling, Token};

use crate::common::Drops;

#[test]
fn an_unused_array_is_freed_with_its_last_handle() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    let clone = array.clone();
    drop(array);
    assert_eq!((drops.count(), clone.len()), (0, 10));
    drop(clone);
    assert_eq!(drops.count(), 10);
    assert_eq!(runtime.outstanding(), 0);
}

#[test]
fn an_array_lives_until_its_last_task_has_ended() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let drops = Drops::default();
        let matrix = Matrix::new(&runtime, drops.items(12), 4, Tiling::default()).unwrap();
        let (open, gate) = oneshot::channel::<()>();
        let task = runtime.task("first").inout(&matrix.region(0..1, ..));
        task.spawn_async(|row| async move { gate.await.map(|()| drop(row)).unwrap() }).unwrap();
        let seen = drops.clone();
        let task = runtime.task("last").input(&matrix.region(.., 1..2));
        let last = task.run(move |col| (col.rows(), seen.count())).unwrap();
        drop(matrix);
        assert_eq!(drops.count(), 0);
        open.send(()).unwrap();
        assert_eq!(runtime.block_on(last).unwrap().unwrap(), (3, 0));
        runtime.wait_blocking().unwrap();
        assert_eq!(drops.count(), 12);
        // A third task has freed it.
        let metrics = runtime.metrics();
        assert_eq!((metrics.created, metrics.completed), (3, 3));
    }
}

#[test]
fn an_array_lives_while_a_guard_of_it_is_anywhere() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    let handle = runtime.task("giver").input(&array.tile(1)).run(|tile| tile).unwrap();
    let guard = runtime.block_on(handle).unwrap().unwrap();
    drop(array);
    assert_eq!((drops.count(), guard.len()), (0, 4));
    drop(guard);
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 10);
}

#[test]
fn an_array_lives_while_a_task_has_an_empty_region_of_it() {
    let runtime = common::runtime(1);
    let (drops, token) = (Drops::default(), Token::new(&runtime).unwrap());
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("first").output(&token.region());
    task.spawn_async(|token| async move { gate.await.map(|()| drop(token)).unwrap() }).unwrap();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    let (id, seen) = (array.id(), drops.clone());
    let task = runtime.task("empty").input(&token.region()).inout(&array.region(5..5));
    let empty = task.run(move |_token, none| (none.len(), seen.count(), none.array_id()));
    drop(array);
    open.send(()).unwrap();
    assert_eq!(runtime.block_on(empty.unwrap()).unwrap().unwrap(), (0, 0, id));
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 10);
}

#[test]
fn elements_that_tasks_replace_are_dropped_once() {
    let runtime = common::runtime(2);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 3).unwrap();
    for tile in 0..array.tiles() {
        let items = drops.clone();
        let task = runtime.task("replace").output(&array.tile(tile));
        task.spawn(move |mut tile| tile.iter_mut().for_each(|item| *item = items.item())).unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 10);
    drop(array);
    assert_eq!(drops.count(), 20);
}

#[test]
fn a_handle_may_be_dropped_inside_a_task_of_the_array() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    let inner = array.clone();
    let task = runtime.task("drops").inout(&array.all());
    task.spawn(move |all| {
        drop(inner);
        assert_eq!(all.len(), 10);
    })
    .unwrap();
    drop(array);
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 10);
}

#[test]
fn many_arrays_come_and_go_while_tasks_run() {
    let runtime = common::runtime(2);
    let drops = Drops::default();
    for _ in 0..1000 {
        let array = Array::new(&runtime, drops.items(3), 1).unwrap();
        runtime.task("touch").inout(&array.all()).spawn(drop).unwrap();
        runtime.task("touch").input(&array.tile(1)).spawn(drop).unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 3000);
}

#[test]
fn an_array_dropped_after_the_shutdown_is_freed() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    runtime.task("touch").inout(&array.all()).spawn(drop).unwrap();
    runtime.shut_down().unwrap();
    drop(array);
    assert_eq!(drops.count(), 10);
}

#[test]
fn a_guard_that_outlives_its_runtime_is_safe() {
    let _watchdog = common::watchdog();
    let hang_after = std::time::Duration::from_millis(20);
    let runtime = Runtime::new(Config { workers: 1, hang_after, ..Config::default() }).unwrap();
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(10), 4).unwrap();
    let handle = runtime.task("giver").inout(&array.all()).run(|all| all).unwrap();
    let mut guard = runtime.block_on(handle).unwrap().unwrap();
    runtime.task("never").inout(&array.all()).spawn(|_| ()).unwrap();
    assert!(matches!(runtime.shut_down(), Err(Error::Hang(_))));
    guard[3] = drops.item();
    assert_eq!((guard.len(), drops.count()), (10, 1));
    drop(array);
    assert_eq!(drops.count(), 1, "the guard and the task still have it");
    drop(guard);
}
