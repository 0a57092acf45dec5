//! Sets of workers: a group's tasks are run by the workers of its set only, and no set waits for
//! another.

use std::ops::Range;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::mpsc::unbounded;
use futures::channel::oneshot;
use talpf_runtime::{Array, Config, Error, Group, IdlePolicy, PendingEvent, Runtime};

use crate::common::{self, Flag, Log, Meeting, POLICIES, alone};

const MS: Duration = Duration::from_millis(1);

pub(crate) fn runtime(workers: usize, worker_sets: usize, idle: IdlePolicy) -> Runtime {
    Runtime::new(Config { workers, worker_sets, idle, ..Config::default() }).unwrap()
}

pub(crate) fn groups(runtime: &Runtime) -> Vec<Group> {
    (0..runtime.worker_sets()).map(|set| runtime.group_in("of a set", set as u32, set)).collect()
}

/// Returns the workers of a set.
pub(crate) fn workers_of(runtime: &Runtime, set: usize) -> Range<usize> {
    let first = |set| set * runtime.workers() / runtime.worker_sets();
    first(set)..first(set + 1)
}

/// Returns the number of the worker that this thread is.
pub(crate) fn worker() -> usize {
    let thread = thread::current();
    thread.name().and_then(|name| name.strip_prefix("talpf-worker-")).unwrap().parse().unwrap()
}

/// Keeps all workers of a set in bodies until another participant joins the meeting.
fn hold(runtime: &Runtime, set: usize) -> Arc<Meeting> {
    let workers = workers_of(runtime, set);
    let (meeting, begun) = (Meeting::of(workers.len() + 1), Meeting::of(workers.len() + 1));
    let group = runtime.group_in("holder", 0, set);
    for _ in workers {
        let (meeting, begun) = (meeting.clone(), begun.clone());
        let holds = move || assert!(begun.join() && meeting.join());
        group.task("holds").spawn(holds).unwrap();
    }
    assert!(begun.join());
    meeting
}

#[test]
fn tasks_of_a_set_whose_workers_are_busy_wait_for_them_and_those_of_another_do_not() {
    let _watchdog = common::watchdog();
    for ((workers, sets), policy) in
        [(2, 2), (4, 2), (5, 2)].into_iter().flat_map(|shape| POLICIES.map(|idle| (shape, idle)))
    {
        let runtime = runtime(workers, sets, policy);
        let groups = groups(&runtime);
        let held = hold(&runtime, 0);
        let early = Log::new();
        for priority in [-1, 0, 1] {
            let early = early.clone();
            let body = move || early.add(priority);
            groups[0].task("waits").priority(priority).spawn(body).unwrap();
        }
        // Woken by tasks of the other set, which also spawn tasks for this one.
        let (sender, receiver) = oneshot::channel();
        let (woken, spawned) = (early.clone(), early.clone());
        let task = groups[1].task("runs").priority(3);
        let ran = task.run_async(|| async move { receiver.await.unwrap() }).unwrap();
        let busy = groups[0].clone();
        let spawns = move || {
            sender.send(7).unwrap();
            busy.task("waits").inline().spawn(move || woken.add(2)).unwrap();
        };
        groups[1].task("wakes").spawn(spawns).unwrap();
        assert_eq!(runtime.block_on(ran).unwrap().unwrap(), 7);
        let sleeping = groups[1].clone();
        let slept = groups[1].task("sleeps").run_async(|| async move {
            sleeping.wait_for(MS).await;
            sleeping.idle(MS).await;
        });
        runtime.block_on(slept.unwrap()).unwrap().unwrap();
        groups[1].wait_blocking().unwrap();
        assert_eq!(spawned.take(), [0i32; 0], "{workers} workers, {policy}");
        assert!(held.join());
        groups[0].wait_blocking().unwrap();
        assert_eq!(early.take().len(), 4, "{workers} workers, {policy}");
        runtime.shut_down().unwrap();
    }
}

#[test]
fn a_condition_of_a_busy_set_is_not_polled_by_another() {
    let _watchdog = common::watchdog();
    let runtime = runtime(2, 2, IdlePolicy::default());
    let groups = groups(&runtime);
    let (polls, over) = (Log::new(), Flag::default());
    let (waiting, polled, ends) = (groups[0].clone(), polls.clone(), over.clone());
    let service = async move {
        let poll = move || {
            polled.add(worker());
            ends.is_set().then_some(())
        };
        waiting.idle_until(MS, poll).await;
    };
    let service = groups[0].spawn_service("polls", service).unwrap();
    let held = hold(&runtime, 0);
    polls.take();
    for _ in 0..10 {
        let sleeping = groups[1].clone();
        let slept =
            groups[1].task("sleeps").run_async(|| async move { sleeping.wait_for(MS).await });
        runtime.block_on(slept.unwrap()).unwrap().unwrap();
    }
    assert_eq!(polls.take(), [0usize; 0]);
    over.set();
    assert!(held.join());
    runtime.block_on(service).unwrap().unwrap();
    assert!(polls.take().iter().all(|worker| *worker == 0));
    runtime.shut_down().unwrap();
}

#[test]
fn messages_go_round_three_sets_of_one_worker() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = runtime(3, 3, policy);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| unbounded::<u64>()).unzip();
        senders[0].unbounded_send(0).unwrap();
        let rounds = if cfg!(miri) { 10 } else { 1_000 };
        let mut mains = Vec::new();
        for (set, (group, mut receiver)) in groups(&runtime).into_iter().zip(receivers).enumerate()
        {
            let next = senders[(set + 1) % 3].clone();
            let main = async move {
                for _ in 0..rounds {
                    let number = receiver.next().await.unwrap();
                    assert_eq!(worker(), set);
                    // The first one has ended when the last message comes.
                    let _ = next.unbounded_send(number + 1);
                }
            };
            mains.push(group.spawn_main("main", main).unwrap());
        }
        for main in mains {
            runtime.block_on(main).unwrap().unwrap();
        }
        runtime.shut_down().unwrap();
    }
}

#[test]
fn a_graph_is_replayed_by_all_workers_of_its_set() {
    let _watchdog = common::watchdog();
    let runtime = runtime(4, 2, IdlePolicy::default());
    let group = runtime.group_in("replays", 1, 1);
    let array = Array::new(&group, vec![0u64; 8], 1).unwrap();
    let workers = Log::new();
    group
        .iterate(50, |iteration| {
            for tile in 0..8 {
                let workers = workers.clone();
                let task = iteration.task("adds").inout(&array.tile(tile));
                task.spawn(move |mut tile| {
                    tile[0] += 1;
                    workers.add(worker());
                    common::pass(MS / 100);
                })?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    group.wait_blocking().unwrap();
    let workers = workers.take();
    assert_eq!(workers.len(), 400);
    assert!(workers.iter().all(|worker| (2..4).contains(worker)), "{workers:?}");
    assert!([2, 3].iter().all(|worker| workers.contains(worker)), "{workers:?}");
    runtime.shut_down().unwrap();
}

#[test]
fn a_set_is_taken_modulo_the_number_of_sets_and_a_worker_brings_its_set() {
    let _watchdog = common::watchdog();
    let runtime = runtime(5, 2, IdlePolicy::default());
    assert_eq!((runtime.workers(), runtime.worker_sets()), (5, 2));
    let of_sets = [0, 1, 2, usize::MAX].map(|set| (runtime.group_in("of a set", 1, set), set % 2));
    let of_workers = [(0, 0), (1, 0), (2, 1), (4, 1), (5, 0), (9, 1)];
    let of_workers = of_workers.map(|(worker, set)| (runtime.group_at("at", 1, worker), set));
    let others = [(Group::clone(&runtime), 0), (runtime.group("group", 1), 0)];
    for (group, set) in of_sets.into_iter().chain(of_workers).chain(others) {
        let ran = group.task("runs").run(worker).unwrap();
        let ran = runtime.block_on(ran).unwrap().unwrap();
        assert!(workers_of(&runtime, set).contains(&ran), "set {set}, worker {ran}");
    }
}

#[test]
fn numbers_of_sets_end_at_one_and_at_the_number_of_workers() {
    for (workers, good) in [(1, 1), (3, 1), (3, 3)] {
        assert!(Runtime::new(Config { workers, worker_sets: good, ..Config::default() }).is_ok());
    }
    for (workers, bad, limit) in [(3, 0, 1), (3, 4, 3), (1, usize::MAX, 1)] {
        let refused = Runtime::new(Config { workers, worker_sets: bad, ..Config::default() });
        let Err(Error::Size { what, value, limit: named }) = refused else { panic!("{bad} sets") };
        assert_eq!((what, value, named), ("number of worker sets", bad, limit));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_wait_that_nothing_ends_is_reported_at_once_whichever_set_it_is_of() {
    alone(
        "worker_sets::a_wait_that_nothing_ends_is_reported_at_once_whichever_set_it_is_of",
        || {
            for (set, policy) in
                [0, 1, 2].into_iter().flat_map(|set| POLICIES[1..].iter().map(move |p| (set, *p)))
            {
                let runtime = runtime(3, 3, policy);
                let group = runtime.group_in("waits", 1, set);
                let event = PendingEvent::of_group(&group, "starter").unwrap();
                let begin = Instant::now();
                let Err(Error::Hang(report)) = group.wait_blocking() else {
                    panic!("the wait has ended well");
                };
                assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
                assert!(report.contains("task `starter` of waits"), "{report}");
                drop(event);
            }
        },
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_set_whose_workers_wait_for_a_lock_is_reported_though_another_is_idle() {
    let _watchdog = common::watchdog();
    let config = Config { workers: 2, worker_sets: 2, hang_after: 100 * MS, ..Config::default() };
    let runtime = Runtime::new(Config { throttle: 4, ..config }).unwrap();
    let group = runtime.group_in("locked out", 1, 1);
    let (lock, spawner) = (Arc::new(Mutex::new(0)), group.clone());
    let holder = move || {
        let _lock = lock.lock().unwrap();
        for number in 1..=100 {
            let sum = Arc::clone(&lock);
            spawner.task("adds").spawn(move || *sum.lock().unwrap() += number).unwrap();
        }
    };
    group.task("holder").spawn(holder).unwrap();
    let Err(Error::Hang(report)) = group.wait_blocking() else { panic!("the wait ends well") };
    assert!(report.contains("runs inside a spawn of `holder`"), "{report}");
}

#[test]
fn a_body_that_sleeps_in_one_set_is_no_hang_for_another_that_waits_for_it() {
    let _watchdog = common::watchdog();
    let config = Config { workers: 2, worker_sets: 2, hang_after: 10 * MS, ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let groups = groups(&runtime);
    let (sender, receiver) = oneshot::channel();
    let waits = groups[1].task("waits").run_async(|| async move { receiver.await.unwrap() });
    groups[0]
        .task("sleeps")
        .spawn(move || {
            thread::sleep(100 * MS);
            sender.send(3).unwrap();
        })
        .unwrap();
    assert_eq!(runtime.block_on(waits.unwrap()).unwrap().unwrap(), 3);
    runtime.shut_down().unwrap();
}

#[test]
fn threads_outside_spawn_into_all_sets_at_once() {
    let _watchdog = common::watchdog();
    let runtime = runtime(3, 3, IdlePolicy::Park);
    let groups = groups(&runtime);
    let (sender, ran) = mpsc::channel();
    let tasks = if cfg!(miri) { 5 } else { 500 };
    thread::scope(|scope| {
        for group in &groups {
            let sender = sender.clone();
            scope.spawn(move || {
                for _ in 0..tasks {
                    let sender = sender.clone();
                    group.task("runs").spawn(move || sender.send(()).unwrap()).unwrap();
                }
            });
        }
    });
    runtime.shut_down().unwrap();
    drop(sender);
    assert_eq!(ran.iter().count(), 3 * tasks);
}
