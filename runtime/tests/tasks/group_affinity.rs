//! The tasks of a group with large tiles run on the worker that the group was made for.

use std::thread;

use talpf_runtime::{Array, Config, Group, IdlePolicy, Runtime};

use crate::common::{self, Flag, Log, eventually};

/// The fewest bytes of a tile for whose sake tasks go to a worker.
const LARGE: usize = 128 << 10;
/// Tasks of each group.
const TASKS: usize = 8;

/// The thread that spawns the tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spawner {
    Outside,
    Worker1,
}

/// Returns the number of the worker that this thread is.
fn worker() -> usize {
    let thread = thread::current();
    thread.name().and_then(|name| name.strip_prefix("talpf-worker-")).unwrap().parse().unwrap()
}

/// Spawns tasks of the two groups alternately, those of the second one first.
fn spawn_alternately(groups: &[Group; 2], log: &Log<usize>) {
    for index in (0..TASKS).flat_map(|_| [1, 0]) {
        let log = log.clone();
        let body = move || {
            assert_eq!(worker(), 0);
            log.add(index);
        };
        groups[index].task("logs").spawn(body).unwrap();
    }
}

/// Spawns tasks of two groups, for `workers[0]` and `workers[1]` of two, while both workers are in
/// a body, and frees worker 0 only. Returns the groups in the order in which their tasks run there.
fn order_on_worker_0(tile: usize, workers: [usize; 2], spawner: Spawner) -> Vec<usize> {
    let runtime = common::runtime(2);
    let groups = workers.map(|worker| runtime.group_at("group", 1, worker));
    let arrays = groups.each_ref().map(|group| Array::new(group, vec![0_u8; tile], tile).unwrap());
    let (begun, free): ([Flag; 2], [Flag; 2]) = Default::default();
    let log = Log::new();
    for _ in 0..2 {
        let (begun, free, groups, log) = (begun.clone(), free.clone(), groups.clone(), log.clone());
        let hold = move || {
            let here = worker();
            if here == 1 && spawner == Spawner::Worker1 {
                assert!(eventually(|| begun[0].is_set()));
                spawn_alternately(&groups, &log);
            }
            begun[here].set();
            assert!(eventually(|| free[here].is_set()));
        };
        runtime.task("hold").spawn(hold).unwrap();
    }
    assert!(eventually(|| begun.iter().all(Flag::is_set)));
    if spawner == Spawner::Outside {
        spawn_alternately(&groups, &log);
    }
    free[0].set();
    assert!(eventually(|| groups.iter().all(|group| group.outstanding() == 0)));
    free[1].set();
    runtime.shut_down().unwrap();
    drop(arrays);
    log.take()
}

fn own_first() -> Vec<usize> {
    [[0; TASKS], [1; TASKS]].concat()
}

#[test]
fn a_worker_runs_the_tasks_of_its_groups_before_it_takes_those_of_others() {
    let _watchdog = common::watchdog();
    for spawner in [Spawner::Outside, Spawner::Worker1] {
        assert_eq!(order_on_worker_0(LARGE, [0, 1], spawner), own_first(), "{spawner:?}");
        assert_ne!(order_on_worker_0(LARGE - 1, [0, 1], spawner), own_first(), "{spawner:?}");
    }
}

#[test]
fn a_worker_is_taken_modulo_the_number_of_workers() {
    let _watchdog = common::watchdog();
    assert_eq!(order_on_worker_0(LARGE, [2, usize::MAX], Spawner::Outside), own_first());
}

#[test]
fn groups_for_few_workers_are_all_worked_for() {
    let _watchdog = common::watchdog();
    for (workers, idle) in [
        (1, IdlePolicy::default()),
        (2, IdlePolicy::default()),
        (2, IdlePolicy::Spin),
        (2, IdlePolicy::Park),
        (5, IdlePolicy::default()),
    ] {
        let runtime = Runtime::new(Config { workers, idle, ..Config::default() }).unwrap();
        let groups: Vec<_> = (0..32).map(|n| runtime.group_at("group", n, n as usize)).collect();
        let array = |group| Array::new(group, vec![0_u8; LARGE], LARGE).unwrap();
        let arrays: Vec<_> = groups.iter().map(array).collect();
        for _ in 0..TASKS {
            for (group, array) in groups.iter().zip(&arrays) {
                let task = group.task("adds").inout(&array.all());
                task.spawn(|mut array| array[LARGE - 1] += 1).unwrap();
            }
        }
        let sums = Log::new();
        for (group, array) in groups.iter().zip(&arrays) {
            let task = group.task("reads").input(&array.all());
            let sums = sums.clone();
            task.spawn(move |array| sums.add(usize::from(array[LARGE - 1]))).unwrap();
        }
        groups.iter().for_each(|group| group.wait_blocking().unwrap());
        assert_eq!(sums.take(), [TASKS; 32], "{workers} workers, {idle}");
    }
}
