//! Replayed steps that fail or are cancelled: they stop, and the wait reports the reason.

use talpf_runtime::{Array, Error, Runtime, current_step, fail_current_task};

use crate::common::{self, Counted, Drops, Flag};

fn numbers(runtime: &Runtime, len: usize) -> Array<u64> {
    Array::new(runtime, vec![0; len], 1).unwrap()
}

/// Returns the chain of the failure that a wait reports, from the last task to the first.
fn failed_tasks(error: Error) -> Vec<String> {
    match error {
        Error::TaskFailed(failure) => failure.chain().map(|f| f.label.clone()).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_panic_stops_the_steps_and_names_the_chain() {
    common::quiet_panics();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 1);
        let late = Flag::default();
        runtime
            .iterate(1000, |iteration| {
                let task = iteration.task("breaks").inout(&number.all());
                task.spawn(|mut number| {
                    let step = current_step().unwrap();
                    number[0] += 1;
                    assert!(step < 3, "enough");
                })?;
                let late = late.clone();
                let task = iteration.task("follows").input(&number.all());
                task.spawn(move |_number| {
                    let step = current_step().unwrap();
                    if step >= 3 {
                        late.set();
                    }
                })
            })
            .unwrap();
        let read = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        let unread = runtime.block_on(read).unwrap().unwrap_err();
        assert_eq!(failed_tasks(unread), ["read", "breaks"]);
        let error = runtime.wait_blocking().unwrap_err();
        assert!(error.to_string().ends_with("`breaks` of the runtime failed: enough"), "{error}");
        assert_eq!(failed_tasks(error).len(), 2);
        assert!(!late.is_set());

        let read = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), 4, "three steps and a broken one");
    }
}

#[test]
fn a_failure_before_keeps_the_steps_from_running() {
    common::quiet_panics();
    let runtime = common::runtime(2);
    let number = numbers(&runtime, 1);
    let task = runtime.task("breaks").inout(&number.all());
    task.spawn(|_number| fail_current_task("no data").unwrap()).unwrap();
    let drops = Drops::default();
    let kept = drops.item();
    runtime
        .iterate(10, |iteration| {
            let task = iteration.task("never").inout(&number.all());
            task.spawn(move |_number| {
                let _kept: &Counted = &kept;
                panic!("must not run");
            })
        })
        .unwrap();
    let error = runtime.wait_blocking().unwrap_err();
    assert!(error.to_string().contains("no data"), "{error}");
    assert!(!error.to_string().contains("must not run"), "{error}");
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_failure_ends_any_number_of_steps() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let all = numbers(&runtime, 20);
        for breaks in 0..20 {
            // Neighbours wait for each other, those further off get ahead.
            let declared = runtime.iterate_unrolled(usize::MAX, 3, |iteration, step| {
                (step..19).try_for_each(|cell| {
                    let task = iteration.task("step").inout(&all.tile(cell));
                    task.input(&all.tile(cell + 1)).spawn(move |_, _| {
                        let step = current_step().unwrap();
                        assert!(cell != breaks || step < 30, "enough");
                    })
                })?;
                iteration.task("last").inout(&all.tile(19)).spawn(move |_| {
                    let step = current_step().unwrap();
                    assert!(breaks != 19 || step < 30, "enough");
                })
            });
            declared.unwrap();
            let error = runtime.wait_blocking().unwrap_err();
            assert!(error.to_string().ends_with("enough"), "{error}");
            assert_eq!(runtime.outstanding(), 0);
        }
    }
}

#[test]
fn a_cancelled_group_ends_any_number_of_steps() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let all = numbers(&runtime, 20);
        let group = (*runtime).clone();
        let declared = runtime.iterate(usize::MAX, |iteration| {
            (0..19).try_for_each(|cell| {
                let group = group.clone();
                let task = iteration.task("step").inout(&all.tile(cell)).input(&all.tile(cell + 1));
                task.spawn(move |mut number, _next| {
                    let step = current_step().unwrap();
                    number[0] += 1;
                    if (step, cell) == (1000, 7) {
                        group.cancel("it has converged");
                    }
                })
            })
        });
        declared.unwrap();
        let error = runtime.wait_blocking().unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{error}");
        let read = runtime.task("read").input(&all.tile(7)).run(|number| number[0]).unwrap();
        assert_eq!(runtime.block_on(read).unwrap().unwrap(), 1001);
    }
}

#[test]
fn actions_of_a_failure_run_once_and_only_then() {
    common::quiet_panics();
    for (workers, fails) in [(1, true), (2, true), (2, false)] {
        let runtime = common::runtime(workers);
        let number = numbers(&runtime, 4);
        let (seen, reason) = std::sync::mpsc::channel();
        runtime
            .iterate(50, |iteration| {
                let seen = seen.clone();
                iteration.on_failure(move |error| seen.send(error.to_string()).unwrap());
                for tile in 0..number.tiles() {
                    let task = iteration.task("breaks").inout(&number.tile(tile));
                    task.spawn(move |_number| {
                        assert!(!fails || current_step() < Some(7), "enough");
                    })?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(runtime.wait_blocking().is_err(), fails);
        let reasons: Vec<_> = reason.try_iter().collect();
        assert_eq!(reasons.len(), usize::from(fails), "{reasons:?}");
        assert!(reasons.iter().all(|reason| reason.contains("enough")), "{reasons:?}");
    }
}
