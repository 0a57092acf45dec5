//! The counts of the workers agree with the actions of a program.

use talpf_runtime::{Array, Config, Metrics, Monitor, Runtime};

use crate::common::{self, Flag, POLICIES};

const TASKS: u64 = 1000;

fn chain(runtime: &Runtime) {
    let cell = Array::new(runtime, vec![0u64], 1).unwrap();
    for _ in 0..TASKS {
        runtime.task("link").inout(&cell.all()).spawn(|mut cell| cell[0] += 1).unwrap();
    }
    runtime.wait_blocking().unwrap();
}

/// Returns the metrics once all spawned tasks are complete.
fn settled(runtime: &Runtime) -> Metrics {
    let done = |metrics: &Metrics| metrics.completed == metrics.created;
    assert!(common::eventually(|| done(&runtime.metrics())), "{:?}", runtime.metrics());
    runtime.metrics()
}

#[test]
fn every_task_is_counted_once() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        chain(&runtime);
        let metrics = settled(&runtime);
        // The array may have needed a task to free it.
        assert!((TASKS..=TASKS + 1).contains(&metrics.created), "{policy}: {metrics:?}");
        assert!((TASKS..=TASKS + 1).contains(&metrics.runs), "{policy}: {metrics:?}");
        assert_eq!(metrics.made_ready, metrics.runs, "{policy}: {metrics:?}");
        assert_eq!(metrics.queued.total(), 0, "{policy}");
        assert_eq!(metrics.idle.len(), 2);
        assert!((0.0..=1.0).contains(&metrics.idle_share()), "{policy}: {metrics:?}");
    }
}

#[test]
fn what_waits_for_a_worker_is_seen_in_the_queues() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (begun, go) = (Flag::default(), Flag::default());
    let (begins, goes) = (begun.clone(), go.clone());
    let body = move || {
        begins.set();
        assert!(common::eventually(|| goes.is_set()));
    };
    runtime.task("long").spawn(body).unwrap();
    assert!(common::eventually(|| begun.is_set()));
    (0..5).for_each(|_| runtime.task("waits").spawn(|| ()).unwrap());
    (0..3).for_each(|_| runtime.task("first").priority(1).spawn(|| ()).unwrap());
    let metrics = runtime.metrics();
    go.set();
    assert_eq!((metrics.queued.shared, metrics.queued.priorities), (5, 3), "{metrics:?}");
    assert_eq!((metrics.queued.own, metrics.queued.next), (0, 0), "{metrics:?}");
    assert_eq!((metrics.created, metrics.completed, metrics.runs), (9, 0, 1), "{metrics:?}");
    assert_eq!(metrics.made_ready, 9);
    runtime.wait_blocking().unwrap();
}

#[test]
fn delays_are_sampled_from_tasks_that_workers_queue() {
    let _watchdog = common::watchdog();
    // One worker runs everything it queues.
    let runtime = common::runtime(1);
    let group = (*runtime).clone();
    let program = async move {
        for _ in 0..20 * TASKS {
            group.task("short").spawn(|| ()).unwrap();
        }
        group.wait().await.unwrap();
    };
    runtime.block_on(runtime.spawn_main("main", program).unwrap()).unwrap().unwrap();
    let delays = runtime.metrics().delays;
    // About every 64th; a sample waits for as long as its task does.
    assert!((1..=20 * TASKS / 16).contains(&delays.count()), "{delays:?}");
    let classes: u64 = delays.classes().map(|(_, count)| count).sum();
    assert_eq!(classes, delays.count());
    assert!(delays.within(0.5) <= delays.within(1.0));
}

#[test]
fn passes_of_services_are_counted_apart() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (stop, passes) = (Flag::default(), 7);
    let (group, stops) = ((*runtime).clone(), stop.clone());
    let service = async move {
        for _ in 1..passes {
            group.wait_for(std::time::Duration::ZERO).await;
        }
        stops.set();
    };
    let handle = runtime.spawn_service("poll", service).unwrap();
    runtime.block_on(handle).unwrap().unwrap();
    let metrics = runtime.metrics();
    assert_eq!((metrics.poll_passes, metrics.runs), (passes, 0), "{metrics:?}");
}

#[test]
fn a_worker_that_parks_is_counted_and_idle() {
    let _watchdog = common::watchdog();
    let runtime = common::unwatched(1, talpf_runtime::IdlePolicy::Park);
    let idle = || runtime.metrics().parks > 0 && !runtime.metrics().idle[0].is_zero();
    assert!(common::eventually(idle), "{:?}", runtime.metrics());
}

#[test]
fn a_monitor_shows_a_runtime_that_has_shut_down() {
    let _watchdog = common::watchdog();
    let monitor = Monitor::default();
    assert!(monitor.metrics().is_none());
    let config = Config { workers: 2, monitor: Some(monitor.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    chain(&runtime);
    runtime.shut_down().unwrap();
    let metrics = monitor.metrics().unwrap();
    assert!(metrics.created >= TASKS && metrics.completed == metrics.created, "{metrics:?}");
    assert_eq!(monitor.metrics().unwrap().elapsed, metrics.elapsed);
}
