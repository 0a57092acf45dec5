//! Reductions: tasks that fold into one region run in any order and at the same time, and all other
//! tasks see the whole result. over 400 lines: the tests share their checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::channel::oneshot;
use talpf_runtime::operator::{And, InOrder, Max, Min, Operator, Or, Product, Sum, Xor};
use talpf_runtime::{Array, Error, Matrix, Reduction, Runtime, Tiling};

use crate::common::{self, Flag, Meeting};

fn read<T: Copy + Send + Sync + 'static>(runtime: &Runtime, array: &Array<T>) -> Vec<T> {
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

/// Lets the one worker of `runtime` do all that it can.
fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

#[test]
fn a_sum_is_there_for_whoever_reads_next() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let sum = Array::new(&runtime, vec![1_000u64; 3], 2).unwrap();
        for round in 1..=20 {
            for task in 0..100u64 {
                let adds = runtime.task("adds").reduction(&sum.all(), Sum);
                adds.spawn(move |mut sum| sum.iter_mut().for_each(|sum| *sum += task)).unwrap();
            }
            assert_eq!(read(&runtime, &sum), [1_000 + round * 4_950; 3]);
        }
    }
}

#[test]
fn tasks_of_one_reduction_run_at_the_same_time() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let sum = Array::new(&runtime, vec![0u64], 1).unwrap();
    let meeting = Meeting::of(2);
    for _ in 0..2 {
        let meeting = Arc::clone(&meeting);
        let task = runtime.task("meets").reduction(&sum.all(), Sum);
        task.spawn(move |mut sum| {
            assert!(meeting.join());
            sum[0] += 1;
        })
        .unwrap();
    }
    assert_eq!(read(&runtime, &sum), [2]);
}

#[test]
fn other_operators_and_other_regions_are_ordered() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let values = Array::new(&runtime, vec![10u64; 4], 2).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("sum").reduction(&values.all(), Sum);
    task.spawn_async(|mut sum| async move {
        sum[0] += 1;
        let _ = gate.await;
    })
    .unwrap();
    let (product, part) = (Flag::default(), Flag::default());
    let (multiplies, adds) = (product.clone(), part.clone());
    let task = runtime.task("product").reduction(&values.all(), Product);
    task.spawn(move |mut product| {
        product[0] *= 3;
        multiplies.set();
    })
    .unwrap();
    let task = runtime.task("part").reduction(&values.region(0..1), Product);
    task.spawn(move |mut product| {
        product[0] *= 2;
        adds.set();
    })
    .unwrap();
    settle(&runtime);
    assert!(!product.is_set() && !part.is_set());
    drop(open);
    assert_eq!(read(&runtime, &values), [66, 10, 10, 10]);
}

#[test]
fn readers_and_writers_are_ordered_before_and_after() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let values = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("writes").output(&values.tile(1));
    task.spawn_async(|mut tile| async move {
        let _ = gate.await;
        tile.fill(5);
    })
    .unwrap();
    let ran = Flag::default();
    let runs = ran.clone();
    let task = runtime.task("sum").reduction(&values.region(1..4), Sum);
    task.spawn(move |mut sum| {
        sum.fill(1);
        runs.set();
    })
    .unwrap();
    let before = runtime.task("reads").input(&values.tile(0)).run(|tile| tile.to_vec()).unwrap();
    settle(&runtime);
    assert!(!ran.is_set());
    drop(open);
    assert_eq!(runtime.block_on(before).unwrap().unwrap(), [0, 1]);
    assert_eq!(read(&runtime, &values), [0, 1, 6, 6]);
}

#[test]
fn a_copy_begins_with_the_identity_or_what_tasks_before_have_left() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let least = Array::new(&runtime, vec![50i32], 1).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("waits").reduction(&least.all(), Min);
    let first = task.run_async(|least| async move {
        let _ = gate.await;
        least[0]
    });
    let first = first.unwrap();
    settle(&runtime);
    let second = runtime.task("next").reduction(&least.all(), Min).run(|mut least| {
        let before = least[0];
        least[0] = 7;
        before
    });
    let third = runtime.task("next").reduction(&least.all(), Min).run(|least| least[0]).unwrap();
    assert_eq!(runtime.block_on(second.unwrap()).unwrap().unwrap(), i32::MAX);
    assert_eq!(runtime.block_on(third).unwrap().unwrap(), 7);
    drop(open);
    assert_eq!(runtime.block_on(first).unwrap().unwrap(), i32::MAX);
    assert_eq!(read(&runtime, &least), [7]);
}

/// Folds `values` into `initial`, a task each.
fn fold<T: Copy + Send + Sync + 'static, O: Operator<T>>(
    initial: T,
    values: &[T],
    operator: impl Fn() -> O,
) -> T {
    let runtime = common::runtime(2);
    let result = Array::new(&runtime, vec![initial], 1).unwrap();
    for &value in values {
        let task = runtime.task("folds").reduction(&result.all(), operator());
        task.spawn(move |mut result| O::combine(&mut result[0], value)).unwrap();
    }
    read(&runtime, &result)[0]
}

#[test]
fn built_in_operators() {
    let _watchdog = common::watchdog();
    assert_eq!(fold(1u8, &[200, 100], || Sum), 45, "integers wrap");
    assert_eq!(fold(2i64, &[3, -5, 7], || Product), -210);
    assert_eq!(fold(9i32, &[3, -5, 7], || Min), -5);
    assert_eq!(fold(-9i32, &[3, -5, 7], || Max), 7);
    assert_eq!(fold(0b1110u16, &[0b0111, 0b1111], || And), 0b0110);
    assert_eq!(fold(0b1000u16, &[0b0001, 0b0010], || Or), 0b1011);
    assert_eq!(fold(0b1000u16, &[0b0001, 0b1001], || Xor), 0);
    assert!(!fold(true, &[true, false, true], || And));
    assert!(fold(false, &[false, true], || Or));
    assert!(fold(true, &[true, true], || Xor));
    assert_eq!(fold(0.5f64, &[1.0, 2.0], || Sum), 3.5);
    assert!(fold(-0.0f64, &[-0.0], || Sum).is_sign_negative());
    assert_eq!(fold(0.5f32, &[4.0, 2.0], || Product), 4.0);
    assert!(fold(f64::NAN, &[1.0, 2.0], || Min).is_nan());
    assert!(fold(1.0f32, &[2.0, f32::NAN, 3.0], || Max).is_nan());
    assert!(fold(0.0f64, &[-0.0, 0.0], || Min).is_sign_negative());
    assert!(fold(-0.0f64, &[0.0, -0.0], || Max).is_sign_positive());
    assert_eq!(fold(f64::NEG_INFINITY, &[-3.0, -2.0], || Max), -2.0);
}

/// Joins two texts: not commutative, and of elements that own memory.
struct Join;

impl Operator<String> for Join {
    fn identity() -> String {
        String::new()
    }

    fn combine(into: &mut String, from: String) {
        into.push_str(&from);
    }
}

#[test]
fn in_order_the_spawns_decide() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let text = Array::new(&runtime, vec![String::from(">"), String::from("<")], 1).unwrap();
        let (mut expected, mut gates) = (String::new(), Vec::new());
        for task in 0..26u8 {
            let character = char::from(b'a' + task);
            let (open, gate) = oneshot::channel::<()>();
            gates.push(open);
            let task = runtime.task("joins").reduction(&text.all(), InOrder(Join));
            task.spawn_async(move |mut text| async move {
                let _ = gate.await;
                text.iter_mut().for_each(|text| text.push(character));
            })
            .unwrap();
            expected.push(character);
        }
        // The last one ends first.
        while let Some(open) = gates.pop() {
            drop(open);
        }
        let read = runtime.task("read").input(&text.all()).run(|text| text.to_vec()).unwrap();
        let read = runtime.block_on(read).unwrap().unwrap();
        assert_eq!(read, [format!(">{expected}"), format!("<{expected}")]);
    }
}

#[test]
fn floats_in_order_have_the_bits_of_the_serial_sum() {
    let _watchdog = common::watchdog();
    let values: Vec<f64> = (0..300).map(|i| 1.0 / f64::from(i * i + 1) - 0.3).collect();
    let serial = values.iter().fold(0.1, |sum, value| sum + value);
    let parallel = fold(0.1, &values, || InOrder(Sum));
    assert_eq!(parallel.to_bits(), serial.to_bits());
}

#[test]
fn a_rectangle_can_be_reduced_into() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let tiling = Tiling::new(2, 2);
    let matrix = Matrix::new(&runtime, vec![1u64; 20], 5, tiling).unwrap();
    for task in 0..10u64 {
        let adds = runtime.task("adds").reduction(&matrix.region(1..3, 1..5), Sum);
        adds.spawn(move |mut part| {
            assert_eq!((part.rows(), part.cols(), part.view().dim()), (2, 4, (2, 4)));
            part.row_mut(0)[0] += task;
            part.view_mut()[(1, 3)] += 1;
        })
        .unwrap();
    }
    let read = runtime.task("read").input(&matrix.all()).run(|all| {
        let rows = (0..all.rows()).map(|row| all.row(row).to_vec());
        rows.collect::<Vec<_>>()
    });
    let rows = runtime.block_on(read.unwrap()).unwrap().unwrap();
    assert_eq!(rows[0], [1; 5]);
    assert_eq!(rows[1], [1, 46, 1, 1, 1]);
    assert_eq!(rows[2], [1, 1, 1, 1, 11]);
}

#[test]
fn several_reductions_in_one_task() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let values = Array::new(&runtime, (1..=64u64).collect(), 4).unwrap();
    let results = Array::new(&runtime, vec![0u64; 3], 1).unwrap();
    let least = Array::new(&runtime, vec![u64::MAX], 1).unwrap();
    for tile in 0..values.tiles() {
        let task = runtime
            .task("statistics")
            .input(&values.tile(tile))
            .reduction((0..3).map(|tile| results.tile(tile)), Sum)
            .reduction(&least.all(), Min);
        task.spawn(|values, mut results, mut least| {
            for value in values.iter() {
                for (power, result) in results.iter_mut().enumerate() {
                    result[0] += value.pow(power as u32);
                }
                least[0] = least[0].min(*value);
            }
        })
        .unwrap();
    }
    assert_eq!(read(&runtime, &results), [64, 2_080, 89_440]);
    assert_eq!(read(&runtime, &least), [1]);
}

#[test]
fn a_guard_counts_when_it_drops_wherever_it_is() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let sum = Array::new(&runtime, vec![1u64], 1).unwrap();
    let moved = runtime.task("moves").reduction(&sum.all(), Sum).run(|sum| sum).unwrap();
    let mut moved: Reduction<u64> = runtime.block_on(moved).unwrap().unwrap();
    let read = runtime.task("read").input(&sum.all()).run(|sum| sum[0]).unwrap();
    settle(&runtime);
    moved[0] += 4;
    drop(moved);
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), 5);
}

#[test]
fn a_task_that_fails_poisons_the_region() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(2);
    let sum = Array::new(&runtime, vec![0u64], 1).unwrap();
    for task in 0..10u64 {
        let adds = runtime.task("adds").reduction(&sum.all(), Sum);
        adds.spawn(move |mut sum| {
            sum[0] += task;
            assert!(task != 5, "the fifth");
        })
        .unwrap();
    }
    let reader = runtime.task("reader").input(&sum.all());
    reader.spawn(|_| panic!("ran on undefined data")).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failed), ["reader", "adds"]);
    runtime.task("sets").output(&sum.all()).spawn(|mut sum| sum[0] = 0).unwrap();
    runtime.task("adds").reduction(&sum.all(), Sum).spawn(|mut sum| sum[0] += 1).unwrap();
    assert_eq!(read(&runtime, &sum), [1]);
}

/// Panics on 13.
struct Picky;

impl Operator<i8> for Picky {
    fn identity() -> i8 {
        0
    }

    fn combine(into: &mut i8, from: i8) {
        assert!(from != 13, "13 is no number");
        *into += from;
    }
}

#[test]
fn a_task_whose_operator_panics_fails() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    for in_order in [false, true] {
        let runtime = common::runtime(2);
        let sum = Array::new(&runtime, vec![0i8], 1).unwrap();
        let task = runtime.task("unlucky");
        if in_order {
            task.reduction(&sum.all(), InOrder(Picky)).spawn(|mut sum| sum[0] = 13).unwrap();
        } else {
            task.reduction(&sum.all(), Picky).spawn(|mut sum| sum[0] = 13).unwrap();
        }
        let reader = runtime.task("reader").input(&sum.all());
        reader.spawn(|_| panic!("ran on undefined data")).unwrap();
        let failed = common::failure(runtime.wait_blocking());
        assert_eq!(common::labels(&failed), ["reader", "unlucky"]);
        assert!(failed.to_string().ends_with("13 is no number"));
        runtime.task("adds").reduction(&sum.all(), Picky).spawn(|mut sum| sum[0] += 1).unwrap();
        runtime.wait_blocking().unwrap();
    }
}

struct Unborn;

impl Operator<u8> for Unborn {
    fn identity() -> u8 {
        panic!("no value changes nothing")
    }

    fn combine(_: &mut u8, _: u8) {}
}

#[test]
fn a_task_without_an_identity_fails_and_lets_go_of_everything() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let (a, b) = (Array::new(&runtime, vec![0u8], 1), Array::new(&runtime, vec![0u8], 1));
    let (a, b) = (a.unwrap(), b.unwrap());
    let task = runtime.task("unborn").inout(&a.all()).reduction(&b.all(), Unborn);
    task.spawn(|_, _| ()).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert!(failed.to_string().ends_with("no value changes nothing"));
    assert_eq!((read(&runtime, &a), read(&runtime, &b)), (vec![0], vec![0]));
}

#[test]
fn a_refused_task_leaves_its_reduction() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let sum = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    for in_order in [false, true] {
        let (open, gate) = oneshot::channel::<()>();
        let task = runtime.task("adds");
        let add = |mut sum: Reduction<u64>| async move {
            let _ = gate.await;
            sum[0] += 1;
        };
        let all = sum.all();
        match in_order {
            true => task.reduction(&all, InOrder(Sum)).spawn_async(add).unwrap(),
            false => task.reduction(&all, Sum).spawn_async(add).unwrap(),
        }
        let twice = [sum.all(), sum.all()];
        let task = runtime.task("twice");
        let refused = match in_order {
            true => task.reduction(twice, InOrder(Sum)).spawn(|_| panic!("ran")),
            false => task.reduction(twice, Sum).spawn(|_| panic!("ran")),
        };
        assert!(matches!(refused, Err(Error::OverlappingAccesses { .. })), "{refused:?}");
        drop(open);
        assert_eq!(read(&runtime, &sum)[0], 1 + u64::from(in_order));
    }
    let beside = runtime.task("outside").reduction(&sum.region(2..9), Sum).spawn(|_| ());
    assert!(matches!(beside, Err(Error::RegionOutOfBounds { .. })), "{beside:?}");
}

#[test]
fn a_cancelled_reduction_lets_go_of_everything() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let group = runtime.group("the group", 1);
    let sum = Array::new(&group, vec![0u64], 1).unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let begun = Arc::clone(&begun);
        let task = group.task("waits").reduction(&sum.all(), Sum);
        task.spawn_async(|mut sum| async move {
            sum[0] += 1;
            begun.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        })
        .unwrap();
    }
    assert!(common::eventually(|| begun.load(Ordering::SeqCst) == 4));
    group.cancel("enough");
    assert!(matches!(group.wait_blocking(), Err(Error::Cancelled { .. })));
    group.task("sets").output(&sum.all()).spawn(|mut sum| sum[0] = 1).unwrap();
    group.task("adds").reduction(&sum.all(), Sum).spawn(|mut sum| sum[0] += 1).unwrap();
    assert_eq!(read(&runtime, &sum), [2]);
}

#[test]
fn an_empty_region_has_an_empty_copy() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let sum = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let task = runtime.task("nothing").reduction(&sum.region(2..2), Sum);
    let len = task.run(|sum| sum.len()).unwrap();
    assert_eq!(runtime.block_on(len).unwrap().unwrap(), 0);
}

#[test]
fn an_array_goes_after_its_reductions() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    for _ in 0..100 {
        let sum = Array::new(&runtime, vec![0u64; 64], 8).unwrap();
        for _ in 0..4 {
            let task = runtime.task("adds").reduction(&sum.region(4..60), Sum);
            task.spawn(|mut sum| sum.iter_mut().for_each(|sum| *sum += 1)).unwrap();
        }
    }
    runtime.wait_blocking().unwrap();
}
