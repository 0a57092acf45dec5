//! Failures of children: the regions that they poison, and the waits that report them, with which
//! chain (R4).

use futures::channel::oneshot;
use talpf_runtime::{Array, Children, Runtime, fail_current_task};

use crate::common::{self, Flag, failure, labels};

/// Spawns a task with a child that fails on the left half of `array` and one that fills the right
/// half.
fn half_failed(runtime: &Runtime, array: &Array<u64>, waits: bool) -> Flag {
    let waited = Flag::default();
    let notify = waited.clone();
    let parent = runtime.task("parent").inout(&array.all());
    parent
        .spawn_async(move |all| async move {
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            let bad = children.task("bad").inout(&all.region(..4));
            bad.spawn(|_left| panic!("poisoned")).unwrap();
            children.task("good").inout(&all.region(4..)).spawn(|mut right| right.fill(3)).unwrap();
            if waits {
                let failure = failure(children.wait().await);
                assert_eq!(
                    (labels(&failure), &failure.inside[..]),
                    (vec!["bad"], &["parent".to_owned()][..])
                );
                children.wait().await.unwrap();
                notify.set();
            }
        })
        .unwrap();
    waited
}

#[test]
fn a_failed_child_poisons_what_it_would_have_written() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    for waits in [false, true] {
        let runtime = common::runtime(1);
        let array = Array::new(&runtime, vec![0u64; 8], 8).unwrap();
        let waited = half_failed(&runtime, &array, waits);
        let poisoned = runtime.task("left").input(&array.region(..4)).run(|_| ()).unwrap();
        let right = runtime.task("right").input(&array.region(4..)).run(|right| right[0]).unwrap();
        let chain = failure(runtime.block_on(poisoned).unwrap());
        assert_eq!(labels(&chain), ["left", "bad"]);
        assert_eq!(
            chain.to_string(),
            "task `left` of the runtime did not run because task `bad` in `parent` of the runtime \
             failed: poisoned"
        );
        assert_eq!(runtime.block_on(right).unwrap().unwrap(), 3);
        assert_eq!(labels(&failure(runtime.wait_blocking())), ["left", "bad"]);
        assert_eq!(waited.is_set(), waits);
        runtime.task("again").inout(&array.all()).spawn(|mut all| all.fill(0)).unwrap();
        runtime.wait_blocking().unwrap();
    }
}

#[test]
fn a_failure_that_nobody_has_waited_for_reaches_the_next_wait_outside() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let failure_of_top = runtime.task("top").run_async(|| async {
        let children = Children::of_current_task().unwrap();
        let middle = children.task("middle");
        middle
            .spawn(|| {
                let children = Children::of_current_task().unwrap();
                children.task("leaf").spawn(|| panic!("deep down")).unwrap();
            })
            .unwrap();
        failure(children.wait().await)
    });
    let failure_of_top = runtime.block_on(failure_of_top.unwrap()).unwrap().unwrap();
    assert_eq!(failure_of_top.label, "leaf");
    assert_eq!(failure_of_top.inside, ["middle", "top"]);
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["leaf"]);
}

#[test]
fn a_parent_that_fails_poisons_what_it_has_lent_and_its_children_go_on() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let (ran, after) = (Flag::default(), Flag::default());
    let running = ran.clone();
    let parent = runtime.task("parent").inout(&array.all());
    parent
        .spawn(move |all| {
            let (children, all) = (Children::of_current_task().unwrap(), all.lend());
            let child = children.task("child").inout(&all.region(..4));
            child
                .spawn_async(move |part| async move {
                    gate.await.unwrap();
                    running.set();
                    drop(part);
                })
                .unwrap();
            panic!("half way");
        })
        .unwrap();
    let seen = after.clone();
    let successor = runtime.task("successor").input(&array.region(6..));
    successor.spawn(move |_part| seen.set()).unwrap();
    open.send(()).unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["successor", "parent"]);
    assert!(ran.is_set() && !after.is_set());
}

#[test]
fn children_of_a_weak_task_do_not_run_on_what_is_poisoned() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    // Whether the failure comes before the weak task is spawned, or when its child waits for it.
    for early in [true, false] {
        let runtime = common::runtime(1);
        let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
        let (open, gate) = oneshot::channel::<()>();
        let bad = runtime.task("bad").inout(&array.region(..4));
        bad.spawn_async(|left| async move {
            gate.await.unwrap();
            fail_current_task("poisoned").unwrap();
            drop(left);
        })
        .unwrap();
        let mut open = Some(open);
        let mut poison = || open.take().into_iter().for_each(|open| open.send(()).unwrap());
        if early {
            poison();
            assert!(common::eventually(|| runtime.outstanding() == 0));
        }
        let (left, right) = (Flag::default(), Flag::default());
        let flags = [left.clone(), right.clone()];
        let weak = runtime.task("weak").weak_inout(&array.all());
        let weak = weak.run(move |all| {
            let children = Children::of_current_task().unwrap();
            for (part, flag) in [all.region(..4), all.region(4..)].into_iter().zip(flags) {
                let child = children.task("child").inout(&part);
                child.spawn(move |_part| flag.set()).unwrap();
            }
        });
        runtime.block_on(weak.unwrap()).unwrap().unwrap();
        poison();
        assert_eq!(labels(&failure(runtime.wait_blocking())), ["child", "bad"]);
        assert!(!left.is_set() && right.is_set(), "early: {early}");
    }
}

#[test]
fn a_weak_task_that_does_not_run_leaves_the_order_of_others() {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let poisoned = Array::new(&runtime, vec![0u64; 1], 1).unwrap();
    let array = Array::new(&runtime, vec![0u64; 8], 4).unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let holder = runtime.task("holder").input(&array.all());
    holder.spawn_async(|all| async move { gate.await.map(|()| drop(all)).unwrap() }).unwrap();
    runtime.task("bad").inout(&poisoned.all()).spawn(|_| panic!("bad")).unwrap();
    let weak = runtime.task("weak").input(&poisoned.all()).weak_input(&array.all());
    weak.spawn(|_, _| ()).unwrap();
    let ran = Flag::default();
    let running = ran.clone();
    runtime.task("writer").inout(&array.all()).spawn(move |_all| running.set()).unwrap();
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
    assert!(!ran.is_set());
    open.send(()).unwrap();
    assert_eq!(labels(&failure(runtime.wait_blocking())), ["weak", "bad"]);
    assert!(ran.is_set());
}
