//! Async bodies await anything, are woken from anywhere, and never lose a wake-up.

use crate::common;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::channel::{mpsc, oneshot};
use futures::task::AtomicWaker;
use futures::{SinkExt, StreamExt};
use talpf_runtime::Array;

#[test]
fn a_body_awaits_a_tokio_timer() {
    let runtime = common::runtime(2);
    let period = Duration::from_millis(5);
    let timers: Vec<_> = (0..10)
        .map(|_| {
            let task = runtime.task("sleeper");
            task.run_async(move || async move {
                let start = Instant::now();
                tokio::time::sleep(period).await;
                start.elapsed()
            })
            .unwrap()
        })
        .collect();
    for timer in timers {
        assert!(runtime.block_on(timer).unwrap().unwrap() >= period);
    }
}

#[test]
fn a_body_spawns_and_awaits_tokio_tasks() {
    let runtime = common::runtime(1);
    let task = runtime.task("spawner");
    let sum = task.run_async(|| async { tokio::spawn(async { 40 }).await.unwrap() + 2 });
    assert_eq!(runtime.block_on(sum.unwrap()).unwrap().unwrap(), 42);
}

#[test]
fn a_region_stays_held_across_awaits() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
    for step in 0..100 {
        let task = runtime.task("step").inout(&array.all());
        task.spawn_async(move |mut all| async move {
            let seen = all[0];
            tokio::task::yield_now().await;
            assert_eq!((seen, all[0]), (step, step));
            all[0] += 1;
        })
        .unwrap();
    }
    runtime.wait_blocking().unwrap();
}

#[test]
fn two_tasks_play_ping_pong_over_channels() {
    const ROUNDS: u64 = 1000;
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let (mut to_pong, mut from_ping) = mpsc::channel::<u64>(0);
        let (mut to_ping, mut from_pong) = mpsc::channel::<u64>(0);
        let ping = runtime.task("ping").run_async(move || async move {
            let mut ball = 0;
            for _ in 0..ROUNDS {
                to_pong.send(ball).await.unwrap();
                ball = from_pong.next().await.unwrap();
            }
            ball
        });
        let pong = runtime.task("pong");
        pong.spawn_async(move || async move {
            while let Some(ball) = from_ping.next().await {
                to_ping.send(ball + 1).await.unwrap();
            }
        })
        .unwrap();
        assert_eq!(runtime.block_on(ping.unwrap()).unwrap().unwrap(), ROUNDS);
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_task_is_woken_from_another_thread() {
    let runtime = common::runtime(1);
    for round in 0..200 {
        let (send, receive) = oneshot::channel();
        let handle = runtime.task("receiver").run_async(|| async { receive.await.unwrap() });
        let sender = thread::spawn(move || send.send(round).unwrap());
        assert_eq!(runtime.block_on(handle.unwrap()).unwrap().unwrap(), round);
        sender.join().unwrap();
    }
}

#[test]
fn a_storm_of_wake_ups_loses_none() {
    const WAKES: u64 = 20_000;
    let runtime = common::runtime(2);
    let (waker, sent) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicU64::new(0)));
    let (registered, seen) = (waker.clone(), sent.clone());
    let waits = move |cx: &mut std::task::Context<'_>| {
        registered.register(cx.waker());
        if seen.load(Ordering::SeqCst) == 3 * WAKES { Poll::Ready(()) } else { Poll::Pending }
    };
    let handle = runtime.task("woken").run_async(|| poll_fn(waits)).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..WAKES {
                    sent.fetch_add(1, Ordering::SeqCst);
                    waker.wake();
                }
            });
        }
    });
    runtime.block_on(handle).unwrap().unwrap();
}

#[test]
fn a_body_that_wakes_itself_lets_others_run() {
    let runtime = common::runtime(1);
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let spinner = runtime.task("spinner");
    spinner
        .spawn_async(move || {
            poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                if seen.load(Ordering::SeqCst) == 100 { Poll::Ready(()) } else { Poll::Pending }
            })
        })
        .unwrap();
    for _ in 0..100 {
        let counted = count.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        runtime.task("counter").spawn(count).unwrap();
    }
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_waker_kept_past_its_task_and_its_runtime_wakes_nobody() {
    let runtime = common::runtime(1);
    let (send, receive) = std::sync::mpsc::channel::<Waker>();
    runtime
        .task("leaver")
        .spawn_async(move || {
            poll_fn(move |cx| {
                send.send(cx.waker().clone()).unwrap();
                Poll::Ready(())
            })
        })
        .unwrap();
    runtime.wait_blocking().unwrap();
    let waker = receive.recv().unwrap();
    waker.wake_by_ref();
    // Very likely the same record, in its next life.
    let polls = Arc::new(AtomicUsize::new(0));
    let (counted, stale) = (polls.clone(), waker.clone());
    let (send, mut receive) = oneshot::channel::<()>();
    runtime
        .task("other")
        .spawn_async(move || {
            poll_fn(move |cx| {
                counted.fetch_add(1, Ordering::SeqCst);
                (0..100).for_each(|_| stale.wake_by_ref());
                futures::FutureExt::poll_unpin(&mut receive, cx).map(|_| ())
            })
        })
        .unwrap();
    assert!(common::eventually(|| polls.load(Ordering::SeqCst) > 0));
    send.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(polls.load(Ordering::SeqCst) <= 2);
    runtime.shut_down().unwrap();
    waker.wake();
}
