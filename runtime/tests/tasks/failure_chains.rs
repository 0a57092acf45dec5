//! A failure early in a long program costs no more than the tasks it keeps from running.

use crate::common;
use std::time::{Duration, Instant};

use talpf_runtime::Token;

use crate::common::Flag;

#[test]
fn a_long_chain_of_tasks_that_do_not_run_ends() {
    const TASKS: usize = 100_000;
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let token = Token::new(&runtime).unwrap();
    let spawned = Flag::default();
    let go = spawned.clone();
    let task = runtime.task("first").inout(&token.region());
    task.spawn_async(|token| async move {
        let _token = token;
        while !go.is_set() {
            tokio::task::yield_now().await;
        }
        panic!("first");
    })
    .unwrap();
    for _ in 0..TASKS {
        runtime.task("next").inout(&token.region()).spawn(|_| panic!("ran")).unwrap();
    }
    spawned.set();
    let failed = common::failure(runtime.wait_blocking());
    assert!(failed.to_string().ends_with("failed: first"));
}

#[test]
fn spawning_after_a_failure_stays_cheap() {
    const TASKS: usize = 10_000;
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let token = Token::new(&runtime).unwrap();
    runtime.task("first").inout(&token.region()).spawn(|_| panic!("first")).unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 0));
    let quarter = || {
        let start = Instant::now();
        for _ in 0..TASKS / 4 {
            runtime.task("next").inout(&token.region()).spawn(|_| panic!("ran")).unwrap();
            assert!(common::eventually(|| runtime.outstanding() == 0));
        }
        start.elapsed()
    };
    let times = [quarter(), quarter(), quarter(), quarter()];
    assert!(runtime.wait_blocking().is_err());
    // Some 40 ms in all. With a note for every task that did not run, the last quarter takes seven
    // times as long as the first, and seconds.
    let total: Duration = times.iter().sum();
    assert!(total < Duration::from_secs(1) || times[3] < 5 * times[0], "took {times:?}");
}
