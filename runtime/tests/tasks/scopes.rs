//! Scopes: the same declaration of tasks for groups, children and iterations.

use talpf_runtime::{Array, Children, Error, InOut, Region, Scope, current_step};

use crate::common;

/// Declares three tasks in `scope`, one for each way to give a body its guards. Together they make
/// `2 * (n + 1) + 3` of `n`.
fn declare<'r>(scope: &impl Scope<'r>, number: &Region<'r, u64>) -> Result<(), Error> {
    scope.task("by value").inout(number).spawn(|mut number| number[0] += 1)?;
    scope.task("borrowed").inout(number).spawn_borrowed(|number| number[0] *= 2)?;
    let task = scope.task("async").inout(number);
    task.spawn_async(|mut number: InOut<u64>| async move {
        tokio::task::yield_now().await;
        number[0] += 3;
    })
}

fn after(rounds: usize) -> u64 {
    (0..rounds).fold(0, |number, _| 2 * (number + 1) + 3)
}

#[test]
fn tasks_run_once_in_a_group_and_in_each_step_of_an_iteration() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let number = Array::new(&runtime, vec![0u64], 1).unwrap();
        declare(&*runtime, &number.all()).unwrap();
        declare(&*runtime, &number.all()).unwrap();
        runtime.iterate(10, |iteration| declare(iteration, &number.all())).unwrap();
        let end = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        assert_eq!(runtime.block_on(end).unwrap().unwrap(), after(12));
    }
}

#[test]
fn tasks_are_children_of_the_task_whose_children_are_the_scope() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let number = Array::new(&runtime, vec![0u64], 1).unwrap();
    let parent = runtime.task("parent").inout(&number.all());
    parent
        .spawn(|number| {
            let (children, number) = (Children::of_current_task().unwrap(), number.lend());
            declare(&children, &number.all()).unwrap();
        })
        .unwrap();
    let end = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
    assert_eq!(runtime.block_on(end).unwrap().unwrap(), after(1));
}

#[test]
fn a_loop_of_a_scope_runs_in_each_step() {
    let runtime = common::runtime(2);
    let numbers = Array::new(&runtime, vec![0u64; 10], 2).unwrap();
    runtime
        .iterate(4, |iteration| {
            iteration.task_loop("add", 0..10).grain(2).for_each(|task, chunk| {
                let task = task.inout(&numbers.region(chunk));
                task.spawn_borrowed(|part| part.iter_mut().for_each(|number| *number += 1))
            })
        })
        .unwrap();
    let end = runtime.task("read").input(&numbers.all()).run(|numbers| numbers.to_vec()).unwrap();
    assert_eq!(runtime.block_on(end).unwrap().unwrap(), [4; 10]);
}

#[test]
fn only_bodies_of_an_iteration_have_a_step() {
    let runtime = common::runtime(1);
    assert_eq!(current_step(), None);
    let outside = runtime.task("outside").run(current_step).unwrap();
    assert_eq!(runtime.block_on(outside).unwrap().unwrap(), None);
}
