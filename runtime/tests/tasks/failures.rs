//! A task that fails keeps its successors from running, and the wait reports the chain of failures
//! (R4).

use crate::common;
use futures::channel::oneshot;
use talpf_runtime::{Array, Error, Group, Runtime, Token, fail_current_task};

use crate::common::{Drops, Flag, failure, labels};

fn setup() -> (Runtime, Array<u64>) {
    common::quiet_panics();
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    (runtime, array)
}

/// Spawns a task over the array's elements `range` that must not run.
fn must_not_run(group: &Group, array: &Array<u64>, label: &'static str) {
    let task = group.task(label).inout(&array.all());
    task.spawn(move |_| panic!("`{label}` ran")).unwrap();
}

/// Checks that the group works again, since its data counts as defined.
fn works(group: &Group, array: &Array<u64>) {
    let all = group.task("again").inout(&array.all());
    all.spawn(|mut all| all.fill(9)).unwrap();
    group.wait_blocking().unwrap();
}

#[test]
fn a_panic_in_a_closure_poisons_its_successors_and_their_successors() {
    let (runtime, array) = setup();
    let token = Token::new(&runtime).unwrap();
    let task = runtime.task("first").inout(&array.tile(0));
    task.spawn(|mut tile| {
        tile[0] = 1;
        panic!("at {}", 42);
    })
    .unwrap();
    let task = runtime.task("second").input(&array.tile(0)).output(&token.region());
    let second = task.run(|_, _| ()).unwrap();
    let third = runtime.task("third").input(&token.region()).run(|_| ()).unwrap();
    let chain = failure(runtime.block_on(third).unwrap());
    assert_eq!(labels(&chain), ["third", "second", "first"]);
    assert_eq!(labels(&failure(runtime.block_on(second).unwrap())), ["second", "first"]);
    let waited = failure(runtime.wait_blocking());
    assert_eq!(
        waited.to_string(),
        "task `third` of the runtime did not run because task `second` of the runtime did not run \
         because task `first` of the runtime failed: at 42"
    );
    works(&runtime, &array);
}

#[test]
fn a_panic_in_an_async_body_poisons_its_successors() {
    let (runtime, array) = setup();
    let task = runtime.task("first").inout(&array.all());
    let first = task.run_async(|all| async move {
        let _all = all;
        tokio::task::yield_now().await;
        if true {
            panic!("async");
        }
    });
    must_not_run(&runtime, &array, "second");
    let failed = failure(runtime.block_on(first.unwrap()).unwrap());
    assert_eq!((labels(&failed), failed.reason.as_deref()), (vec!["first"], Some("async")));
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["second", "first"]);
    works(&runtime, &array);
}

#[test]
fn independent_tasks_run() {
    let (runtime, array) = setup();
    let ran = Flag::default();
    let (go, running) = (Flag::default(), ran.clone());
    let gate = go.clone();
    let task = runtime.task("fails").inout(&array.tile(0));
    task.spawn(move |_| {
        assert!(common::eventually(|| gate.is_set()));
        panic!("fails");
    })
    .unwrap();
    let other = runtime.task("other").inout(&array.tile(1));
    other.spawn(move |_| running.set()).unwrap();
    go.set();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["fails"]);
    assert!(ran.is_set());
    works(&runtime, &array);
}

#[test]
fn tasks_spawned_between_failure_and_wait_are_poisoned_too() {
    let (runtime, array) = setup();
    runtime.task("fails").output(&array.region(2..6)).spawn(|_| panic!("early")).unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 0));
    let ran = Flag::default();
    let running = ran.clone();
    let beside = runtime.task("beside").inout(&array.region(6..8));
    beside.spawn(move |_| running.set()).unwrap();
    must_not_run(&runtime, &array, "late");
    let later = runtime.task("later").output(&array.region(0..1)).run(|_| ()).unwrap();
    let chain = failure(runtime.block_on(later).unwrap());
    assert_eq!(labels(&chain), ["later", "late", "fails"]);
    assert!(runtime.wait_blocking().is_err());
    assert!(ran.is_set());
    works(&runtime, &array);
}

#[test]
fn a_reader_that_panics_does_not_poison_the_writer_after_it() {
    let (runtime, array) = setup();
    runtime.task("reader").input(&array.all()).spawn(|_| panic!("reading")).unwrap();
    let writer = runtime.task("writer").inout(&array.all()).run(|_| ()).unwrap();
    runtime.block_on(writer).unwrap().unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["reader"]);
    runtime.wait_blocking().unwrap();
}

#[test]
fn what_was_released_before_the_panic_is_not_poisoned() {
    let (runtime, array) = setup();
    let task = runtime.task("fails").inout(&array.tile(0)).inout(&array.tile(1));
    task.spawn(|early, _late| {
        drop(early);
        panic!("late");
    })
    .unwrap();
    let early = runtime.task("early").input(&array.tile(0)).run(|_| ()).unwrap();
    let late = runtime.task("late").input(&array.tile(1)).run(|_| ()).unwrap();
    runtime.block_on(early).unwrap().unwrap();
    assert!(runtime.block_on(late).unwrap().is_err());
    assert!(runtime.wait_blocking().is_err());
}

#[test]
fn an_empty_region_poisons_nothing_and_is_not_poisoned() {
    let (runtime, array) = setup();
    runtime.task("empty").output(&array.region(2..2)).spawn(|_| panic!("empty")).unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 0));
    let after = runtime.task("after").inout(&array.all()).run(|_| ()).unwrap();
    runtime.block_on(after).unwrap().unwrap();
    runtime.task("fails").output(&array.all()).spawn(|_| panic!("all")).unwrap();
    assert!(common::eventually(|| runtime.outstanding() == 0));
    let empty = runtime.task("empty").input(&array.region(2..2)).run(|_| ()).unwrap();
    runtime.block_on(empty).unwrap().unwrap();
    assert!(runtime.wait_blocking().is_err());
}

#[test]
fn a_task_may_fail_without_panic() {
    let (runtime, array) = setup();
    let ended = Flag::default();
    let ends = ended.clone();
    let task = runtime.task("fails").inout(&array.all());
    task.spawn(move |_| {
        fail_current_task("no input").unwrap();
        fail_current_task("the first reason counts").unwrap();
        ends.set();
    })
    .unwrap();
    must_not_run(&runtime, &array, "second");
    let chain = failure(runtime.wait_blocking());
    assert_eq!(labels(&chain), ["second", "fails"]);
    assert!(chain.to_string().ends_with("failed: no input"));
    assert!(ended.is_set(), "the body goes on to its end");
    assert!(matches!(fail_current_task("x"), Err(Error::NotInTask("fail_current_task"))));
    works(&runtime, &array);
}

#[test]
fn any_panic_value_is_reported() {
    let (runtime, _) = setup();
    runtime.task("value").spawn(|| std::panic::panic_any(7u8)).unwrap();
    let failed = failure(runtime.wait_blocking());
    assert_eq!(failed.reason.as_deref(), Some("panicked with a value that is no text"));
}

#[test]
fn a_failed_main_fails_its_handle_and_its_group() {
    let (runtime, _) = setup();
    let group = runtime.group("rank 3", 3);
    let main = group.spawn_main("main", async { panic!("main") }).unwrap();
    let failed = failure::<()>(runtime.block_on(main).unwrap());
    assert_eq!(failed.to_string(), "task `main` of rank 3 failed: main");
    assert!(common::eventually(|| group.wait_blocking().is_err()));
    group.wait_blocking().unwrap();
}

#[test]
fn a_failure_on_another_groups_array_is_forgotten_after_both_waits() {
    let (runtime, array) = setup();
    let group = runtime.group("other", 1);
    group.task("fails").inout(&array.all()).spawn(|_| panic!("across groups")).unwrap();
    assert_eq!(labels(&failure(group.wait_blocking())), ["fails"]);
    let _ = runtime.wait_blocking();
    works(&group, &array);
    works(&runtime, &array);
}

#[test]
fn an_array_is_freed_after_failures() {
    common::quiet_panics();
    let runtime = common::runtime(2);
    let drops = Drops::default();
    let array = Array::new(&runtime, drops.items(8), 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let task = runtime.task("fails").inout(&array.all());
    task.spawn_async(|all| async move {
        let _all = all;
        gate.await.unwrap();
        panic!("late");
    })
    .unwrap();
    runtime.task("never").inout(&array.all()).spawn(|_| ()).unwrap();
    drop(array);
    assert_eq!(drops.count(), 0);
    open.send(()).unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["never", "fails"]);
    assert_eq!(drops.count(), 8);
}
