//! Spawners that await room in their group instead of running the tasks that they have spawned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talpf_runtime::{Config, Error, PendingEvent, Runtime};

use crate::common::{self, POLICIES};

const THROTTLE: usize = 8;

#[test]
fn a_main_that_awaits_room_is_never_further_ahead_than_the_throttle() {
    let _watchdog = common::watchdog();
    for (workers, idle) in [(1, POLICIES[2]), (2, POLICIES[1])] {
        let config = Config { workers, idle, throttle: THROTTLE, ..Config::default() };
        let runtime = Runtime::new(config).unwrap();
        let group = runtime.group("spawner", 1);
        let (spawner, ran) = (group.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&ran);
        let main = group.spawn_main("main", async move {
            let mut most = 0;
            for _ in 0..10_000 {
                spawner.room().await?;
                let counted = Arc::clone(&counted);
                let task = spawner.task("counts").unthrottled();
                task.spawn(move || _ = counted.fetch_add(1, Ordering::Relaxed))?;
                most = most.max(spawner.outstanding());
            }
            spawner.wait().await.map(|()| most)
        });
        let most = runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
        assert!(most <= THROTTLE as u64, "{most} tasks were outstanding");
        assert_eq!(ran.load(Ordering::Relaxed), 10_000);
    }
}

#[test]
fn a_program_is_no_more_steps_ahead_than_its_lookahead() {
    const TASKS: u64 = 5;
    let _watchdog = common::watchdog();
    for (workers, idle, ahead) in [(1, POLICIES[2], 1), (2, POLICIES[1], 3), (2, POLICIES[0], 0)] {
        let runtime = Runtime::new(Config { workers, idle, ..Config::default() }).unwrap();
        let group = runtime.group("spawner", 1);
        let (spawner, ran) = (group.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&ran);
        let main = group.spawn_main("main", async move {
            let (mut lookahead, mut most) = (spawner.lookahead(ahead), 0);
            for _ in 0..1_000 {
                lookahead.step().await?;
                for _ in 0..TASKS {
                    let counted = Arc::clone(&counted);
                    let task = spawner.task("counts").unthrottled();
                    task.spawn(move || _ = counted.fetch_add(1, Ordering::Relaxed))?;
                }
                most = most.max(spawner.outstanding());
            }
            spawner.wait().await.map(|()| most)
        });
        let most = runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
        let ahead = ahead.max(1) as u64;
        assert!(most <= ahead * TASKS, "{most} tasks were outstanding, {ahead} steps ahead");
        assert_eq!(ran.load(Ordering::Relaxed), 1_000 * TASKS);
    }
}

#[test]
fn a_lookahead_may_be_without_bound() {
    let runtime = common::runtime(1);
    let group = runtime.group("spawner", 1);
    let spawner = group.clone();
    let main = group.spawn_main("main", async move {
        let mut lookahead = spawner.lookahead(usize::MAX);
        let event = PendingEvent::of_group(&spawner, "event")?;
        for _ in 0..100 {
            lookahead.step().await?;
        }
        drop(event);
        spawner.wait().await
    });
    runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
}

#[test]
fn steps_within_the_lookahead_overlap() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("spawner", 1);
    let spawner = group.clone();
    let main = group.spawn_main("main", async move {
        let mut lookahead = spawner.lookahead(3);
        let mut events = Vec::new();
        for _ in 0..3 {
            lookahead.step().await?;
            events.push(PendingEvent::of_group(&spawner, "event")?);
        }
        drop(events.remove(0));
        // Another program of the group, whose task ends after all of this one.
        let others = PendingEvent::of_group(&spawner, "of another program")?;
        lookahead.step().await?;
        drop((events, others));
        spawner.wait().await
    });
    runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
}

#[test]
fn a_wait_for_room_ends_with_a_hang() {
    let _watchdog = common::watchdog();
    let hang_after = Duration::from_millis(20);
    let config = Config { workers: 1, throttle: THROTTLE, hang_after, ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = runtime.group("spawner", 1);
    let spawner = group.clone();
    let main = group.spawn_main("main", async move {
        let events: Result<Vec<_>, _> =
            (0..THROTTLE).map(|_| PendingEvent::of_group(&spawner, "event")).collect();
        let result = spawner.room().await;
        drop(events);
        result
    });
    let result = runtime.block_on(main.unwrap()).and_then(|joined| joined);
    let report = match result {
        Ok(Err(Error::Hang(report))) | Err(Error::Hang(report)) => report,
        other => panic!("a hang was expected, not {other:?}"),
    };
    assert!(report.contains("waits for room in its group"), "{report}");
}
