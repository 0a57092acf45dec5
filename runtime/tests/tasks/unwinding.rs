//! Unwinding bodies: none of their regions is released before the failure is known.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;

use futures::channel::oneshot;
use talpf_runtime::{Array, Group, InOut, Runtime};

use crate::common::{self, Drops, Flag, Meeting, failure, labels};

/// A value that calls a closure when it drops.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    fn new(does: F) -> Self {
        OnDrop(Some(does))
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|does| does());
    }
}

/// Two arrays of one element, and a group of its own for what spawns while it unwinds.
struct Setup {
    runtime: Runtime,
    group: Group,
    spoiled: Array<u64>,
    other: Array<u64>,
}

impl Setup {
    fn new() -> Self {
        common::quiet_panics();
        let runtime = common::runtime(1);
        let array = || Array::new(&runtime, vec![0u64], 1).unwrap();
        let (spoiled, other) = (array(), array());
        Setup { group: runtime.group("other", 1), runtime, spoiled, other }
    }

    /// Runs `body`, which panics, with `spoiled`; what reads that afterwards must not run.
    fn check(&self, body: impl FnOnce(InOut<u64>) + Send + 'static) {
        self.runtime.task("fails").inout(&self.spoiled.all()).spawn(body).unwrap();
        let ran = Flag::default();
        let runs = ran.clone();
        self.runtime.task("reads").input(&self.spoiled.all()).spawn(move |_| runs.set()).unwrap();
        let failed = failure(self.runtime.wait_blocking());
        assert_eq!(labels(&failed), ["reads", "fails"]);
        assert!(!ran.is_set());
    }

    /// Checks as `check`, with a body that calls `act` while it unwinds.
    fn check_meanwhile(&self, act: impl FnOnce(&Group, &Array<u64>, InOut<u64>) + Send + 'static) {
        let (group, other) = (self.group.clone(), self.other.clone());
        self.check(move |all| {
            let _acts = OnDrop::new(move || act(&group, &other, all));
            panic!("on purpose");
        });
    }

    /// Returns the value of `other`, when every task of the group is complete.
    fn value_of_other(&self) -> u64 {
        self.group.wait_blocking().unwrap();
        let read = self.runtime.task("look").input(&self.other.all()).run(|all| all[0]).unwrap();
        self.runtime.block_on(read).unwrap().unwrap()
    }
}

#[test]
fn a_guard_that_an_action_drops_waits_for_the_failure() {
    let _watchdog = common::watchdog();
    let setup = Setup::new();
    setup.check_meanwhile(|group, other, all| {
        let task = group.task("acts").inout(&other.all()).on_ready(move |_| drop(all));
        task.spawn(|mut other| other[0] = 1).unwrap();
    });
    assert_eq!(setup.value_of_other(), 1);
}

#[test]
fn an_inline_task_that_runs_meanwhile_releases_only_its_own() {
    let _watchdog = common::watchdog();
    let setup = Setup::new();
    let (group, other) = (setup.group.clone(), setup.other.clone());
    setup.check(move |all| {
        let _spawns = OnDrop::new(move || {
            for _ in 0..2 {
                let task = group.task("inline").inline().inout(&other.all());
                task.spawn(|mut other| other[0] += 1).unwrap();
            }
        });
        let _dropped_before = all;
        panic!("on purpose");
    });
    assert_eq!(setup.value_of_other(), 2);
}

#[test]
fn guards_that_drop_on_both_sides_of_an_inline_task_wait_for_the_failure() {
    let _watchdog = common::watchdog();
    let setup = Setup::new();
    let (group, other) = (setup.group.clone(), setup.other.clone());
    setup.check(move |all| {
        let _dropped_after = all;
        let _spawns = OnDrop::new(move || {
            let task = group.task("inline").inline().inout(&other.all());
            task.spawn(|mut other| other[0] = 1).unwrap();
        });
        panic!("on purpose");
    });
    assert_eq!(setup.value_of_other(), 1);
}

#[test]
fn a_guard_that_an_inline_task_drops_meanwhile_waits_for_the_failure() {
    let _watchdog = common::watchdog();
    let setup = Setup::new();
    setup.check_meanwhile(|group, other, all| {
        let drops = move |mut other: InOut<u64>| {
            other[0] = 1;
            drop(all);
        };
        group.task("inline").inline().inout(&other.all()).spawn(drops).unwrap();
    });
    assert_eq!(setup.value_of_other(), 1);
}

#[test]
fn a_guard_that_an_action_drops_behind_an_inline_task_waits_for_the_failure() {
    let _watchdog = common::watchdog();
    let setup = Setup::new();
    setup.check_meanwhile(|group, other, all| {
        let (later, array) = (group.clone(), other.clone());
        let spawns = move |mut other: InOut<u64>| {
            other[0] = 1;
            let acts = later.task("acts").inout(&array.all()).on_ready(move |_| drop(all));
            acts.spawn(|mut other| other[0] += 1).unwrap();
        };
        group.task("inline").inline().inout(&other.all()).spawn(spawns).unwrap();
    });
    assert_eq!(setup.value_of_other(), 2);
}

#[test]
fn a_guard_that_a_body_panics_with_waits_for_the_failure() {
    let _watchdog = common::watchdog();
    Setup::new().check(|all| panic_any(all));
}

/// A payload that panics as it drops, with another one.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

#[test]
fn a_payload_that_panics_as_it_drops_fails_its_task_and_no_more() {
    let _watchdog = common::watchdog();
    let Setup { runtime, spoiled, .. } = Setup::new();
    let drops = Drops::default();
    let calls = |builder: fn(&Runtime, &Array<u64>, common::Counted)| {
        builder(&runtime, &spoiled, drops.item());
        let failed = failure(runtime.wait_blocking());
        assert_eq!(failed.reason.as_deref(), Some("panicked with a value that is no text"));
        assert_eq!(runtime.outstanding(), 0);
    };
    calls(|runtime, array, item| {
        let task = runtime.task("calls").inout(&array.all());
        let body = move |_| {
            let _item = item;
            panic_any(Bomb);
        };
        task.spawn(body).unwrap();
    });
    calls(|runtime, array, item| {
        let task = runtime.task("awaits").inout(&array.all());
        let body = move |all| async move {
            let (_all, _item) = (all, item);
            tokio::task::yield_now().await;
            panic_any(Bomb);
        };
        task.spawn_async(body).unwrap();
    });
    calls(|runtime, array, item| {
        let task = runtime.task("acts").inout(&array.all()).on_ready(|_| panic_any(Bomb));
        task.spawn(move |_| drop(item)).unwrap();
    });
    calls(|runtime, array, item| {
        let task = runtime.task("drops").inout(&array.all());
        let captured = OnDrop::new(|| panic_any(Bomb));
        let body = move |_| {
            let _both = (&captured, &item);
        };
        task.spawn(body).unwrap();
    });
    assert_eq!(drops.count(), 4);
}

/// Panics with a guard and catches that.
fn drops_unwinding(guard: InOut<u64>) {
    let unwinds = AssertUnwindSafe(|| {
        let _guard = guard;
        panic!("on purpose");
    });
    catch_unwind(unwinds).unwrap_err();
}

#[test]
fn a_body_that_catches_its_panic_releases_what_that_dropped_with_the_next_guard() {
    common::quiet_panics();
    let runtime = common::runtime(2);
    let pair = Array::new(&runtime, vec![0u64; 2], 1).unwrap();
    let meeting = Meeting::of(2);
    let other = Arc::clone(&meeting);
    let task = runtime.task("catches").inout(&pair.tile(0)).inout(&pair.tile(1));
    task.spawn(move |caught, next| {
        drops_unwinding(caught);
        drop(next);
        assert!(other.join());
    })
    .unwrap();
    let next = runtime.task("next").input(&pair.tile(0)).spawn(move |_| assert!(meeting.join()));
    next.and(runtime.wait_blocking()).unwrap();
}

#[test]
fn a_body_that_catches_its_panic_has_not_failed() {
    common::quiet_panics();
    let runtime = common::runtime(1);
    let number = Array::new(&runtime, vec![0u64], 1).unwrap();
    runtime.task("catches").inout(&number.all()).spawn(drops_unwinding).unwrap();
    runtime
        .iterate(3, |iteration| {
            let task = iteration.task("catches").inout(&number.all());
            task.spawn(drops_unwinding)
        })
        .unwrap();
    let (free, is_free) = oneshot::channel();
    let awaits = runtime.task("awaits").inout(&number.all());
    awaits
        .spawn_async(|guard| async move {
            drops_unwinding(guard);
            is_free.await.unwrap();
        })
        .unwrap();
    let reads = runtime.task("reads").input(&number.all());
    reads.spawn(move |_| free.send(()).unwrap()).unwrap();
    runtime.wait_blocking().unwrap();
}
