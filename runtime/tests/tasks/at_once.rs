//! Uses of regions at once, without a task.

use std::sync::mpsc;

use proptest::prelude::*;
use talpf_runtime::{Array, Config, Group, Mode, Region, Runtime, read_if_free, while_free};

fn runtime() -> Runtime {
    Runtime::new(Config { workers: 2, ..Config::default() }).unwrap()
}

fn is_free<D>(group: &Group, region: &Region<'_, u64, D>, mode: Mode) -> bool {
    while_free(group, region, mode, || ()).is_some()
}

fn read(group: &Group, region: &Region<'_, u64>) -> Option<Vec<u64>> {
    let mut elements = Vec::new();
    read_if_free(group, region, |row| elements.extend_from_slice(row)).map(|()| elements)
}

#[test]
fn a_region_is_free_while_no_task_that_conflicts_is_left() {
    let runtime = runtime();
    let group = runtime.group("at once", 0);
    let numbers = Array::new(&group, vec![0u64; 8], 4).unwrap();
    let (go, gone) = mpsc::channel::<()>();
    let task = group.task("writes").inout(&numbers.region(2..3));
    let written = task.run(move |mut numbers| {
        gone.recv().unwrap();
        numbers[0] = 7;
    });
    assert_eq!(read(&group, &numbers.region(0..4)), None);
    assert_eq!(read(&group, &numbers.region(2..2)), Some(vec![]));
    assert_eq!(read(&group, &numbers.region(0..2)), Some(vec![0, 0]));
    assert_eq!(read(&group, &numbers.region(3..6)), Some(vec![0, 0, 0]));
    go.send(()).unwrap();
    runtime.block_on(written.unwrap()).unwrap().unwrap();
    assert_eq!(read(&group, &numbers.region(1..4)), Some(vec![0, 7, 0]));
}

#[test]
fn readers_exclude_only_changes() {
    let runtime = runtime();
    let group = runtime.group("at once", 0);
    let numbers = Array::new(&group, vec![5u64; 8], 8).unwrap();
    let (go, gone) = mpsc::channel::<()>();
    let task = group.task("reads").input(&numbers.all());
    let read_by_task = task.run(move |_| gone.recv().unwrap());
    assert_eq!(read(&group, &numbers.region(6..)), Some(vec![5, 5]));
    assert!(!is_free(&group, &numbers.all(), Mode::InOut));
    assert!(!is_free(&group, &numbers.region(6..), Mode::Out));
    go.send(()).unwrap();
    runtime.block_on(read_by_task.unwrap()).unwrap().unwrap();
    assert!(is_free(&group, &numbers.all(), Mode::InOut));
}

#[test]
fn concurrent_and_commutative_uses_are_for_tasks() {
    let runtime = runtime();
    let group = runtime.group("at once", 0);
    let numbers = Array::new(&group, vec![5u64; 8], 8).unwrap();
    assert!(!is_free(&group, &numbers.all(), Mode::Concurrent));
    assert!(!is_free(&group, &numbers.all(), Mode::Commutative));
    let (go, gone) = mpsc::channel::<()>();
    let task = group.task("shares").concurrent(&numbers.all());
    let shared = task.run(move |_| gone.recv().unwrap());
    assert!(!is_free(&group, &numbers.all(), Mode::In));
    go.send(()).unwrap();
    runtime.block_on(shared.unwrap()).unwrap().unwrap();
}

#[test]
fn a_region_outside_its_array_or_of_another_group_is_not_free() {
    let runtime = runtime();
    let [group, other] = [0, 1].map(|number| runtime.group("at once", number));
    let numbers = Array::new(&group, vec![5u64; 8], 8).unwrap();
    assert!(!is_free(&group, &numbers.region(3..9), Mode::In));
    assert!(!is_free(&other, &numbers.all(), Mode::In));
    assert!(is_free(&group, &numbers.all(), Mode::In));
}

#[test]
fn a_poisoned_region_is_not_free() {
    let runtime = runtime();
    let group = runtime.group("at once", 0);
    let numbers = Array::new(&group, vec![5u64; 8], 8).unwrap();
    let task = group.task("fails").output(&numbers.region(0..4));
    let failed = task.run(|_| panic!("for the test"));
    runtime.block_on(failed.unwrap()).unwrap().unwrap_err();
    assert!(!is_free(&group, &numbers.region(3..5), Mode::In));
    assert!(is_free(&group, &numbers.region(4..), Mode::In));
    runtime.block_on(group.wait()).unwrap().unwrap_err();
}

/// Uses of elements from a first one on, so many: read at once, or changed by a task.
fn uses() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((0..12usize, 1..6usize, any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reads_at_once_come_where_a_task_would(uses in uses()) {
        let runtime = runtime();
        let group = runtime.group("at once", 0);
        let numbers = Array::new(&group, vec![1u64; 16], 5).unwrap();
        let mut expected = vec![1u64; 16];
        for (nth, &(first, count, reads)) in uses.iter().enumerate() {
            let end = (first + count).min(16);
            let region = numbers.region(first..end);
            let change = move |element: &mut u64| *element = element.wrapping_mul(31) + nth as u64;
            if reads {
                if let Some(read) = read(&group, &region) {
                    prop_assert_eq!(&read[..], &expected[first..end]);
                }
                continue;
            }
            expected[first..end].iter_mut().for_each(change);
            group.task("change").inout(&region).spawn(move |mut part| {
                std::thread::yield_now();
                part.iter_mut().for_each(change);
            }).unwrap();
        }
        let all = group.task("all").input(&numbers.all()).run(|all| all.to_vec()).unwrap();
        prop_assert_eq!(runtime.block_on(all).unwrap().unwrap(), expected);
    }
}
