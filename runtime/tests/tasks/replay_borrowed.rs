//! Replayed bodies that borrow their guards: the released regions, and the time of the release.

use std::mem::{swap, take};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talpf_runtime::operator::Sum;
use talpf_runtime::{Array, Error, Group, InOut, Runtime, current_step, fail_current_task};

use crate::common::{self, Meeting};

fn numbers(runtime: &Runtime, len: usize) -> Array<u64> {
    Array::new(runtime, vec![0; len], 1).unwrap()
}

fn contents(runtime: &Runtime, all: &Array<u64>) -> Vec<u64> {
    let read = runtime.task("read").input(&all.all()).run(|all| all.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

#[test]
fn what_a_body_borrows_is_held_until_it_returns() {
    let runtime = common::runtime(2);
    let number = numbers(&runtime, 1);
    let inside = Arc::new(Mutex::new(()));
    runtime
        .iterate(200, |iteration| {
            for _ in 0..3 {
                let inside = Arc::clone(&inside);
                let task = iteration.task("alone").inout(&number.all());
                task.spawn_borrowed(move |number| {
                    let _alone = inside.try_lock().expect("nobody else has the region");
                    number[0] += 1;
                    std::thread::yield_now();
                    number[0] += 1;
                })?;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    assert_eq!(contents(&runtime, &number), [1200]);
}

#[test]
fn many_borrowed_accesses_replay() {
    for (workers, tiles) in [31, 32, 33, 70].into_iter().flat_map(|tiles| [(1, tiles), (2, tiles)])
    {
        let runtime = common::runtime(workers);
        let all = numbers(&runtime, tiles);
        runtime
            .iterate(10, |iteration| {
                let many = iteration.task("many").inout((0..tiles).map(|tile| all.tile(tile)));
                many.spawn_borrowed(|all| {
                    all.iter_mut().for_each(|number| number[0] = 3 * number[0] + 1);
                })?;
                (0..tiles).try_for_each(|tile| {
                    let task = iteration.task("one").inout(&all.tile(tile));
                    task.spawn_borrowed(move |one| one[0] ^= tile as u64)
                })
            })
            .unwrap();
        let expected = (0..tiles as u64).map(|tile| (0..10).fold(0, |n, _| (3 * n + 1) ^ tile));
        assert_eq!(contents(&runtime, &all), expected.collect::<Vec<_>>());
    }
}

/// Returns a guard of `number` that its task has given away.
fn lone_guard(group: &Group, number: &Array<u64>) -> InOut<u64> {
    let (send, receive) = std::sync::mpsc::channel();
    let give = group.task("give").inout(&number.all());
    give.spawn(move |guard| send.send(guard).unwrap()).unwrap();
    receive.recv().unwrap()
}

#[test]
fn a_guard_that_is_put_in_anothers_place_is_released_by_itself() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let (own, other) = (numbers(&runtime, 1), numbers(&runtime, 1));
        let place = Arc::new(Mutex::new(Some(lone_guard(&runtime, &other))));
        let taken = Arc::clone(&place);
        runtime
            .iterate(1, |iteration| {
                iteration.task("swap").inout(&own.all()).spawn_borrowed(move |guard| {
                    let mut place = taken.lock().unwrap();
                    swap(guard, place.as_mut().unwrap());
                })
            })
            .unwrap();
        let read = runtime.task("read").input(&other.all()).run(|other| other[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), 0, "the other is released");
        runtime.task("times").inout(&own.all()).spawn(|mut own| own[0] *= 7).unwrap();
        let mut own_guard = place.lock().unwrap().take().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        own_guard[0] += 3;
        drop(own_guard);
        assert_eq!(contents(&runtime, &own), [21]);
    }
}

#[test]
fn guards_that_are_exchanged_within_a_task_are_all_released() {
    let runtime = common::runtime(2);
    let all = numbers(&runtime, 3);
    runtime
        .iterate(20, |iteration| {
            let task = iteration.task("swap").inout(&all.tile(0)).inout(&all.tile(1));
            task.inout([all.tile(2)]).spawn_borrowed(|first, second, third| {
                let step = current_step().unwrap();
                swap(first, second);
                swap(first, &mut third[0]);
                (first[0], second[0], third[0][0]) = (second[0] + 1, third[0][0], step as u64);
            })
        })
        .unwrap();
    // The guards are those of tiles 2, 0 and 1 then.
    let serial = (0..20).fold([0, 0, 0], |[zero, one, _], step| [one, step, zero + 1]);
    assert_eq!(contents(&runtime, &all), serial);
}

#[test]
fn a_guard_that_is_taken_out_releases_its_region_when_it_drops() {
    let runtime = common::runtime(2);
    let all = numbers(&runtime, 2);
    let meeting = Meeting::of(2);
    runtime
        .iterate(1, |iteration| {
            let other = Arc::clone(&meeting);
            let first = iteration.task("first").inout([all.tile(0), all.tile(1)]);
            first.spawn_borrowed(move |guards| {
                drop(take(guards));
                assert!(other.join());
            })?;
            let other = Arc::clone(&meeting);
            let second = iteration.task("second").inout(&all.all());
            second.spawn(move |_all| assert!(other.join()))
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn borrowed_copies_are_reduced_and_lent_regions_passed_on() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let (sum, all) = (numbers(&runtime, 1), numbers(&runtime, 4));
        runtime
            .iterate(50, |iteration| {
                for tile in 0..4 {
                    let task = iteration.task("add").reduction(&sum.all(), Sum);
                    let task = task.inout(&all.tile(tile));
                    task.spawn_borrowed(move |sum, one| {
                        let step = current_step().unwrap();
                        one[0] += tile as u64;
                        sum[0] += step as u64 + one[0];
                    })?;
                }
                let read = iteration.task("read").weak_inout(&all.all()).input(&sum.all());
                read.spawn_borrowed(|_lent, _sum| ())
            })
            .unwrap();
        let steps = 0..50u64;
        let expected = steps.map(|step| 4 * step + (step + 1) * (1 + 2 + 3)).sum::<u64>();
        assert_eq!(contents(&runtime, &sum), [expected]);
    }
}

#[test]
fn a_borrowing_body_that_fails_or_panics_stops_the_steps() {
    for (workers, tiles, panics) in
        [(1, 1, false), (2, 1, false), (1, 1, true), (2, 1, true), (2, 40, false), (2, 40, true)]
    {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, tiles + 1);
        runtime
            .iterate(1_000, |iteration| {
                let task = iteration.task("fails").inout((0..tiles).map(|tile| number.tile(tile)));
                task.spawn_borrowed(move |numbers| {
                    let step = current_step().unwrap();
                    numbers[0][0] += 1;
                    if step == 7 {
                        assert!(!panics, "broken");
                        fail_current_task("broken").unwrap();
                    }
                })?;
                let task = iteration
                    .task("next")
                    .input(&number.region(..tiles))
                    .inout(&number.tile(tiles));
                task.spawn_borrowed(|_, _| {
                    let step = current_step().unwrap();
                    assert!(step < 7, "ran")
                })
            })
            .unwrap();
        let error = runtime.wait_blocking().unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains("fails"), "{error}");
        assert!(contents(&runtime, &number)[0] <= 8);
    }
}

#[test]
fn a_guard_that_moves_into_a_list_before_it_is_released_there() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let (own, other) = (numbers(&runtime, 2), numbers(&runtime, 1));
        let spare = Mutex::new(Some(lone_guard(&runtime, &other)));
        runtime
            .iterate(3, |iteration| {
                let spare = Mutex::new(spare.lock().unwrap().take());
                let task = iteration.task("move").inout([own.tile(0)]).inout(&own.tile(1));
                task.spawn_borrowed(move |list, last| {
                    if let Some(spare) = spare.lock().unwrap().take() {
                        list.push(std::mem::replace(last, spare));
                    }
                    list.iter_mut().for_each(|number| number[0] += 1);
                    last[0] += 1;
                })
            })
            .unwrap();
        assert_eq!(contents(&runtime, &own), [3, 3]);
        assert_eq!(contents(&runtime, &other), [1]);
        runtime.shut_down().unwrap();
    }
}
