//! A failure early in a long program costs no more than the tasks it keeps from running.

use futures::channel::oneshot;
use talpf_runtime::Token;

use crate::common::{self, Flag};

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
fn a_wait_names_the_whole_chain_and_its_text_both_ends() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let token = Token::new(&runtime).unwrap();
    let mut expected = vec!["first"];
    // A task spawned after all others are complete fails with the first cause only.
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("first").inout(&token.region());
    task.spawn_async(|token| async move {
        let _token = token;
        gate.await.unwrap();
        panic!("the cause")
    })
    .unwrap();
    for _ in 0..40 {
        runtime.task("between").inout(&token.region()).spawn(|_| panic!("ran")).unwrap();
        expected.insert(0, "between");
    }
    runtime.task("last").inout(&token.region()).spawn(|_| panic!("ran")).unwrap();
    expected.insert(0, "last");
    open.send(()).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failed), expected);
    let text = failed.to_string();
    let named = "task `between` of the runtime did not run because ";
    let begin = format!("task `last` of the runtime did not run because {named}");
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.contains(" because 26 more did not run because "), "{text}");
    let end = format!("{named}task `first` of the runtime failed: the cause");
    assert!(text.ends_with(&end), "{text}");
    assert_eq!(text.matches("between").count(), 14);
}

/// With a note for every task that did not run, each would take as long as all those before it, and
/// all of them longer than the watchdog has patience.
#[test]
fn a_long_row_of_tasks_behind_a_failure_ends() {
    const TASKS: usize = 200_000;
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let token = Token::new(&runtime).unwrap();
    runtime.task("first").inout(&token.region()).spawn(|_| panic!("first")).unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 0));
    let group = (*runtime).clone();
    let row = runtime.task("row").spawn(move || {
        for _ in 0..TASKS {
            // Complete when the spawn returns, so that the next one does not wait for it.
            let task = group.task("next").inout(&token.region()).inline();
            task.spawn(|_| panic!("ran")).unwrap();
        }
    });
    row.unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert!(failed.to_string().ends_with("failed: first"));
}
