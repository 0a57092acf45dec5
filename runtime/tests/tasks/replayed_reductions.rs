//! Reductions in replayed tasks: complete for a task that reads the region in a step, or after all
//! steps.

use talpf_runtime::operator::{InOrder, Max, Operator, Sum};
use talpf_runtime::{Array, Error, Runtime, current_step};

use crate::common;

fn read(runtime: &Runtime, array: &Array<u64>) -> Vec<u64> {
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

#[test]
fn a_sum_is_there_for_whoever_reads_in_the_same_step() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let cells = Array::new(&runtime, vec![1u64; 30], 3).unwrap();
        let sum = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let declared = runtime.iterate(20, |iteration| {
            for tile in 0..cells.tiles() {
                let task =
                    iteration.task("adds").input(&cells.tile(tile)).reduction(&sum.all(), Sum);
                task.spawn(|cells, mut sum| sum[0] += cells.iter().sum::<u64>())?;
            }
            for tile in 0..cells.tiles() {
                let task = iteration.task("uses").inout(&cells.tile(tile)).input(&sum.all());
                task.spawn(|mut cells, sum| {
                    cells.iter_mut().for_each(|cell| *cell = sum[0] % 1_000 + 1);
                })?;
            }
            let task = iteration.task("resets").output(&sum.all());
            task.spawn(|mut sum| sum[0] = 0)
        });
        declared.unwrap();
        let expected = (0..20).fold(1, |cell, _| 30 * cell % 1_000 + 1);
        assert_eq!(read(&runtime, &cells), [expected; 30]);
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn steps_that_nobody_reads_between_add_up() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let sums = Array::new(&runtime, vec![7u64; 5], 2).unwrap();
        let declared = runtime.iterate_unrolled(101, 2, |iteration, nth| {
            (0..10).try_for_each(|_| {
                let task = iteration.task("adds").reduction(&sums.all(), Sum);
                task.spawn_async(move |mut sums| async move {
                    let step = current_step().unwrap();
                    assert_eq!(step % 2, nth);
                    sums.iter_mut().for_each(|sum| *sum += step as u64);
                    tokio::task::yield_now().await;
                })
            })
        });
        declared.unwrap();
        assert_eq!(read(&runtime, &sums), [7 + 10 * 5_050; 5]);
        runtime.wait_blocking().unwrap();
    }
}

/// Neither associative nor commutative.
struct Digits;

impl Operator<u64> for Digits {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        *into = into.wrapping_mul(10).wrapping_add(from);
    }
}

#[test]
fn the_order_is_that_of_steps_and_tasks_on_request() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let all = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let seen = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let declared = runtime.iterate(10, |iteration| {
            for digit in 0..6 {
                if digit == 4 {
                    // So the last two of a step and the first four of the next go together.
                    let task = iteration.task("looks").input(&all.all()).inout(&seen.all());
                    task.spawn(|all, mut seen| seen[0] ^= all[0])?;
                }
                let task = iteration.task("joins").reduction(&all.all(), InOrder(Digits));
                task.spawn(move |mut copy| {
                    let step = current_step().unwrap();
                    copy[0] = (step as u64 + digit) % 10
                })?;
            }
            Ok::<(), Error>(())
        });
        declared.unwrap();
        let (mut expected, mut seen_sum) = (0, 0);
        for step in 0..10 {
            for digit in 0..6 {
                seen_sum ^= if digit == 4 { expected } else { 0 };
                Digits::combine(&mut expected, (step + digit) % 10);
            }
        }
        assert_eq!((read(&runtime, &all)[0], read(&runtime, &seen)[0]), (expected, seen_sum));
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn different_operators_on_one_region_keep_their_order() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let number = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let declared = runtime.iterate(20, |iteration| {
            for added in 0..4 {
                let task = iteration.task("adds").reduction(&number.all(), Sum);
                task.spawn(move |mut sum| sum[0] += added)?;
            }
            (0..4).try_for_each(|_| {
                let task = iteration.task("greatest").reduction(&number.all(), Max);
                task.spawn(|mut max| {
                    let step = current_step().unwrap();
                    max[0] = 10 * step as u64
                })
            })
        });
        declared.unwrap();
        let expected = (0..20u64).fold(0, |number, step| (number + 6).max(10 * step));
        assert_eq!(read(&runtime, &number), [expected]);
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn two_reductions_of_one_task_on_one_region_are_refused() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let number = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
    let refused = runtime.iterate(3, |iteration| {
        let task = iteration.task("twice").reduction(&number.all(), Sum);
        task.reduction(&number.all(), Sum).spawn(|_, _| panic!("ran"))
    });
    assert!(matches!(refused, Err(Error::OverlappingAccesses { label, .. }) if label == "twice"));
    runtime.wait_blocking().unwrap();
}

/// Panics where it meets 13.
struct Picky;

impl Operator<u64> for Picky {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        assert_ne!(from, 13, "unlucky");
        *into += from;
    }
}

#[test]
fn an_operator_that_panics_stops_the_steps() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    for (workers, in_order) in [(1, false), (2, false), (1, true), (2, true)] {
        let runtime = common::runtime(workers);
        let number = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let declared = runtime.iterate(usize::MAX, |iteration| {
            (0..3).try_for_each(|task| {
                let builder = iteration.task("adds");
                let number = number.all();
                let bring = move |step: usize| if step == 9 && task == 1 { 13 } else { 1 };
                if in_order {
                    let task = builder.reduction(&number, InOrder(Picky));
                    task.spawn(move |mut copy| {
                        let step = current_step().unwrap();
                        copy[0] = bring(step)
                    })
                } else {
                    let task = builder.reduction(&number, Picky);
                    task.spawn(move |mut copy| {
                        let step = current_step().unwrap();
                        copy[0] = bring(step)
                    })
                }
            })
        });
        declared.unwrap();
        let error = runtime.wait_blocking().unwrap_err().to_string();
        assert!(error.contains("unlucky"), "{error}");
        runtime.wait_blocking().unwrap();
    }
}
