//! Shutting down runs the outstanding tasks, joins all threads and refuses later spawns.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use talpf_runtime::{Array, Error, Runtime};

use crate::common::{Drops, Flag, POLICIES, failure, labels};

const MS: Duration = Duration::from_millis(1);

#[test]
fn everything_outstanding_runs_first() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let array = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        for number in 0..200 {
            let count = count.clone();
            let task = runtime.task("task").priority(number % 3 - 1).inout(&array.all());
            task.spawn(move |_all| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        }
        runtime.shut_down().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 200);
    }
}

#[test]
fn suspended_tasks_mains_and_services_end_first() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let group = runtime.group("rank", 1);
    let ended = Arc::new(AtomicUsize::new(0));
    let body = |ended: &Arc<AtomicUsize>| {
        let (ended, group) = (ended.clone(), group.clone());
        async move {
            group.wait_for(5 * MS).await;
            tokio::time::sleep(5 * MS).await;
            ended.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (task, main, service) = (body(&ended), body(&ended), body(&ended));
    runtime.task("task").spawn_async(|| task).unwrap();
    drop(group.spawn_main("main", main).unwrap());
    drop(group.spawn_service("service", service).unwrap());
    runtime.shut_down().unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 3);
}

#[test]
fn what_a_later_group_spawns_into_an_earlier_one_runs_too() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (early, late) = (runtime.group("early", 1), runtime.group("late", 2));
    let ran = Flag::default();
    let (spawner, running) = (late.clone(), ran.clone());
    let main = late.spawn_main("main", async move {
        spawner.wait_for(10 * MS).await;
        let timer = spawner.clone();
        let task = early.task("task");
        task.spawn_async(move || async move {
            timer.wait_for(10 * MS).await;
            running.set();
        })
        .unwrap();
    });
    drop(main.unwrap());
    runtime.shut_down().unwrap();
    assert!(ran.is_set());
}

#[test]
fn a_kept_group_refuses_tasks() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("kept", 1);
    let drops = Drops::default();
    let array = Array::new(&group, drops.items(4), 2).unwrap();
    runtime.shut_down().unwrap();
    let captured = drops.item();
    let task = group.task("late").inout(&array.all());
    assert!(matches!(task.spawn(move |_all| drop(captured)), Err(Error::ShutDown)));
    assert_eq!(drops.count(), 1);
    assert!(matches!(group.spawn_main("main", async {}), Err(Error::ShutDown)));
    assert!(matches!(group.task("late").run(|| ()), Err(Error::ShutDown)));
    group.wait_blocking().unwrap();
    drop(array);
    assert_eq!(drops.count(), 5);
}

#[test]
fn the_first_failure_is_returned_and_all_is_joined() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let drops = Drops::default();
    let group = runtime.group("other", 1);
    runtime.task("fails").spawn(|| panic!("one")).unwrap();
    let item = drops.item();
    let task = group.task("good");
    let slow = group.clone();
    task.spawn_async(move || async move {
        slow.wait_for(5 * MS).await;
        drop(item)
    })
    .unwrap();
    assert_eq!(labels(&failure(runtime.shut_down())), ["fails"]);
    assert_eq!(drops.count(), 1);
}

#[test]
fn dropping_the_runtime_shuts_it_down() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let drops = Drops::default();
    for policy in POLICIES {
        // Never used.
        drop(common::unwatched(2, policy));
        // Busy, with a failure.
        let runtime = common::unwatched(2, policy);
        let items = drops.items(100);
        runtime.task("fails").spawn(|| panic!("nobody asks")).unwrap();
        for item in items {
            runtime.task("task").spawn(move || drop(item)).unwrap();
        }
        drop(runtime);
        // With an array, a handle and a wait that nobody finished.
        let runtime = common::unwatched(2, policy);
        let array = Array::new(&runtime, drops.items(100), 7).unwrap();
        let handle = runtime.task("task").inout(&array.all()).run(|_all| ()).unwrap();
        let wait = runtime.wait();
        drop(runtime);
        drop((array, handle, wait));
    }
    assert_eq!(drops.count(), 600);
}

#[test]
fn a_thousand_runtimes_come_and_go() {
    let _watchdog = common::watchdog();
    for round in 0..1000 {
        let runtime = common::unwatched(1 + round % 3, POLICIES[round % 2 + 1]);
        runtime.task("task").spawn(|| ()).unwrap();
    }
}

#[test]
fn spawns_that_race_with_the_shutdown_run_or_are_refused() {
    let _watchdog = common::watchdog();
    for round in 0..1000 {
        let runtime = common::unwatched(1, POLICIES[round % 3]);
        let group = runtime.group("racing", 1);
        let spawner = thread::spawn(move || {
            loop {
                let ran = Flag::default();
                let running = ran.clone();
                match group.task("racing").spawn(move || running.set()) {
                    Ok(()) if common::eventually(|| ran.is_set()) => {}
                    Ok(()) => return Err("accepted and never ran"),
                    Err(Error::ShutDown) => return Ok(()),
                    Err(_) => return Err("another error"),
                }
            }
        });
        runtime.shut_down().unwrap();
        spawner.join().unwrap().unwrap();
    }
}

#[test]
fn the_last_handle_of_a_runtime_may_drop_in_one_of_its_tasks() {
    let _watchdog = common::watchdog();
    let runtime = Arc::new(common::runtime(2));
    let group = runtime.group("kept", 1);
    let (open, gate) = oneshot::channel::<()>();
    let (send, receive) = std::sync::mpsc::channel();
    let inner: Arc<Runtime> = runtime.clone();
    let task = group.task("last");
    task.spawn_async(move || async move {
        gate.await.unwrap();
        drop(inner);
        send.send(()).unwrap();
    })
    .unwrap();
    drop(runtime);
    open.send(()).unwrap();
    receive.recv_timeout(common::PATIENCE).expect("the body goes on");
    group.wait_blocking().unwrap();
    let refused = || matches!(group.task("late").spawn(|| ()), Err(Error::ShutDown));
    assert!(common::eventually(refused));
}
