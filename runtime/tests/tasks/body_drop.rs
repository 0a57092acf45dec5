//! Captures of bodies, and the futures that they make, are dropped exactly once, run or not.

use crate::common;
use futures::channel::oneshot;
use talpf_runtime::Token;

use crate::common::{Drops, failure, labels};

/// Larger than what a record holds in place.
struct Large(#[allow(dead_code, reason = "only its size counts")] [u64; 100]);

/// Stricter than the place in a record.
#[repr(align(256))]
struct Aligned(u8);

#[test]
fn a_small_and_a_large_body_are_dropped_once() {
    let runtime = common::runtime(2);
    let drops = Drops::default();
    for _ in 0..100 {
        let (small, large) = (drops.item(), (drops.item(), Large([0; 100])));
        runtime.task("small").spawn(move || drop(small)).unwrap();
        runtime.task("large").spawn(move || drop(large)).unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 200);
}

#[test]
fn a_body_that_ignores_what_it_captured_drops_it_before_its_task_completes() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let (captured, in_future) = (drops.item(), drops.item());
    runtime
        .task("ignores")
        .spawn(move || {
            let _ = &captured;
        })
        .unwrap();
    let task = runtime.task("ignores");
    task.spawn_async(move || async move {
        let _ = &in_future;
    })
    .unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 2);
}

#[test]
fn an_aligned_body_is_aligned() {
    let runtime = common::runtime(1);
    let aligned = Aligned(5);
    let handle = runtime.task("aligned").run_async(move || async move {
        let aligned = aligned;
        tokio::task::yield_now().await;
        (std::ptr::from_ref(&aligned).addr() % 256, aligned.0)
    });
    assert_eq!(runtime.block_on(handle.unwrap()).unwrap().unwrap(), (0, 5));
}

#[test]
fn a_small_and_a_large_future_are_dropped_once() {
    let runtime = common::runtime(2);
    let drops = Drops::default();
    for _ in 0..100 {
        let (small, large) = (drops.item(), (drops.item(), Large([0; 100])));
        let task = runtime.task("small");
        task.spawn_async(move || async move {
            tokio::task::yield_now().await;
            drop(small);
        })
        .unwrap();
        let task = runtime.task("large");
        task.spawn_async(move || async move {
            let kept = large;
            tokio::task::yield_now().await;
            drop(kept);
        })
        .unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(drops.count(), 200);
}

#[test]
fn a_future_that_panics_is_dropped_once() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let (before, across) = (drops.item(), drops.item());
    let task = runtime.task("panics");
    task.spawn_async(move || async move {
        let _across = across;
        tokio::task::yield_now().await;
        drop(before);
        panic!("after an await");
    })
    .unwrap();
    assert!(runtime.wait_blocking().is_err());
    assert_eq!(drops.count(), 2);
}

#[test]
fn bodies_that_never_ran_are_dropped_once() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let token = Token::new(&runtime).unwrap();
    let drops = Drops::default();
    runtime.task("fails").output(&token.region()).spawn(|_| panic!("first")).unwrap();
    for _ in 0..10 {
        let (small, large, later) = (drops.item(), (drops.item(), Large([0; 100])), drops.item());
        let task = || runtime.task("never").inout(&token.region());
        task().spawn(move |_| drop(small)).unwrap();
        task().spawn(move |_| drop(large)).unwrap();
        task().spawn_async(move |_| async move { drop(later) }).unwrap();
    }
    assert!(runtime.wait_blocking().is_err());
    assert_eq!(drops.count(), 30);
}

#[test]
fn a_capture_that_panics_when_dropped_does_not_stop_the_runtime() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let token = Token::new(&runtime).unwrap();
    let ran = Bomb;
    runtime.task("ran").spawn(move || drop(ran)).unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["ran"]);
    runtime.task("fails").output(&token.region()).spawn(|_| panic!("first")).unwrap();
    let skipped = Bomb;
    runtime.task("skipped").inout(&token.region()).spawn(move |_| drop(skipped)).unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["skipped", "fails"]);
    runtime.task("after").inout(&token.region()).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_result_nobody_takes_is_dropped_once() {
    let runtime = common::runtime(1);
    let drops = Drops::default();
    let (early, late) = (drops.item(), drops.item());
    let (open, gate) = oneshot::channel::<()>();
    drop(runtime.task("late").run_async(move || async move { gate.await.map(|()| late) }).unwrap());
    open.send(()).unwrap();
    let handle = runtime.task("early").run(move || early).unwrap();
    runtime.wait_blocking().unwrap();
    drop(handle);
    assert_eq!(drops.count(), 2);
}
