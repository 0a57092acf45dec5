//! A runtime that shuts down accepts the spawns of tasks that are not complete, and no others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime};

use crate::common::{self, Drops, Flag, POLICIES};

/// Spawns a task of the first group that goes on with a task of the other one.
fn chain(groups: [Group; 2], left: u64, ran: Arc<AtomicU64>, refused: Arc<AtomicBool>) {
    let (next, failed) = ([groups[1].clone(), groups[0].clone()], refused.clone());
    let link = move || {
        ran.fetch_add(1, Ordering::SeqCst);
        if left > 1 {
            chain(next, left - 1, ran, refused);
        }
    };
    if groups[0].task("link").spawn(link).is_err() {
        failed.store(true, Ordering::SeqCst);
    }
}

#[test]
fn chains_over_two_groups_lose_no_spawn() {
    let _watchdog = common::watchdog();
    for round in 0..2_000 {
        let runtime = common::unwatched(1 + round % 3, POLICIES[round % 2 + 1]);
        let groups = [runtime.group("one", 1), runtime.group("other", 2)];
        let (ran, refused) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let length = 1 + round as u64 % 40;
        chain(groups, length, Arc::clone(&ran), Arc::clone(&refused));
        runtime.shut_down().unwrap();
        assert!(!refused.load(Ordering::SeqCst), "round {round}: a spawn was refused");
        assert_eq!(ran.load(Ordering::SeqCst), length, "round {round}");
    }
}

/// Starts a runtime that shuts down on another thread, which a main keeps from ending until the
/// returned sender is used or dropped.
fn closing(runtime: Runtime) -> (oneshot::Sender<()>, thread::JoinHandle<Result<(), Error>>) {
    let (open, gate) = oneshot::channel::<()>();
    let main = async move {
        let _ = gate.await;
    };
    drop(runtime.spawn_main("main", main).unwrap());
    let outsider = runtime.group("outsider", 9);
    let closer = thread::spawn(move || runtime.shut_down());
    assert!(common::eventually(|| is_refused(outsider.task("outsider").spawn(|| ()))));
    (open, closer)
}

fn is_refused<T>(spawned: Result<T, Error>) -> bool {
    matches!(spawned, Err(Error::ShutDown))
}

#[test]
fn outsiders_are_refused_from_then_on() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("kept", 1);
    let other = common::runtime(1);
    let (open, closer) = closing(runtime);
    for _ in 0..10_000 {
        assert!(is_refused(group.task("late").spawn(|| ())));
    }
    assert!(is_refused(group.spawn_main("late", async {})));
    assert!(is_refused(PendingEvent::of_group(&group, "late")));
    let inner = group.clone();
    let foreign = other.task("foreign").run(move || is_refused(inner.task("late").spawn(|| ())));
    assert!(other.block_on(foreign.unwrap()).unwrap().unwrap(), "a task of another runtime");
    open.send(()).unwrap();
    closer.join().unwrap().unwrap();
    assert!(is_refused(group.task("late").spawn(|| ())));
}

#[test]
fn suspended_mains_tasks_and_services_go_on_to_spawn() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let (group, ran) = (runtime.group("rank", 1), Arc::new(AtomicU64::new(0)));
    let mut gates = Vec::new();
    let mut spawner = || {
        let (open, gate) = oneshot::channel::<()>();
        gates.push(open);
        let (group, ran) = (group.clone(), ran.clone());
        async move {
            let _ = gate.await;
            let last = group.clone();
            let task = group.task("first").run(move || {
                last.task("second").spawn(move || _ = ran.fetch_add(1, Ordering::SeqCst)).unwrap();
            });
            task.unwrap().await.unwrap();
        }
    };
    drop(group.spawn_main("main", spawner()).unwrap());
    drop(group.spawn_service("service", spawner()).unwrap());
    let body = spawner();
    group.task("task").spawn_async(move || body).unwrap();
    let (open, closer) = closing(runtime);
    drop(gates);
    drop(open);
    closer.join().unwrap().unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

#[test]
fn actions_on_a_thread_outside_go_on_to_spawn() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 1], 1).unwrap();
    let handle = runtime.task("giver").inout(&array.all()).run(|guard| guard).unwrap();
    let guard = runtime.block_on(handle).unwrap().unwrap();
    let (group, ran) = (runtime.group("other", 1), Flag::default());
    let running = ran.clone();
    let task = runtime.task("taker").inout(&array.all()).on_ready(move |_| {
        group.task("of the action").spawn(move || running.set()).unwrap();
    });
    task.spawn(drop).unwrap();
    let (open, closer) = closing(runtime);
    drop(open);
    drop(guard);
    closer.join().unwrap().unwrap();
    assert!(ran.is_set());
}

#[test]
fn children_may_be_spawned_from_a_thread_outside() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let handle = runtime.task("parent").run(Children::of_current_task).unwrap();
    let children = runtime.block_on(handle).unwrap().unwrap().unwrap();
    let (open, closer) = closing(runtime);
    drop(open);
    let ran = Flag::default();
    let running = ran.clone();
    children.task("child").deferred_if(true).spawn(move || running.set()).unwrap();
    drop(children);
    closer.join().unwrap().unwrap();
    assert!(ran.is_set());
}

#[test]
fn arrays_that_drop_meanwhile_are_freed() {
    let _watchdog = common::watchdog();
    let drops = Drops::default();
    for round in 0..300 {
        let runtime = common::unwatched(1 + round % 2, POLICIES[round % 3]);
        let array = Array::new(&runtime, drops.items(4), 2).unwrap();
        let inner = array.clone();
        runtime.task("uses").inout(&array.all()).spawn(move |_all| drop(inner)).unwrap();
        let dropper = thread::spawn(move || drop(array));
        runtime.shut_down().unwrap();
        dropper.join().unwrap();
        assert_eq!(drops.count(), 4 * (round + 1));
    }
}

#[test]
fn a_shutdown_in_a_task_of_its_own_is_refused_at_once() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("kept", 1);
    let (send, receive) = mpsc::channel::<Runtime>();
    let ran = Flag::default();
    let (running, later) = (ran.clone(), group.clone());
    let task = group.task("closes").run(move || {
        let ended = receive.recv().unwrap().shut_down();
        later.task("later").spawn(move || running.set()).unwrap();
        ended
    });
    let task = task.unwrap();
    send.send(runtime).unwrap();
    let ended = futures::executor::block_on(task).unwrap();
    let refused = Err(Error::BlockingInTask { call: "shut_down", task: "closes" });
    assert_eq!(format!("{ended:?}"), format!("{:?}", refused as Result<(), _>));
    assert!(common::eventually(|| ran.is_set()));
    assert!(common::eventually(|| is_refused(group.task("late").spawn(|| ()))));
}

/// In a task of another runtime, and with work that the task would otherwise wait for.
#[test]
fn a_shutdown_in_a_task_of_another_runtime_is_refused_and_goes_on_beside_it() {
    let _watchdog = common::watchdog();
    for drops in [false, true] {
        let (runtime, other) = (common::runtime(1), common::runtime(1));
        let group = runtime.group("kept", 1);
        let (open, gate) = oneshot::channel::<()>();
        let (ended, end) = oneshot::channel();
        let main = async move {
            let _ = gate.await;
            ended.send(()).unwrap();
        };
        drop(group.spawn_main("main", main).unwrap());
        let closes = other.task("closes").run(move || match drops {
            true => {
                drop(runtime);
                Ok(())
            }
            false => runtime.shut_down(),
        });
        let closed = other.block_on(closes.unwrap()).unwrap().unwrap();
        match closed {
            Ok(()) => assert!(drops),
            Err(error) => assert!(error.to_string().contains("`closes`"), "{error}"),
        }
        assert!(is_refused(group.task("late").spawn(|| ())), "refused from then on");
        open.send(()).unwrap();
        futures::executor::block_on(end).unwrap();
    }
}
