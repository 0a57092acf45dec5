//! Loops of tasks: every index is in one chunk, and chunks are ordered by their accesses.

use talpf_runtime::operator::{InOrder, Sum};
use talpf_runtime::{Array, Children, Error, Region, Scope, current_step};

use crate::common::{self, Log};

#[test]
fn chunks_cover_the_range_in_order() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    for (range, grain) in [(0..10, 3), (5..6, 1), (7..20, 100), (0..8, 4)] {
        let chunks = Log::new();
        let spawned =
            runtime.task_loop("loop", range.clone()).grain(grain).for_each(|task, chunk| {
                chunks.add(chunk);
                task.spawn(|| ())
            });
        spawned.unwrap();
        let chunks = chunks.take();
        let indices: Vec<usize> = chunks.iter().cloned().flatten().collect();
        assert_eq!(indices, range.clone().collect::<Vec<_>>());
        let full = chunks.iter().take(chunks.len().saturating_sub(1));
        assert!(full.into_iter().all(|chunk| chunk.len() == grain), "{chunks:?}");
    }
    let end = usize::MAX;
    runtime.task_loop("far", end - 3..end).grain(2).for_each(|task, _| task.spawn(|| ())).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn without_a_grain_there_are_chunks_for_every_worker() {
    let _watchdog = common::watchdog();
    for (workers, expected) in [(1, 4), (2, 8), (8, 32)] {
        let runtime = common::runtime(workers);
        let mut chunks = 0;
        let spawned = runtime.task_loop("loop", 0..1000).for_each(|task, _| {
            chunks += 1;
            task.spawn(|| ())
        });
        spawned.unwrap();
        assert!((expected - 1..=expected).contains(&chunks), "{chunks} chunks");
        runtime
            .task_loop("short", 0..2)
            .for_each(|task, chunk| {
                task.spawn(move || {
                    assert_eq!(chunk.len(), 1);
                })
            })
            .unwrap();
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_grain_of_0_is_refused() {
    let runtime = common::runtime(1);
    let refused = runtime.task_loop("loop", 0..10).grain(0).for_each(|_, _| panic!("declared"));
    assert!(matches!(refused, Err(Error::Size { value: 0, limit: 1, .. })), "{refused:?}");
}

#[test]
fn the_first_error_ends_the_loop() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 6], 2).unwrap();
    let mut declared = 0;
    let refused = runtime.task_loop("loop", 0..10).grain(2).for_each(|task, chunk| {
        declared += 1;
        task.inout(&array.region(chunk)).spawn(|mut part| part.fill(1))
    });
    assert!(matches!(refused, Err(Error::RegionOutOfBounds { .. })), "{refused:?}");
    assert_eq!(declared, 4);
    let sum = runtime.task("read").input(&array.all()).run(|all| all.iter().sum::<u64>()).unwrap();
    assert_eq!(runtime.block_on(sum).unwrap().unwrap(), 6, "the tasks before it run");
}

#[test]
fn loops_follow_each_other_chunk_by_chunk() {
    let _watchdog = common::watchdog();
    const LEN: usize = 1000;
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let a = Array::new(&runtime, vec![0.0f64; LEN], 64).unwrap();
        let b = Array::new(&runtime, vec![0.0f64; LEN], 64).unwrap();
        let sum = Array::new(&runtime, vec![0.0f64], 1).unwrap();
        runtime
            .task_loop("fill", 0..LEN)
            .grain(64)
            .for_each(|task, chunk| {
                task.output(&a.region(chunk.clone())).spawn(move |mut a| {
                    a.iter_mut().zip(chunk).for_each(|(a, at)| *a = 1.0 / (at as f64 + 0.7));
                })
            })
            .unwrap();
        for _ in 0..10 {
            for (from, into) in [(&a, &b), (&b, &a)] {
                let smooth = runtime.task_loop("smooth", 0..LEN).grain(100);
                let spawned = smooth.for_each(|task, chunk| {
                    let halo = chunk.start.saturating_sub(1)..(chunk.end + 1).min(LEN);
                    let offset = chunk.start - halo.start;
                    let task = task.input(&from.region(halo)).output(&into.region(chunk));
                    task.spawn(move |from, mut into| {
                        for (at, into) in into.iter_mut().enumerate() {
                            let at = at + offset;
                            let left = from[at.saturating_sub(1)];
                            let right = from[(at + 1).min(from.len() - 1)];
                            *into = (left + from[at] + right) / 3.0;
                        }
                    })
                });
                spawned.unwrap();
            }
        }
        let adds = runtime.task_loop("sum", 0..LEN).grain(1);
        let spawned = adds.for_each(|task, chunk| {
            let task = task.input(&a.region(chunk)).reduction(&sum.all(), InOrder(Sum));
            task.spawn(|a, mut sum| sum[0] += a[0])
        });
        spawned.unwrap();
        let read = runtime.task("read").input(&sum.all()).run(|sum| sum[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap().to_bits(), serial(LEN).to_bits());
    }
}

fn serial(len: usize) -> f64 {
    let mut a: Vec<f64> = (0..len).map(|at| 1.0 / (at as f64 + 0.7)).collect();
    for _ in 0..20 {
        let at = |at: usize| a[at.min(len - 1)];
        a = (0..len).map(|i| (at(i.saturating_sub(1)) + at(i) + at(i + 1)) / 3.0).collect();
    }
    a.iter().fold(0.0, |sum, value| sum + value)
}

#[test]
fn regions_may_come_from_any_iterator() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let values = Array::new(&runtime, (0..12u64).collect(), 2).unwrap();
    let sums = Array::new(&runtime, vec![0u64; 3], 1).unwrap();
    let every = |step: usize, start: usize| -> Vec<Region<'_, u64>> {
        (start..values.tiles()).step_by(step).map(|tile| values.tile(tile)).collect()
    };
    runtime
        .task_loop("gather", 0..3)
        .grain(1)
        .for_each(|task, chunk| {
            let task = task.input(every(3, chunk.start)).output(chunk.map(|at| sums.tile(at)));
            task.spawn(|values, mut sums| {
                sums[0][0] = values.iter().flat_map(|tile| tile.iter()).sum();
            })
        })
        .unwrap();
    let read = runtime.task("read").input(&sums.all()).run(|sums| sums.to_vec()).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), [14, 22, 30]);
}

#[test]
#[allow(clippy::reversed_empty_ranges, reason = "what is asked here")]
fn an_empty_range_has_no_tasks() {
    let runtime = common::runtime(1);
    for range in [3..3, 9..3] {
        for grain in [None, Some(4)] {
            let tasks = runtime.task_loop("loop", range.clone());
            let tasks = if let Some(grain) = grain { tasks.grain(grain) } else { tasks };
            tasks.for_each(|_, chunk| -> Result<(), Error> { panic!("{chunk:?}") }).unwrap();
        }
    }
    assert_eq!(runtime.outstanding(), 0);
}

#[test]
fn a_loop_of_children_lies_in_what_the_parent_lends() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![1u64; 100], 10).unwrap();
        for is_final in [false, true] {
            let task = runtime.task("parent").inout(&array.region(10..90)).final_if(is_final);
            let ends = task.run_async(|part| async move {
                let (children, part) = (Children::of_current_task()?, part.lend());
                children.task_loop("double", 0..80).grain(10).for_each(|task, chunk| {
                    let task = task.inout(&part.region(chunk));
                    task.spawn(|mut part| part.iter_mut().for_each(|value| *value *= 2))
                })?;
                children.wait().await
            });
            runtime.block_on(ends.unwrap()).unwrap().unwrap().unwrap();
        }
        let sum = runtime.task("read").input(&array.all()).run(|all| all.iter().sum::<u64>());
        assert_eq!(runtime.block_on(sum.unwrap()).unwrap().unwrap(), 20 + 80 * 4);
    }
}

#[test]
fn a_loop_may_be_part_of_a_graph_that_repeats() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0usize; 100], 10).unwrap();
    let repeated = runtime.iterate(5, |iteration| {
        iteration.task_loop("add", 0..100).grain(7).for_each(|task, chunk| {
            let task = task.inout(&array.region(chunk));
            task.spawn(|mut part| {
                let step = current_step().unwrap();
                part.iter_mut().for_each(|at| *at += step)
            })
        })
    });
    repeated.unwrap_or_else(|error: Error| panic!("{error}"));
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), [10; 100]);
}

#[test]
fn a_chunk_that_fails_poisons_its_part_and_a_cancelled_loop_ends() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0u64; 8], 2).unwrap();
    let spawn = |fails: usize| {
        runtime.task_loop("loop", 0..8).grain(2).for_each(|task, chunk| {
            task.inout(&array.region(chunk.clone())).spawn(move |mut part| {
                assert!(!chunk.contains(&fails), "no way");
                part.fill(1);
            })
        })
    };
    spawn(5).unwrap();
    spawn(100).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failed), ["loop", "loop"]);
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), [1, 1, 1, 1, 0, 0, 1, 1]);
    runtime.cancel("enough");
    spawn(100).unwrap();
    assert!(matches!(runtime.wait_blocking(), Err(Error::Cancelled { .. })));
}
