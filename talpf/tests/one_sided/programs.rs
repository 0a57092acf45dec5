//! Programs that capture something, and programs in wrong places.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common;
use talpf::{Error, exec};
use talpf_runtime::Runtime;

#[test]
fn every_rank_gets_a_clone_of_what_the_program_captures() {
    let mut values = vec![1, 2, 3];
    let sum = Arc::new(AtomicU32::new(0));
    let shared = Arc::clone(&sum);
    let ends = exec(common::config(3, 2), async move |ctx| {
        values.push(ctx.rank().0);
        shared.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Error>(values)
    });
    assert_eq!(ends.unwrap(), [[1, 2, 3, 0], [1, 2, 3, 1], [1, 2, 3, 2]]);
    assert_eq!((sum.load(Ordering::Relaxed), Arc::strong_count(&sum)), (3, 1));
}

#[test]
fn a_program_that_is_no_clone_is_run_by_reference() {
    struct Unique(u32);
    let unique = Unique(7);
    let main = move |ctx: talpf::Context| {
        let value = unique.0 + ctx.rank().0;
        async move { Ok::<_, Error>(value) }
    };
    assert_eq!(exec(common::config(2, 1), &main).unwrap(), [7, 8]);
}

#[test]
fn exec_in_a_task_is_refused_before_its_program_runs() {
    let runtime = Runtime::new(talpf_runtime::Config { workers: 1, ..Default::default() }).unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let inner = Arc::clone(&runs);
    let body = runtime.task("outer").run(move || {
        exec(common::config(2, 1), async move |_| {
            inner.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Error>(())
        })
    });
    let refused = runtime.block_on(body.unwrap()).unwrap().unwrap().unwrap_err();
    let is_right = matches!(
        refused,
        Error::Runtime(talpf_runtime::Error::BlockingInTask { call: "exec", .. })
    );
    assert!(is_right, "{refused}");
    assert_eq!(runs.load(Ordering::Relaxed), 0, "the program has run");
    runtime.shut_down().unwrap();
}
