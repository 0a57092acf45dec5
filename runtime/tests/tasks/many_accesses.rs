//! Tasks with more accesses and more predecessors than one record holds.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use talpf_runtime::Array;

const MANY: usize = 50_000;

#[test]
fn a_task_has_any_number_of_accesses() {
    let runtime = common::runtime(2);
    for count in [0, 1, 5, 6, 7, 8, 12, 13, 100] {
        let array = Array::new(&runtime, vec![0usize; 2 * count], 1).unwrap();
        for round in 0..3 {
            let ins = (0..count).map(|at| array.tile(at));
            let outs = (0..count).map(|at| array.tile(count + at));
            let task = runtime.task("copy").input(ins).output(outs);
            task.spawn(move |from, to| {
                assert_eq!((from.len(), to.len()), (count, count));
                for (at, (from, mut to)) in from.into_iter().zip(to).enumerate() {
                    assert_eq!(from[0], if round == 0 { 0 } else { at + round });
                    to[0] = from[0];
                }
            })
            .unwrap();
            let task = runtime.task("next").inout((0..count).map(|at| array.tile(at)));
            task.spawn(move |mut tiles| {
                tiles.iter_mut().enumerate().for_each(|(at, tile)| tile[0] = at + round + 1);
            })
            .unwrap();
        }
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_task_has_any_number_of_predecessors() {
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0u8; 1], 1).unwrap();
    for readers in [7, 8, 9, 16, 17, 1000] {
        let read = Arc::new(AtomicUsize::new(0));
        for _ in 0..readers {
            let read = read.clone();
            let task = runtime.task("reader").input(&array.all());
            task.spawn(move |_all| {
                read.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        }
        let writer = runtime.task("writer").inout(&array.all());
        let seen = writer.run(move |_all| read.load(Ordering::Relaxed)).unwrap();
        assert_eq!(runtime.block_on(seen).unwrap().unwrap(), readers);
    }
}

#[test]
fn a_task_with_very_many_accesses_is_spawned_in_reasonable_time() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![1usize; 2 * MANY], 1).unwrap();
    let start = Instant::now();
    let task = runtime.task("sum").input((0..MANY).map(|at| array.tile(at)));
    let task = task.output((MANY..2 * MANY).map(|at| array.tile(at)));
    let sum = task.run(|from, _to| from.iter().map(|tile| tile[0]).sum::<usize>()).unwrap();
    assert_eq!(runtime.block_on(sum).unwrap().unwrap(), MANY);
    // Some 100 ms; a quarter of an hour if every search for an access walks through all before it.
    assert!(start.elapsed() < common::PATIENCE, "took {:?}", start.elapsed());
}
