//! Actions of a task when it becomes ready, which may hold it back.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use talpf_runtime::{
    Array, Children, Config, Error, HeldBack, OnReady, PendingEvent, Ready, Runtime, Standing,
};

use crate::common::{self, Drops, Flag, Log};

/// Lets the one worker of `runtime` do all that it can.
fn settle(runtime: &Runtime) {
    let probe = runtime.task("probe").priority(-1).run(|| ()).unwrap();
    runtime.block_on(probe).unwrap().unwrap();
}

#[test]
fn an_action_comes_after_all_that_the_task_waits_for_and_before_its_body() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64; 2], 1).unwrap();
        let log = Log::new();
        let (open, gate) = oneshot::channel::<()>();
        let writes = log.clone();
        let task = runtime.task("writes").output(&array.all());
        task.spawn_async(move |all| async move {
            let _all = all;
            let _ = gate.await;
            writes.add("writes");
        })
        .unwrap();
        let logs = [log.clone(), log.clone(), log.clone()];
        let [first, second, body] = logs;
        runtime
            .task("reads")
            .on_ready(move |_| first.add("first action"))
            .input(&array.all())
            .on_ready(move |_| second.add("second action"))
            .spawn(move |_| body.add("reads"))
            .unwrap();
        open.send(()).unwrap();
        runtime.wait_blocking().unwrap();
        assert_eq!(log.take(), ["writes", "first action", "second action", "reads"]);
    }
}

#[test]
fn a_task_with_nothing_to_wait_for_acts_in_its_spawn() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let acted = Flag::default();
    let acts = acted.clone();
    let task = runtime.task("acts").on_ready(move |_| acts.set());
    let task = task.run_async(|| async { 7 }).unwrap();
    assert!(acted.is_set());
    assert_eq!(runtime.block_on(task).unwrap().unwrap(), 7);
}

/// Spawns a task that holds itself back twice. Returns the holds, and whether it has run.
fn held(runtime: &Runtime, array: &Array<u64>) -> (HeldBack, HeldBack, Flag) {
    let holds = Log::new();
    let keeps = holds.clone();
    let ran = Flag::default();
    let runs = ran.clone();
    let task = runtime.task("held").commutative(&array.all()).on_ready(move |ready| {
        keeps.add(ready.hold_back());
        keeps.add(ready.hold_back());
    });
    task.spawn(move |_| runs.set()).unwrap();
    let mut holds = holds.take();
    (holds.pop().unwrap(), holds.pop().unwrap(), ran)
}

#[test]
fn a_task_waits_for_every_hold_and_keeps_no_worker_and_no_tile_lock() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
    let (first, second, ran) = held(&runtime, &array);
    settle(&runtime);
    let other = runtime.task("other").commutative(&array.all()).run(|_| ()).unwrap();
    runtime.block_on(other).unwrap().unwrap();
    drop(first);
    settle(&runtime);
    assert!(!ran.is_set());
    thread::spawn(move || drop(second)).join().unwrap();
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
}

#[test]
fn holds_may_go_before_the_action_ends_and_on_any_thread() {
    let _watchdog = common::watchdog();
    for workers in [1, 2, 8] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64], 1).unwrap();
        let (send, holds) = std::sync::mpsc::channel::<HeldBack>();
        let lets_go = thread::spawn(move || holds.into_iter().for_each(drop));
        for _ in 0..500 {
            let send = send.clone();
            let task = runtime.task("held").inout(&array.all()).on_ready(move |ready| {
                drop(ready.hold_back());
                send.send(ready.hold_back()).unwrap();
            });
            task.spawn(|mut all| all[0] += 1).unwrap();
        }
        drop(send);
        runtime.wait_blocking().unwrap();
        lets_go.join().unwrap();
        let sum = runtime.task("read").input(&array.all()).run(|all| all[0]).unwrap();
        assert_eq!(runtime.block_on(sum).unwrap().unwrap(), 500);
    }
}

#[test]
fn a_hold_that_fails_keeps_its_task_and_the_next_from_running() {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64], 1).unwrap();
        let holds = Log::new();
        let keeps = holds.clone();
        let task = runtime.task("held").inout(&array.all());
        let task = task.on_ready(move |ready| keeps.add(ready.hold_back()));
        task.spawn(|_| panic!("ran")).unwrap();
        runtime.task("after").input(&array.all()).spawn(|_| panic!("ran")).unwrap();
        settle(&runtime);
        holds.take().pop().unwrap().fail("no way");
        let failed = common::failure(runtime.wait_blocking());
        assert_eq!(common::labels(&failed), ["after", "held"]);
        assert!(failed.to_string().ends_with("failed: no way"));
    }
}

#[test]
fn an_action_that_panics_fails_its_task() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let drops = Drops::default();
    let item = drops.item();
    runtime.task("before").inout(&array.all()).spawn(|_| ()).unwrap();
    let task = runtime.task("acts").inout(&array.all()).on_ready(|_| panic!("no way"));
    task.spawn(move |_| drop(item)).unwrap();
    runtime.task("after").input(&array.all()).spawn(|_| panic!("ran")).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert_eq!(common::labels(&failed), ["after", "acts"]);
    assert!(failed.to_string().ends_with("failed: no way"));
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_task_that_will_not_run_does_not_act() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let drops = Drops::default();
    let item = drops.item();
    runtime.task("fails").inout(&array.all()).spawn(|_| panic!("on purpose")).unwrap();
    let task = runtime.task("acts").inout(&array.all()).on_ready(move |_| {
        let _item = &item;
        panic!("acted")
    });
    task.spawn(|_| panic!("ran")).unwrap();
    let failed = common::failure(runtime.wait_blocking());
    assert!(failed.to_string().ends_with("failed: on purpose"));
    assert_eq!(drops.count(), 1);
    runtime.cancel("enough");
    let task = runtime.task("acts").inout(&array.all()).on_ready(|_| panic!("acted"));
    task.spawn(|_| panic!("ran")).unwrap();
    assert!(matches!(runtime.wait_blocking(), Err(Error::Cancelled { .. })));
}

#[test]
fn any_number_of_actions_run_in_order_or_drop_without_running() {
    const COUNT: usize = 20_000;
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let (log, drops) = (Log::new(), Drops::default());
    let declare = || {
        let mut task = runtime.task("acts").inout(&array.all()).on_ready(|_| ());
        for (number, item) in drops.items(COUNT).into_iter().enumerate() {
            let log = log.clone();
            task = task.on_ready(move |_| {
                log.add(number);
                drop(item);
            });
        }
        task
    };
    declare().spawn(|_| ()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(log.take().into_iter().eq(0..COUNT));
    assert_eq!(drops.count(), COUNT);
    runtime.task("fails").inout(&array.all()).spawn(|_| panic!("on purpose")).unwrap();
    declare().spawn(|_| panic!("ran")).unwrap();
    common::failure(runtime.wait_blocking());
    assert!(log.take().is_empty());
    assert_eq!(drops.count(), 2 * COUNT);
}

#[test]
fn an_action_may_spawn() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 2], 1).unwrap();
    let (group, spawned) = (runtime.group("other", 1), array.clone());
    let task = runtime.task("acts").inout(&array.tile(0)).on_ready(move |_| {
        let task = group.task("spawned").inout(&spawned.tile(1));
        task.spawn(|mut tile| tile[0] = 2).unwrap();
    });
    task.spawn(|mut tile| tile[0] = 1).unwrap();
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), [1, 2]);
}

#[test]
fn a_hang_report_says_that_a_task_is_held_back() {
    let _watchdog = common::watchdog();
    let hang_after = Duration::from_millis(20);
    let runtime = Runtime::new(Config { workers: 1, hang_after, ..Config::default() }).unwrap();
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let holds = held(&runtime, &array);
    match runtime.wait_blocking() {
        Err(Error::Hang(text)) => {
            let says = "task `held` of the runtime is held back by its actions";
            assert!(text.contains(says), "{text}");
        }
        other => panic!("a hang was expected, not {other:?}"),
    }
    drop(holds);
}

#[test]
fn a_dump_shows_what_is_held_back_until_it_is_not() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let (first, second, _) = held(&runtime, &array);
    let dump = runtime.dump();
    assert_eq!(dump.labels(Standing::Waiting).collect::<Vec<_>>(), ["held"]);
    assert!(dump.to_graphviz().contains("held back by its actions"));
    drop((first, second));
    runtime.wait_blocking().unwrap();
    assert_eq!(runtime.dump().count(Standing::Waiting), 0);
}

#[test]
fn a_task_that_is_cancelled_while_it_is_held_back_does_not_run() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let (first, second, ran) = held(&runtime, &array);
    runtime.cancel("enough");
    drop(first);
    assert_eq!(runtime.outstanding(), 1);
    drop(second);
    assert!(matches!(runtime.wait_blocking(), Err(Error::Cancelled { .. })));
    assert!(!ran.is_set());
    let read = runtime.task("read").input(&array.all()).run(|all| all[0]).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), 0);
}

#[test]
fn an_action_is_in_no_task_wherever_it_runs() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (group, seen) = (runtime.group("other", 1), Log::new());
    let sees = seen.clone();
    let spawner = runtime.task("spawner").run(move || {
        let task = group.task("acts").on_ready(move |_| {
            sees.add(PendingEvent::of_current_task().is_err());
            sees.add(Children::of_current_task().is_err());
        });
        task.spawn(|| ()).unwrap();
        let _of_the_spawner = PendingEvent::of_current_task().unwrap();
    });
    runtime.block_on(spawner.unwrap()).unwrap().unwrap();
    assert_eq!(seen.take(), [true, true]);
}

#[test]
fn an_action_that_panics_inside_the_body_that_spawns_leaves_that_alone() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64; 2], 1).unwrap();
    let group = runtime.group("other", 1);
    let (waited, other) = (group.clone(), array.clone());
    let spawner = runtime.task("spawner").inout(&array.tile(0)).run(move |mut tile| {
        let task = group.task("acts").inout(&other.tile(1)).on_ready(|_| panic!("no way"));
        task.spawn(|_| panic!("ran")).unwrap();
        tile[0] = 1;
    });
    runtime.block_on(spawner.unwrap()).unwrap().unwrap();
    let failed = common::failure(waited.wait_blocking());
    assert_eq!(common::labels(&failed), ["acts"]);
    let read = runtime.task("read").input(&array.tile(0)).run(|tile| tile[0]).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), 1);
}

#[test]
fn a_child_that_is_held_back_keeps_its_parent_and_what_comes_after() {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64; 4], 2).unwrap();
        let (holds, ran) = (Log::new(), Log::new());
        let (keeps, child, after) = (holds.clone(), ran.clone(), ran.clone());
        let parent = runtime.task("parent").weak_inout(&array.all()).run(move |all| {
            let children = Children::of_current_task().unwrap();
            let task = children.task("child").inout(&all.region(..2));
            let task = task.on_ready(move |ready| keeps.add(ready.hold_back()));
            task.spawn(move |_| child.add("child")).unwrap();
        });
        let task = runtime.task("after").input(&array.tile(0));
        task.spawn(move |_| after.add("after")).unwrap();
        runtime.block_on(parent.unwrap()).unwrap().unwrap();
        let read = runtime.task("other").input(&array.tile(1)).run(|_| ()).unwrap();
        runtime.block_on(read).unwrap().unwrap();
        assert_eq!(ran.take(), [""; 0]);
        assert!(runtime.outstanding() >= 3, "parent, child and what comes after");
        drop(holds.take());
        runtime.wait_blocking().unwrap();
        assert_eq!(ran.take(), ["child", "after"]);
    }
}

#[test]
fn a_task_that_is_replayed_cannot_act() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let refused = runtime.iterate(3, |iteration| {
        let task = iteration.task("acts").inout(&array.all()).on_ready(|_| panic!("acted"));
        task.spawn(|_| panic!("ran"))
    });
    match refused {
        Err(Error::Replayed { label, what }) => {
            assert_eq!((label.as_str(), what), ("acts", "actions that come before its body"));
        }
        other => panic!("an error was expected, not {other:?}"),
    }
    runtime.wait_blocking().unwrap();
}

/// An action in common that logs what becomes of it.
struct Logged(Log<&'static str>);

impl OnReady for Logged {
    fn act(self: Arc<Self>, _: &Ready) {
        self.0.add("acts");
    }

    fn give_up(&self) {
        self.0.add("given up");
    }
}

#[test]
fn tasks_with_an_action_in_common_act_each_for_itself() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let log = Log::new();
    let logged = Arc::new(Logged(log.clone()));
    // The body is larger than the room for it in the record of a task.
    let large = [1u64; 100];
    for _ in 0..2 {
        let (own, body) = (log.clone(), log.clone());
        let task = runtime.task("acts").inout(&array.all());
        let task =
            task.on_ready_of(Arc::<Logged>::clone(&logged)).on_ready(move |_| own.add("own"));
        task.spawn(move |mut array| {
            array[0] += large.iter().sum::<u64>();
            body.add("runs");
        })
        .unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(log.take(), ["acts", "own", "runs", "acts", "own", "runs"]);
    let read = runtime.task("read").input(&array.all()).run(|array| array[0]).unwrap();
    assert_eq!(runtime.block_on(read).unwrap().unwrap(), 200);
}

#[test]
fn a_task_that_will_not_run_gives_an_action_in_common_up() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u64], 1).unwrap();
    let log = Log::new();
    let logged = Arc::new(Logged(log.clone()));
    runtime.task("fails").inout(&array.all()).spawn(|_| panic!("on purpose")).unwrap();
    let task = runtime.task("acts").inout(&array.all());
    task.on_ready_of(Arc::<Logged>::clone(&logged)).spawn(|_| panic!("ran")).unwrap();
    common::failure(runtime.wait_blocking());
    assert_eq!(log.take(), ["given up"]);
    drop(runtime.task("never spawned").on_ready_of(logged));
    assert_eq!(log.take(), ["given up"]);
}
