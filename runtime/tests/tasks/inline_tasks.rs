//! Inline tasks run inside the spawn when they are ready, and in their order when they are not.

use crate::common;
use std::thread;

use talpf_runtime::{Array, Runtime};

use crate::common::{Log, failure, labels};

/// Calls `spawner` in a task.
fn inside<R: Send + 'static>(runtime: &Runtime, spawner: impl FnOnce() -> R + Send + 'static) -> R {
    let handle = runtime.task("spawner").run(spawner).unwrap();
    runtime.block_on(handle).unwrap().unwrap()
}

#[test]
fn a_ready_inline_task_runs_inside_the_spawn() {
    let runtime = common::runtime(2);
    let group = runtime.group("tasks", 1);
    let (here, there) = inside(&runtime, move || {
        let (send, receive) = std::sync::mpsc::channel();
        let run = move || send.send(thread::current().id()).unwrap();
        group.task("inline").inline().spawn(run).unwrap();
        (thread::current().id(), receive.try_recv())
    });
    assert_eq!(there, Ok(here));
}

#[test]
fn inline_tasks_nest() {
    let runtime = common::runtime(1);
    let (group, log) = (runtime.group("tasks", 1), Log::new());
    let entries = log.clone();
    inside(&runtime, move || {
        let (inner, within) = (group.clone(), log.clone());
        let outer = move || {
            let deepest = within.clone();
            inner.task("inner").inline().spawn(move || deepest.add("inner")).unwrap();
            within.add("outer");
        };
        group.task("outer").inline().spawn(outer).unwrap();
        log.add("spawner");
    });
    assert_eq!(entries.take(), ["inner", "outer", "spawner"]);
}

#[test]
fn an_inline_task_waits_for_its_regions() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
    let (group, inner) = (runtime.group("tasks", 1), array.clone());
    inside(&runtime, move || {
        for step in 0..100 {
            let task = group.task("step").inout(&inner.all());
            let task = if step % 3 == 0 { task } else { task.inline() };
            task.spawn(move |mut all| {
                assert_eq!(all[0], step);
                all[0] += 1;
            })
            .unwrap();
        }
    });
    let last = runtime.task("last").input(&array.all()).run(|all| all[0]).unwrap();
    assert_eq!(runtime.block_on(last).unwrap().unwrap(), 100);
}

#[test]
fn an_inline_async_task_goes_on_after_its_spawn() {
    let runtime = common::runtime(1);
    let (group, log) = (runtime.group("tasks", 1), Log::new());
    let (entries, spawner) = (log.clone(), group.clone());
    inside(&runtime, move || {
        let first = log.clone();
        let body = move || async move {
            first.add("begins");
            tokio::task::yield_now().await;
            first.add("ends");
        };
        spawner.task("inline").inline().spawn_async(body).unwrap();
        log.add("spawner");
    });
    group.wait_blocking().unwrap();
    assert_eq!(entries.take(), ["begins", "spawner", "ends"]);
}

#[test]
fn a_panic_in_an_inline_task_does_not_fail_its_spawner() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 2], 1).unwrap();
    let (group, inner) = (runtime.group("tasks", 1), array.clone());
    let spawner = runtime.task("spawner").inout(&array.tile(0));
    spawner
        .spawn(move |mut own| {
            let task = group.task("inline").inline().inout(&inner.tile(1));
            task.spawn(|_| panic!("inline")).unwrap();
            own[0] = 5;
        })
        .unwrap();
    let own = runtime.task("own").input(&array.tile(0)).run(|own| own[0]).unwrap();
    assert_eq!(runtime.block_on(own).unwrap().unwrap(), 5);
    let other = runtime.task("other").input(&array.tile(1)).run(|_| ()).unwrap();
    let failed = failure(runtime.block_on(other).unwrap());
    assert_eq!(labels(&failed), ["other", "inline"]);
}

#[test]
fn a_thread_outside_may_spawn_inline_tasks() {
    let runtime = common::runtime(1);
    let handle = runtime.task("inline").inline().run(|| thread::current().id()).unwrap();
    assert_ne!(runtime.block_on(handle).unwrap().unwrap(), thread::current().id());
}
