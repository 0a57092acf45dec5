//! A cancelled group: tasks that have not begun do not run, suspended bodies are dropped, running
//! ones end, everything is released, and other groups go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime, is_cancelled};

use crate::common::{self, Drops, Flag};

fn setup(workers: usize) -> (Runtime, Group, Array<u64>) {
    let runtime = common::runtime(workers);
    let group = runtime.group("the group", 7);
    let array = Array::new(&group, vec![0u64; 4], 2).unwrap();
    (runtime, group, array)
}

/// Spawns a task that has the whole array until the returned end sends, or drops.
fn holder(group: &Group, array: &Array<u64>) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel::<()>();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = group.task("holder").inout(&array.all());
    task.spawn_async(move |all| async move {
        let _all = all;
        begins.set();
        let _ = gate.await;
    })
    .unwrap();
    assert!(common::eventually(|| begun.is_set()));
    open
}

fn cancelled(result: Result<(), Error>) -> String {
    match result {
        Err(error @ Error::Cancelled { .. }) => error.to_string(),
        other => panic!("a cancellation was expected, not {other:?}"),
    }
}

#[test]
fn tasks_that_have_not_begun_do_not_run_and_let_go_of_everything() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(2);
    let drops = Drops::default();
    let _open = holder(&group, &array);
    for _ in 0..100 {
        let item = drops.item();
        let task = group.task("waits").inout(&array.tile(0));
        let ran = move |_| {
            let _item = &item;
            panic!("ran")
        };
        task.spawn(ran).unwrap();
    }
    group.cancel("too late");
    assert!(group.is_cancelled());
    assert_eq!(cancelled(group.wait_blocking()), "the group was cancelled: too late");
    assert_eq!((drops.count(), group.outstanding()), (100, 0));
}

#[test]
fn the_group_can_be_used_again_after_the_wait() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(2);
    let _open = holder(&group, &array);
    group.cancel("first");
    group.cancel("the first reason counts");
    assert_eq!(cancelled(group.wait_blocking()), "the group was cancelled: first");
    assert!(!group.is_cancelled());
    group.task("works").inout(&array.all()).spawn(|mut all| all[3] = 5).unwrap();
    group.wait_blocking().unwrap();
    let read = group.task("read").input(&array.all()).run(|all| all[3]).unwrap();
    assert_eq!(futures::executor::block_on(read).unwrap(), 5);
}

#[test]
fn an_idle_group_can_be_cancelled() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(1);
    group.cancel("nothing to do");
    group.task("late").inout(&array.all()).spawn(|_| panic!("ran")).unwrap();
    assert_eq!(cancelled(group.wait_blocking()), "the group was cancelled: nothing to do");
    group.wait_blocking().unwrap();
}

#[test]
fn a_suspended_body_is_dropped_with_what_it_holds() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(1);
    let drops = Drops::default();
    let item = drops.item();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = group.task("waits").inout(&array.all());
    task.spawn_async(move |all| async move {
        let _held = (all, item);
        begins.set();
        std::future::pending::<()>().await;
    })
    .unwrap();
    assert!(common::eventually(|| begun.is_set()));
    group.cancel("enough");
    cancelled(group.wait_blocking());
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_body_that_awaits_again_and_again_is_dropped_at_one_of_its_awaits() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let (_runtime, group, _) = setup(workers);
        for _ in 0..20 {
            let begun = Arc::new(AtomicUsize::new(0));
            for _ in 0..8 {
                let begun = Arc::clone(&begun);
                group
                    .task("spins")
                    .spawn_async(move || async move {
                        begun.fetch_add(1, Ordering::SeqCst);
                        loop {
                            tokio::task::yield_now().await;
                        }
                    })
                    .unwrap();
            }
            assert!(common::eventually(|| begun.load(Ordering::SeqCst) > 0));
            group.cancel("enough");
            cancelled(group.wait_blocking());
        }
    }
}

#[test]
fn a_running_body_sees_it_and_ends() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(2);
    let begun = Flag::default();
    let begins = begun.clone();
    let task = group.task("long").inout(&array.all());
    let long = task.run(move |mut all| {
        begins.set();
        assert!(common::eventually(is_cancelled));
        all[0] = 1;
        "its own end"
    });
    let long = long.unwrap();
    assert!(common::eventually(|| begun.is_set()));
    group.cancel("stop");
    assert_eq!(futures::executor::block_on(long).unwrap(), "its own end");
    cancelled(group.wait_blocking());
    assert!(!is_cancelled(), "outside a task nothing is cancelled");
}

#[test]
fn a_task_may_cancel_its_own_group() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(1);
    let mine = group.clone();
    let task = group.task("gives up").inout(&array.all());
    task.spawn(move |_| mine.cancel("found it")).unwrap();
    group.task("waits").inout(&array.all()).spawn(|_| panic!("ran")).unwrap();
    assert_eq!(cancelled(group.wait_blocking()), "the group was cancelled: found it");
}

#[test]
fn handles_say_that_the_task_was_cancelled() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(2);
    let (held, gate) = oneshot::channel::<()>();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = group.task("suspended").inout(&array.all());
    let suspended = task.run_async(move |all| async move {
        begins.set();
        let _ = gate.await;
        drop(all);
    });
    let suspended = suspended.unwrap();
    let pending = group.task("pending").input(&array.all()).run(|_| ()).unwrap();
    assert!(common::eventually(|| begun.is_set()));
    group.cancel("stop");
    let said = "the group was cancelled: stop";
    assert_eq!(cancelled(futures::executor::block_on(suspended)), said);
    assert_eq!(cancelled(futures::executor::block_on(pending)), said);
    assert_eq!(cancelled(group.wait_blocking()), said);
    drop(held);
}

#[test]
fn other_groups_go_on() {
    let _watchdog = common::watchdog();
    let (runtime, group, array) = setup(2);
    let other = runtime.group("other", 8);
    let sum = Array::new(&other, vec![0u64], 1).unwrap();
    let _open = holder(&group, &array);
    for _ in 0..100 {
        other.task("adds").inout(&sum.all()).spawn(|mut sum| sum[0] += 1).unwrap();
    }
    group.cancel("stop");
    cancelled(group.wait_blocking());
    other.wait_blocking().unwrap();
    let sum = other.task("read").input(&sum.all()).run(|sum| sum[0]).unwrap();
    assert_eq!(futures::executor::block_on(sum).unwrap(), 100);
}

#[test]
fn a_task_of_another_group_on_cancelled_data_does_not_run_and_names_the_cause() {
    let _watchdog = common::watchdog();
    let (runtime, group, array) = setup(2);
    let other = runtime.group("other", 8);
    let _open = holder(&group, &array);
    let reader = other.task("reader").input(&array.all());
    reader.spawn(|_| panic!("ran")).unwrap();
    group.cancel("stop");
    cancelled(group.wait_blocking());
    let failed = common::failure(other.wait_blocking());
    let said = "task `reader` of other did not run because task `holder` of the group was \
                cancelled: stop";
    assert_eq!(failed.to_string(), said);
}

#[test]
fn a_program_is_not_cancelled_and_hears_of_it() {
    let _watchdog = common::watchdog();
    let (runtime, group, array) = setup(1);
    let _open = holder(&group, &array);
    let (mine, begun) = (group.clone(), Flag::default());
    let begins = begun.clone();
    let program = async move {
        begins.set();
        mine.wait().await
    };
    let main = group.spawn_main("main", program).unwrap();
    assert!(common::eventually(|| begun.is_set()));
    group.cancel("stop");
    cancelled(runtime.block_on(main).unwrap().unwrap());
}

#[test]
fn a_wait_lasts_until_pending_events_are_resolved() {
    let _watchdog = common::watchdog();
    let (runtime, group, _) = setup(2);
    let event = group.task("event").run(|| PendingEvent::of_current_task().unwrap()).unwrap();
    let event = runtime.block_on(event).unwrap().unwrap();
    group.cancel("stop");
    assert_eq!(group.outstanding(), 1);
    drop(event);
    cancelled(group.wait_blocking());
}

#[test]
fn actions_get_the_reason() {
    let _watchdog = common::watchdog();
    let (_runtime, group, _) = setup(1);
    let notified = Arc::new(AtomicBool::new(false));
    let notifies = Arc::clone(&notified);
    group.on_cancel(move |reason| notifies.store(reason == "stop", Ordering::SeqCst));
    group.cancel("stop");
    assert!(notified.load(Ordering::SeqCst));
    cancelled(group.wait_blocking());
}

#[test]
fn arrays_are_freed_after_a_cancellation() {
    let _watchdog = common::watchdog();
    let (_runtime, group, gate) = setup(2);
    let drops = Drops::default();
    let array = Array::new(&group, drops.items(8), 4).unwrap();
    let _open = holder(&group, &gate);
    let task = group.task("never").inout(&gate.all()).inout(&array.all());
    task.spawn(|_, _| panic!("ran")).unwrap();
    drop(array);
    group.cancel("stop");
    cancelled(group.wait_blocking());
    assert_eq!(drops.count(), 8);
}

#[test]
fn a_cancelled_commutative_task_releases_its_tile_lock() {
    let _watchdog = common::watchdog();
    let (_runtime, group, array) = setup(1);
    let (_open, gate) = oneshot::channel::<()>();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = group.task("holder").commutative(&array.all());
    task.spawn_async(move |all| async move {
        let _all = all;
        begins.set();
        let _ = gate.await;
    })
    .unwrap();
    assert!(common::eventually(|| begun.is_set()));
    for _ in 0..3 {
        group.task("waits").commutative(&array.all()).spawn(|_| panic!("ran")).unwrap();
    }
    group.cancel("stop");
    cancelled(group.wait_blocking());
    let after = group.task("after").commutative(&array.all()).run(|_| 1).unwrap();
    assert_eq!(futures::executor::block_on(after).unwrap(), 1);
}

#[test]
fn a_shutdown_reports_a_cancellation_that_no_wait_has() {
    let _watchdog = common::watchdog();
    let (runtime, group, array) = setup(2);
    let _open = holder(&group, &array);
    group.cancel("stop");
    drop((group, array));
    assert_eq!(cancelled(runtime.shut_down()), "the group was cancelled: stop");
}

#[test]
fn a_wait_for_children_that_were_cancelled_says_so() {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let group = (*runtime).clone();
        let program = runtime.spawn_main("program", async move {
            let children = Children::of_current_task().unwrap();
            group.cancel("as planned");
            children.task("child").spawn(|| ()).unwrap();
            children.wait().await
        });
        let waited = runtime.block_on(program.unwrap()).unwrap().unwrap();
        let error = waited.unwrap_err();
        assert_eq!(error.to_string(), "the runtime was cancelled: as planned");
        assert!(matches!(runtime.wait_blocking(), Err(Error::Cancelled { .. })));
    }
}
