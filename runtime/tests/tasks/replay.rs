//! Iterations that are replayed: order, overlap, release.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc;
use talpf_runtime::{Array, Error, IdlePolicy, InOut, PendingEvent, Runtime, Token, current_step};

use crate::common::{Counted, Drops, Log, Meeting};

fn numbers(runtime: &Runtime, len: usize) -> Array<u64> {
    Array::new(runtime, vec![0; len], 1).unwrap()
}

#[test]
fn bodies_get_the_numbers_of_the_steps_in_order() {
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 1);
        let log = Log::new();
        let steps = log.clone();
        runtime
            .iterate(100, |iteration| {
                let task = iteration.task("note").inout(&number.all());
                task.spawn(move |_number| steps.add(current_step().unwrap()))
            })
            .unwrap();
        runtime.wait_blocking().unwrap();
        assert_eq!(log.take(), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn no_steps_declare_nothing() {
    let runtime = common::runtime(1);
    runtime.iterate::<Error>(0, |_| panic!("declared")).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn an_unroll_of_zero_is_refused() {
    let runtime = common::runtime(1);
    let refused = runtime.iterate_unrolled::<Error>(3, 0, |_, _| Ok(()));
    assert!(matches!(refused, Err(Error::Size { value: 0, .. })));
}

#[test]
fn steps_without_tasks_end() {
    let runtime = common::runtime(1);
    runtime.iterate::<Error>(1000, |_| Ok(())).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn tasks_without_accesses_run_in_every_step() {
    let runtime = common::runtime(2);
    let runs = Arc::new(AtomicUsize::new(0));
    runtime
        .iterate(50, |iteration| {
            for _ in 0..3 {
                let runs = Arc::clone(&runs);
                iteration.task("count").spawn(move || {
                    runs.fetch_add(1, Ordering::Relaxed);
                })?;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 150);
}

#[test]
fn what_is_spawned_before_and_after_keeps_its_place() {
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 1);
        for _ in 0..20 {
            let add = |by| {
                let task = runtime.task("add").inout(&number.all());
                task.spawn(move |mut number| {
                    number[0] = number[0].wrapping_mul(3).wrapping_add(by)
                })
                .unwrap();
            };
            add(1);
            runtime
                .iterate(10, |iteration| {
                    let task = iteration.task("step").inout(&number.all());
                    task.spawn(|mut number| {
                        let step = current_step().unwrap();
                        number[0] = number[0].wrapping_mul(5).wrapping_add(step as u64);
                    })
                })
                .unwrap();
            add(2);
        }
        let mut expected = 0u64;
        for _ in 0..20 {
            expected = expected.wrapping_mul(3).wrapping_add(1);
            for step in 0..10 {
                expected = expected.wrapping_mul(5).wrapping_add(step);
            }
            expected = expected.wrapping_mul(3).wrapping_add(2);
        }
        let read = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), expected);
    }
}

#[test]
fn consecutive_steps_overlap() {
    let runtime = common::runtime(2);
    let (fast, slow) = (numbers(&runtime, 1), numbers(&runtime, 1));
    let meeting = Meeting::of(2);
    runtime
        .iterate(2, |iteration| {
            let other = Arc::clone(&meeting);
            iteration.task("slow").inout(&slow.all()).spawn(move |_slow| {
                let step = current_step().unwrap();
                // The first step of this task meets the second step of the other.
                assert!(step > 0 || other.join());
            })?;
            let other = Arc::clone(&meeting);
            iteration.task("fast").inout(&fast.all()).spawn(move |_fast| {
                let step = current_step().unwrap();
                assert!(step == 0 || other.join());
            })
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn inline_tasks_come_before_queued_ones() {
    const STEPS: usize = 800;
    let runtime = common::runtime(1);
    let (number, log) = (numbers(&runtime, 1), Log::new());
    runtime
        .iterate(STEPS, |iteration| {
            let (queued, inline) = (log.clone(), log.clone());
            iteration.task("add").inout(&number.all()).spawn(|mut number| number[0] += 1)?;
            let task = iteration.task("queued").input(&number.all());
            task.spawn(move |_number| queued.add("queued"))?;
            let task = iteration.task("inline").inline().input(&number.all());
            task.spawn(move |_number| inline.add("inline"))
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
    let entries = log.take();
    assert_eq!(entries.len(), 2 * STEPS);
    // Once in 64 rounds a worker takes the task that has been queued longest.
    let late = entries.chunks(2).filter(|step| step[0] == "queued").count();
    assert!(late < STEPS / 16, "the queued task came first in {late} of {STEPS} steps");
}

#[test]
fn a_guard_that_drops_in_the_body_releases_its_region() {
    let runtime = common::runtime(2);
    let number = numbers(&runtime, 1);
    let meeting = Meeting::of(2);
    runtime
        .iterate(1, |iteration| {
            let other = Arc::clone(&meeting);
            iteration.task("first").inout(&number.all()).spawn(move |number| {
                drop(number);
                assert!(other.join());
            })?;
            let other = Arc::clone(&meeting);
            let second = iteration.task("second").inout(&number.all());
            second.spawn(move |_number| assert!(other.join()))
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn guards_that_drop_in_the_body_release_what_a_task_waits_for_together() {
    for accesses in [2, 7, 31] {
        let runtime = common::runtime(2);
        let all = numbers(&runtime, accesses);
        let meeting = Meeting::of(2);
        runtime
            .iterate(1, |iteration| {
                let other = Arc::clone(&meeting);
                let first = iteration.task("first").inout((0..accesses).map(|tile| all.tile(tile)));
                first.spawn(move |mut guards| {
                    drop(guards.pop());
                    drop(guards.remove(0));
                    assert!(other.join(), "{accesses} accesses");
                })?;
                let other = Arc::clone(&meeting);
                let second = iteration.task("second").inout([all.tile(0), all.tile(accesses - 1)]);
                second.spawn(move |_guards| assert!(other.join()))
            })
            .unwrap();
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_task_does_not_begin_a_step_inside_the_one_before() {
    let runtime = common::runtime(2);
    let number = numbers(&runtime, 1);
    let inside = Arc::new(AtomicUsize::new(0));
    runtime
        .iterate(200, |iteration| {
            let inside = Arc::clone(&inside);
            iteration.task("alone").inout(&number.all()).spawn(move |number| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                drop(number);
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_guard_that_has_travelled_holds_its_region() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 1);
        let (send, receive) = mpsc::unbounded::<InOut<u64>>();
        runtime
            .iterate(50, |iteration| {
                let send = send.clone();
                iteration.task("give").inout(&number.all()).spawn(move |number| {
                    send.unbounded_send(number).unwrap();
                })
            })
            .unwrap();
        drop(send);
        let keeper = std::thread::spawn(move || {
            let guards = futures::executor::block_on_stream(receive);
            guards.map(|mut number| number[0] += 1).count()
        });
        let read = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), 50);
        runtime.wait_blocking().unwrap();
        assert_eq!(keeper.join().unwrap(), 50);
    }
}

#[test]
fn events_and_awaits_hold_a_step_back() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 1);
        let group = (*runtime).clone();
        let log = Log::new();
        runtime
            .iterate(5, |iteration| {
                let entries = log.clone();
                let task = iteration.task("wait").inout(&number.all());
                task.spawn_async(move |number| {
                    let step = current_step().unwrap();
                    let (group, entries) = (group.clone(), entries.clone());
                    async move {
                        group.wait_for(Duration::from_micros(100)).await;
                        entries.add((step, "body"));
                        drop(number);
                        let event = PendingEvent::of_current_task().unwrap();
                        let later = group.task("later").spawn(move || {
                            entries.add((step, "event"));
                            drop(event);
                        });
                        later.unwrap();
                    }
                })
            })
            .unwrap();
        runtime.wait_blocking().unwrap();
        let expected = (0..5).flat_map(|step| [(step, "body"), (step, "event")]);
        assert_eq!(log.take(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn tasks_of_many_accesses_replay() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let all = numbers(&runtime, 70);
        runtime
            .iterate(10, |iteration| {
                let tiles = || (0..70).map(|tile| all.tile(tile));
                iteration.task("many").inout(tiles()).spawn(|mut all| {
                    all.iter_mut().for_each(|number| number[0] = 3 * number[0] + 1);
                })?;
                for tile in 0..70 {
                    let task = iteration.task("one").inout(&all.tile(tile));
                    task.spawn(move |mut one| one[0] ^= tile as u64)?;
                }
                Ok::<(), Error>(())
            })
            .unwrap();
        let read = runtime.task("read").input(&all.all()).run(|all| all.to_vec()).unwrap();
        let expected = (0..70u64).map(|tile| (0..10).fold(0, |n, _| (3 * n + 1) ^ tile));
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_worker_that_is_busy_holds_up_no_task_that_prefers_it() {
    let runtime = common::runtime(2);
    let cells = numbers(&runtime, 200);
    let (done, waits) = std::sync::mpsc::channel();
    let outcome = runtime.task("busy").run(move || waits.recv_timeout(Duration::from_secs(60)));
    runtime
        .iterate(50, |iteration| {
            (0..200).try_for_each(|cell| {
                let task = iteration.task("add").inout(&cells.tile(cell));
                let task = task.input(&cells.tile((cell + 1) % 200));
                task.spawn(|mut sum, next| sum[0] += next[0] + 1)
            })
        })
        .unwrap();
    let send = move |cells: talpf_runtime::In<u64>| done.send(cells[0]).unwrap();
    runtime.task("send").input(&cells.all()).spawn(send).unwrap();
    assert!(runtime.block_on(outcome.unwrap()).unwrap().unwrap().is_ok(), "nobody ran its tasks");
}

#[test]
fn tasks_that_never_run_at_the_same_time_stay_with_one_worker() {
    const STEPS: u64 = 1_000;
    let runtime = common::unwatched(2, IdlePolicy::Park);
    let number = numbers(&runtime, 1);
    runtime
        .iterate(STEPS as usize, |iteration| {
            (0..2).try_for_each(|_| {
                let task = iteration.task("add").inout(&number.all());
                task.spawn(|mut number| number[0] += 1)
            })
        })
        .unwrap();
    let added = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
    assert_eq!(runtime.block_on(added).unwrap().unwrap(), 2 * STEPS);
    let steals = runtime.metrics().steals;
    assert!(steals < STEPS / 2, "{steals} steals in {STEPS} steps of two tasks");
}

#[test]
fn accesses_that_exclude_each_other_are_refused() {
    let runtime = common::runtime(1);
    let number = numbers(&runtime, 2);
    let refused = runtime.iterate(3, |iteration| {
        let task = iteration.task("twice").input(&number.tile(1)).inout(&number.all());
        task.spawn(|_one, _all| ())
    });
    assert!(matches!(refused, Err(Error::OverlappingAccesses { label, .. }) if label == "twice"));
    let refused = runtime.iterate(3, |iteration| {
        iteration.task("outside").input(&number.region(1..3)).spawn(|_| ())
    });
    assert!(matches!(refused, Err(Error::RegionOutOfBounds { .. })));
    runtime.wait_blocking().unwrap();
}

#[test]
fn what_bodies_capture_is_gone_when_the_wait_ends() {
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let token = Token::new(&runtime).unwrap();
        let drops = Drops::default();
        for _ in 0..20 {
            let kept = drops.items(3);
            runtime
                .iterate(4, |iteration| {
                    kept.into_iter().try_for_each(|kept| {
                        let task = iteration.task("keeps").input(&token.region());
                        task.spawn(move |_token| {
                            let _kept: &Counted = &kept;
                        })
                    })
                })
                .unwrap();
            runtime.wait_blocking().unwrap();
        }
        assert_eq!(drops.count(), 60);
    }
}

#[test]
fn arrays_live_as_long_as_their_steps() {
    let runtime = common::runtime(2);
    let sum = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let numbers = Array::new(&runtime, vec![1u64; 64], 16).unwrap();
        let sum = Arc::clone(&sum);
        runtime
            .iterate(20, |iteration| {
                let task = iteration.task("sum").inout(&numbers.all());
                task.spawn(move |numbers| {
                    sum.fetch_add(numbers.iter().sum::<u64>() as usize, Ordering::Relaxed);
                })
            })
            .unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), 50 * 20 * 64);
}
