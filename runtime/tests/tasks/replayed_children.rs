//! Children of replayed tasks: spawned afresh in every step, which ends when they are complete.

use futures::channel::oneshot;
use talpf_runtime::{
    Array, Children, Config, Error, GraphRecorder, Iteration, Lend, Runtime, current_step,
};

use crate::common::{self, Counted, Drops, Log, Meeting};

const LEN: usize = 40;

fn line(runtime: &Runtime, tile: usize) -> Array<u64> {
    Array::new(runtime, vec![0; LEN], tile).unwrap()
}

fn read(runtime: &Runtime, line: &Array<u64>) -> Vec<u64> {
    let read = runtime.task("read").input(&line.all()).run(|line| line.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

/// Spawns children that multiply all of `line` by 3 and add `number`.
fn leave_to_children(line: &Lend<u64>, number: u64) {
    let children = Children::of_current_task().unwrap();
    let declared = children.task_loop("child", 0..LEN).grain(6).for_each(|child, chunk| {
        child.inout(&line.region(chunk)).spawn(move |mut chunk| {
            chunk.iter_mut().for_each(|cell| *cell = 3 * *cell + number);
        })
    });
    declared.unwrap();
}

/// Checks the line after 30 steps, for each number of workers, of tasks that `declare` declares:
/// they multiply every cell by 3, add the number of the step, and combine the cell with 5 by
/// exclusive or.
#[track_caller]
fn thirty_steps(
    workers: &[usize],
    tile: usize,
    declare: impl for<'a> Fn(&'a Array<u64>, &Iteration<'a>) -> Result<(), Error>,
) {
    let _watchdog = common::watchdog();
    for &workers in workers {
        let runtime = common::runtime(workers);
        let line = line(&runtime, tile);
        runtime.iterate(30, |iteration| declare(&line, iteration)).unwrap();
        let cell = (0..30).fold(0, |cell, step| (3 * cell + step) ^ 5);
        assert_eq!(read(&runtime, &line), [cell; LEN]);
        runtime.wait_blocking().unwrap();
    }
}

/// Declares a task that changes all cells by 5.
fn change<'a>(line: &'a Array<u64>, iteration: &Iteration<'a>) -> Result<(), Error> {
    let task = iteration.task("after").inout(&line.all());
    task.spawn(|mut all| all.iter_mut().for_each(|cell| *cell ^= 5))
}

#[test]
fn the_next_task_and_the_next_step_wait_for_children() {
    thirty_steps(&[1, 2, 8], 7, |line, iteration| {
        let parent = iteration.task("parent").inout(&line.all());
        parent.spawn(|all| {
            let step = current_step().unwrap();
            leave_to_children(&all.lend(), step as u64)
        })?;
        change(line, iteration)
    });
}

#[test]
fn weak_accesses_are_lent_in_every_step() {
    thirty_steps(&[1, 2, 8], 7, |line, iteration| {
        let parent = iteration.task("parent").weak_inout(&line.region(..));
        parent.spawn(|all| {
            let step = current_step().unwrap();
            leave_to_children(&all, step as u64)
        })?;
        change(line, iteration)
    });
}

#[test]
fn a_body_waits_for_its_children_and_has_the_region_back() {
    thirty_steps(&[1, 2, 8], 7, |line, iteration| {
        let task = iteration.task("parent").final_if(true).inout(&line.all());
        task.spawn_async(|all| async move {
            let step = current_step().unwrap();
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            assert!(children.is_final());
            leave_to_children(&all, step as u64);
            children.wait().await.unwrap();
            let back = children.task("back").inout(&all.all()).run(|all| all).unwrap();
            back.await.unwrap().iter_mut().for_each(|cell| *cell ^= 5);
        })
    });
}

#[test]
fn each_of_many_accesses_can_be_lent() {
    thirty_steps(&[1, 2], 1, |line, iteration| {
        let parent = iteration.task("parent").inout((0..LEN).map(|tile| line.tile(tile)));
        parent.spawn(|all| {
            let step = current_step().unwrap();
            let children = Children::of_current_task().unwrap();
            for cell in all {
                let cell = cell.lend();
                let child = children.task("child").inout(&cell.all());
                child.spawn(move |mut cell| cell[0] = 3 * cell[0] + step as u64).unwrap();
            }
        })?;
        (0..LEN).try_for_each(|tile| {
            let task = iteration.task("one").inout(&line.tile(tile));
            task.spawn(|mut cell| cell[0] ^= 5)
        })
    });
}

#[test]
fn what_is_not_lent_is_released_while_children_run() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let [lent, kept] = [line(&runtime, LEN), line(&runtime, LEN)];
    let meeting = Meeting::of(2);
    let declared = runtime.iterate(1, |iteration| {
        let other = meeting.clone();
        let parent = iteration.task("parent").inout(&lent.all()).inout(&kept.all());
        parent.spawn(move |lent, _kept| {
            let (children, lent) = (Children::of_current_task().unwrap(), lent.lend());
            let (child, other) = (children.task("child").inout(&lent.all()), other.clone());
            child.spawn(move |_lent| assert!(other.join())).unwrap();
        })?;
        let other = meeting.clone();
        let next = iteration.task("next").inout(&kept.all());
        next.spawn(move |_kept| assert!(other.join()))
    });
    declared.unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_child_that_fails_stops_the_steps() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let line = line(&runtime, 7);
        let ran = Log::new();
        let declared = runtime.iterate(1000, |iteration| {
            let parent = iteration.task("parent").inout(&line.all());
            parent.spawn(|all| {
                let step = current_step().unwrap();
                let (children, all) = (Children::of_current_task().unwrap(), all.lend());
                let child = children.task("child").inout(&all.region(3..5));
                child.spawn(move |_part| assert!(step < 3, "enough")).unwrap();
            })?;
            let after = ran.clone();
            let task = iteration.task("after").input(&line.all());
            task.spawn(move |_| {
                let step = current_step().unwrap();
                after.add(step)
            })
        });
        declared.unwrap();
        let unread = runtime.task("read").input(&line.all()).run(|_| ()).unwrap();
        let failure = common::failure(runtime.block_on(unread).unwrap());
        assert_eq!(common::labels(&failure), ["read", "child"]);
        let error = runtime.wait_blocking().unwrap_err().to_string();
        let child = "task `child` in `parent` of the runtime failed: enough";
        assert!(error.ends_with(child), "{error}");
        assert_eq!(ran.take(), [0, 1, 2]);
        assert_eq!(read(&runtime, &line), [0; LEN], "it counts as defined again");
    }
}

#[test]
fn a_body_that_fails_among_its_children_stops_the_steps() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let line = line(&runtime, 7);
        let ran = Log::new();
        let declared = runtime.iterate(1000, |iteration| {
            let parent = iteration.task("parent").inout(&line.all());
            parent.spawn(|all| {
                let step = current_step().unwrap();
                let all = all.lend();
                leave_to_children(&all, 1);
                assert!(step < 3, "enough");
            })?;
            let after = ran.clone();
            let task = iteration.task("after").input(&line.all());
            task.spawn(move |_| {
                let step = current_step().unwrap();
                after.add(step)
            })
        });
        declared.unwrap();
        let error = runtime.wait_blocking().unwrap_err().to_string();
        assert!(error.ends_with("task `parent` of the runtime failed: enough"), "{error}");
        assert_eq!(ran.take(), [0, 1, 2]);
    }
}

#[test]
fn a_cancelled_group_lets_go_of_steps_and_children() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let line = line(&runtime, 7);
        let drops = Drops::default();
        let (kept, group) = (drops.item(), (*runtime).clone());
        let declared = runtime.iterate(1000, |iteration| {
            let parent = iteration.task("parent").inout(&line.all());
            parent.spawn_async(move |all| {
                let step = current_step().unwrap();
                let _kept: &Counted = &kept;
                let group = group.clone();
                async move {
                    let (children, all) = (Children::of_current_task().unwrap(), all.lend());
                    if step == 3 {
                        group.cancel("as planned");
                    }
                    leave_to_children(&all, 1);
                    let (_open, never) = oneshot::channel::<()>();
                    if step == 3 {
                        let _ = never.await;
                    }
                    children.wait().await.unwrap();
                }
            })
        });
        declared.unwrap();
        let error = runtime.wait_blocking().unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{error}");
        assert_eq!((drops.count(), runtime.outstanding()), (1, 0));
        assert_eq!(read(&runtime, &line), [1 + 3 + 9; LEN]);
    }
}

#[test]
fn an_array_outlives_the_children_that_use_it() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let sums = Log::new();
    for _ in 0..50 {
        let line = Array::new(&runtime, vec![1u64; LEN], 16).unwrap();
        let sums = sums.clone();
        let declared = runtime.iterate(5, |iteration| {
            let parent = iteration.task("parent").input(&line.all());
            parent.spawn(move |all| {
                let (children, all) = (Children::of_current_task().unwrap(), all.lend());
                let (child, sums) = (children.task("child").input(&all.all()), sums.clone());
                child.spawn(move |all| sums.add(all.iter().sum::<u64>())).unwrap();
            })
        });
        declared.unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(sums.take(), [LEN as u64; 250]);
}

#[test]
fn a_drawing_has_the_children_of_every_step_in_their_parent() {
    let _watchdog = common::watchdog();
    let recorder = GraphRecorder::new(100);
    let graph = Some(recorder.clone());
    let runtime = Runtime::new(Config { workers: 2, graph, ..Config::default() }).unwrap();
    let line = line(&runtime, LEN);
    let declared = runtime.iterate(3, |iteration| {
        let parent = iteration.task("parent").inout(&line.all());
        parent.spawn(|all| {
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            children.task("child").inout(&all.all()).spawn(|_| ()).unwrap();
        })
    });
    declared.unwrap();
    runtime.shut_down().unwrap();
    let graph = recorder.graph();
    let labels: Vec<_> = graph.tasks().iter().map(|task| (task.label, task.parent)).collect();
    let children = [("child", Some(1)); 3];
    assert_eq!(labels[..2], [("iterate", None), ("parent", Some(0))]);
    assert_eq!(labels[2..], children);
    assert!(graph.to_svg().ends_with("</svg>\n"));
}
