//! Threads that spawn at the same time over crossing arrays neither block each other for ever nor
//! get their tasks in different orders on different arrays.

use crate::common;
use std::thread;

use talpf_runtime::{Array, Group};

const SPAWNERS: u64 = 4;
const TASKS: u64 = 500;

/// Spawns tasks that each append their name to the same chain in several arrays: with one order for
/// all arrays, the chains are equal.
fn spawn(group: &Group, arrays: &[Array<Vec<u64>>], spawner: u64) {
    for number in 0..TASKS {
        let task = group.task("append");
        // Declared in another order by every spawner.
        let regions =
            (0..arrays.len()).map(|at| arrays[(at + spawner as usize) % arrays.len()].all());
        task.inout(regions)
            .spawn(move |arrays| {
                for mut array in arrays {
                    array[0].push(spawner * TASKS + number);
                }
            })
            .unwrap();
    }
}

fn chains_are_equal(arrays: &[Array<Vec<u64>>], group: &Group) {
    group.wait_blocking().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let task = group.task("read").input(arrays.iter().map(Array::all));
    let read = move |arrays: Vec<talpf_runtime::In<Vec<u64>>>| {
        arrays.iter().for_each(|array| send.send(array[0].clone()).unwrap());
    };
    task.spawn(read).unwrap();
    let chains: Vec<Vec<u64>> = receive.iter().collect();
    assert_eq!(chains.len(), arrays.len());
    assert!(chains.iter().all(|chain| *chain == chains[0]), "one order for all arrays");
    for spawner in 0..SPAWNERS {
        let of_spawner = chains[0].iter().filter(|&&name| name / TASKS == spawner);
        assert!(of_spawner.copied().eq(spawner * TASKS..(spawner + 1) * TASKS), "in spawn order");
    }
}

#[test]
fn threads_that_spawn_into_one_group_get_one_order() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let arrays = [(), (), ()].map(|()| Array::new(&runtime, vec![Vec::new()], 1).unwrap());
        thread::scope(|scope| {
            for spawner in 0..SPAWNERS {
                scope.spawn({
                    let (runtime, arrays) = (&runtime, &arrays);
                    move || spawn(runtime, arrays, spawner)
                });
            }
        });
        chains_are_equal(&arrays, &runtime);
    }
}

#[test]
fn threads_that_spawn_into_groups_of_their_own_get_one_order() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let groups: Vec<Group> =
            (0..SPAWNERS).map(|number| runtime.group("spawner", number as u32)).collect();
        let arrays: Vec<_> =
            groups.iter().map(|group| Array::new(group, vec![Vec::new()], 1).unwrap()).collect();
        thread::scope(|scope| {
            for (spawner, group) in groups.iter().enumerate() {
                let arrays = &arrays;
                scope.spawn(move || spawn(group, arrays, spawner as u64));
            }
        });
        groups.iter().for_each(|group| group.wait_blocking().unwrap());
        chains_are_equal(&arrays, &runtime);
    }
}
