//! Waiting for a time: in order, never early, and no later than it must be.

use crate::common;
use std::time::Duration;

use talpf_runtime::IdlePolicy;

use crate::common::{Log, POLICIES};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_wait_is_never_early() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let handles: Vec<_> = [0, 1, 50_000, 1_000_000, 3_000_000]
            .into_iter()
            .map(|period_ns| {
                let group = runtime.group("timed", 1);
                let task = runtime.task("wait");
                let waited = task.run_async(move || async move {
                    let start_ns = group.clock().now_ns();
                    group.wait_for(Duration::from_nanos(period_ns)).await;
                    group.clock().now_ns() - start_ns
                });
                (period_ns, waited.unwrap())
            })
            .collect();
        for (period_ns, handle) in handles {
            assert!(runtime.block_on(handle).unwrap().unwrap() >= period_ns, "{policy}");
        }
    }
}

#[test]
fn waits_end_in_the_order_of_their_times_even_if_all_are_late() {
    let runtime = common::unwatched(1, IdlePolicy::Park);
    let log = Log::new();
    for period in [9, 3, 6, 1] {
        let (log, group) = (log.clone(), runtime.group("timed", period));
        let task = runtime.task("wait");
        task.spawn_async(move || async move {
            group.wait_for(period * MS).await;
            log.add(period);
        })
        .unwrap();
    }
    // The only worker reads the clock again when all have passed.
    runtime.task("compute").spawn(|| common::pass(20 * MS)).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), [1, 3, 6, 9]);
}

#[test]
fn a_thread_outside_may_wait_for_a_time() {
    let _watchdog = common::watchdog();
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let start_ns = runtime.clock().now_ns();
        runtime.block_on(runtime.wait_for(2 * MS)).unwrap();
        assert!(runtime.clock().now_ns() - start_ns >= 2_000_000);
    }
}
