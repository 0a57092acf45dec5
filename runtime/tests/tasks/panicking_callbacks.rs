//! Code of the program that runs outside the bodies of tasks and panics: its task or a group fails,
//! and the workers go on.

use std::cell::RefCell;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::channel::oneshot;
use talpf_runtime::operator::Operator;
use talpf_runtime::{
    Array, Children, Config, Error, Failure, Group, Runtime, fail_current_task, note_wait,
};
use talpf_traces::{Event, Recorder, State};

use crate::common::{self, Drops, eventually, labels};

/// Runs `test` with one and with two workers. With one, nothing else would notice the loss of a
/// worker.
fn with_workers(test: impl Fn(&Runtime)) {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        test(&runtime);
        let works = runtime.task("after").run(|| 7).unwrap();
        assert_eq!(runtime.block_on(works).unwrap().unwrap(), 7, "{workers} workers");
        runtime.shut_down().unwrap();
    }
}

/// Returns the failure that waits for the group report once there is one.
fn reported(group: &Group) -> Arc<Failure> {
    let found = RefCell::new(None);
    assert!(eventually(|| match group.wait_blocking() {
        Err(Error::TaskFailed(failure)) => found.replace(Some(failure)).is_none(),
        Err(other) => panic!("a failure was expected, not {other}"),
        Ok(()) => false,
    }));
    found.take().unwrap()
}

#[track_caller]
fn says(failure: &Failure, text: &str) {
    assert!(failure.to_string().ends_with(text), "`{text}` was expected, not `{failure}`");
}

/// Panics as it drops, unless something panics already.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a bomb");
        }
    }
}

struct BadWaker;

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        panic!("bad");
    }
}

/// Polls once with a waker that panics.
fn poll_badly<F: Future<Output: Debug>>(future: Pin<&mut F>) {
    let waker = Waker::from(Arc::new(BadWaker));
    let poll = future.poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending(), "{poll:?}");
}

/// Spawns a task that goes on when the sender sends.
fn gated(runtime: &Runtime) -> (oneshot::Sender<()>, talpf_runtime::JoinHandle<()>) {
    let (go, gate) = oneshot::channel();
    let handle = runtime.task("gated").run_async(|| async { gate.await.unwrap() }).unwrap();
    (go, handle)
}

#[test]
fn waker_of_a_wait_for_a_group() {
    with_workers(|runtime| {
        let (go, handle) = gated(runtime);
        poll_badly(pin!(runtime.wait()));
        go.send(()).unwrap();
        says(&reported(runtime), "the runtime failed: a waker panicked: bad");
        runtime.block_on(handle).unwrap().unwrap();
    });
}

#[test]
fn waker_of_a_handle() {
    with_workers(|runtime| {
        let (go, mut handle) = gated(runtime);
        poll_badly(Pin::new(&mut handle));
        go.send(()).unwrap();
        says(&reported(runtime), "a waker panicked: bad");
        runtime.block_on(handle).unwrap().unwrap();
    });
}

#[test]
fn waker_of_a_wait_for_children() {
    with_workers(|runtime| {
        let (go, gate) = oneshot::channel::<()>();
        let parent = runtime.task("parent").run_async(|| async move {
            let children = Children::of_current_task()?;
            children.task("child").spawn_async(|| async { gate.await.unwrap() })?;
            poll_badly(pin!(children.wait()));
            go.send(()).unwrap();
            children.wait().await
        });
        runtime.block_on(parent.unwrap()).unwrap().unwrap().unwrap();
        says(&reported(runtime), "a waker panicked: bad");
    });
}

#[test]
fn waker_of_a_timer() {
    with_workers(|runtime| {
        poll_badly(pin!(runtime.wait_for(Duration::from_millis(1))));
        says(&reported(runtime), "a waker panicked: bad");
    });
}

#[test]
fn waker_of_a_wait_for_idleness() {
    with_workers(|runtime| {
        poll_badly(pin!(runtime.idle(Duration::from_millis(1))));
        says(&reported(runtime), "panicked: bad");
    });
}

#[test]
fn captures_of_a_polled_closure() {
    with_workers(|runtime| {
        let bomb = Bomb;
        let poll = move || {
            let _ = &bomb;
            None::<()>
        };
        let (group, noop) = ((**runtime).clone(), Waker::noop());
        let task = runtime.task("looks").run(move || {
            let wait = group.idle_until(Duration::from_millis(1), poll);
            assert!(pin!(wait).poll(&mut Context::from_waker(noop)).is_pending());
        });
        runtime.block_on(task.unwrap()).unwrap().unwrap();
        says(&reported(runtime), "a poll of an idle worker panicked: a bomb");
    });
}

/// Woken by the report of a hang.
#[test]
fn reporter_and_judge_of_hangs() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    for workers in [1, 2] {
        let hang_after = Duration::from_millis(20);
        let config = Config { workers, hang_after, ..Config::default() };
        let runtime = Runtime::new(config).unwrap();
        runtime.judge_hangs(|| panic!("a bad judge"));
        let _reporter = runtime.on_hang(|_| panic!("a bad reporter"));
        let stuck = runtime.task("stuck").run_async(|| async {
            poll_fn(|_| {
                note_wait("nothing");
                Poll::<()>::Pending
            })
            .await
        });
        let Err(Error::Hang(text)) = runtime.block_on(stuck.unwrap()).unwrap() else {
            panic!("a hang was expected");
        };
        for part in
            ["a reporter of hangs panicked: a bad reporter", "judge of hangs panicked: a bad"]
        {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
        assert!(runtime.dump().to_string().contains("a bad reporter"));
    }
}

#[test]
fn actions_of_a_task() {
    with_workers(|runtime| {
        let bomb = Bomb;
        let task = runtime.task("acts").on_ready(|_| panic!("an action"));
        task.on_ready(move |_| drop(bomb)).spawn(|| unreachable!()).unwrap();
        let failure = reported(runtime);
        assert_eq!(labels(&failure), ["acts"]);
        says(&failure, "an action");
    });
}

#[test]
fn action_of_a_cancellation() {
    with_workers(|runtime| {
        let drops = Drops::default();
        let group = runtime.group("cancelled", 1);
        group.on_cancel(|_| panic!("an action"));
        let second = drops.clone();
        group.on_cancel(move |_| drop(second.item()));
        group.cancel("enough");
        let error = group.wait_blocking().unwrap_err().to_string();
        assert_eq!(drops.count(), 1, "the others act all the same");
        assert!(error.contains("enough (and an action"), "{error}");
    });
}

#[test]
fn result_that_nobody_wants() {
    with_workers(|runtime| {
        let (dropped, is_dropped) = mpsc::channel::<()>();
        let body = move || {
            // Else this thread may be the one that drops the result.
            let _ = is_dropped.recv();
            Bomb
        };
        drop(runtime.task("result").run(body).unwrap());
        drop(dropped);
        let failure = reported(runtime);
        assert_eq!(labels(&failure), ["result"]);
        says(&failure, "a bomb");
    });
}

#[test]
fn captures_of_a_body_whose_spawn_is_refused() {
    with_workers(|runtime| {
        let array = Array::new(runtime, vec![0u8; 2], 1).unwrap();
        let (all, bomb) = (array.all(), Bomb);
        let refused = runtime.task("twice").inout(&all).inout(&all).spawn(move |_, _| drop(bomb));
        assert!(matches!(refused, Err(Error::OverlappingAccesses { .. })));
        says(&reported(runtime), "a body that drops panicked: a bomb");
    });
}

#[test]
fn captures_of_a_replayed_body() {
    with_workers(|runtime| {
        let array = Array::new(runtime, vec![0u8; 2], 1).unwrap();
        for _ in 0..2 {
            let declared = runtime.iterate(3, |iteration| {
                for tile in 0..2 {
                    let (task, bomb) = (iteration.task("step").inout(&array.tile(tile)), Bomb);
                    task.spawn(move |_| assert_eq!(size_of_val(&bomb), 0))?;
                }
                Ok::<(), Error>(())
            });
            declared.unwrap();
            let failure = reported(runtime);
            assert_eq!(labels(&failure), ["iterate"]);
            says(&failure, "a bomb");
        }
    });
}

#[test]
fn element_of_an_array() {
    with_workers(|runtime| {
        let array = Array::new(runtime, vec![Bomb], 1).unwrap();
        let (go, gate) = oneshot::channel();
        let task = runtime.task("uses").input(&array.all());
        task.spawn_async(|all| async move {
            gate.await.unwrap();
            drop(all);
        })
        .unwrap();
        drop(array);
        go.send(()).unwrap();
        let failure = reported(runtime);
        assert_eq!(labels(&failure), ["free"]);
        says(&failure, "a bomb");
    });
}

/// An element that may panic as it drops, and its operator.
#[derive(Default)]
struct Element(#[expect(dead_code, reason = "only drops")] Option<Bomb>);

struct Keep;

impl Operator<Element> for Keep {
    fn identity() -> Element {
        Element::default()
    }

    fn combine(into: &mut Element, from: Element) {
        *into = from;
    }
}

#[test]
fn element_of_a_failed_reduction() {
    with_workers(|runtime| {
        for unwinds in [false, true] {
            let array = Array::new(runtime, vec![Element::default()], 1).unwrap();
            let task = runtime.task("reduces").reduction(&array.all(), Keep);
            task.spawn(move |mut copy| {
                copy[0] = Element(Some(Bomb));
                fail_current_task("planned").unwrap();
                assert!(!unwinds, "by a panic");
            })
            .unwrap();
            let after = runtime.task("after").input(&array.all()).run(|_| ()).unwrap();
            assert_eq!(
                labels(&common::failure(runtime.block_on(after).unwrap())),
                ["after", "reduces"]
            );
            says(&reported(runtime), "planned");
        }
    });
}

/// Uses a region whose element is a bomb that the first task to be folded replaces.
#[test]
fn operator_that_panics_leaves_no_copy_behind() {
    with_workers(|runtime| {
        let array = Array::new(runtime, vec![Element(Some(Bomb))], 1).unwrap();
        for _ in 0..10 {
            let task = runtime.task("reduces").reduction(&array.all(), Keep);
            task.spawn(|mut copy| copy[0] = Element(None)).unwrap();
        }
        says(&reported(runtime), "a bomb");
        let read = runtime.task("read").input(&array.all()).run(|_| ()).unwrap();
        runtime.block_on(read).unwrap().unwrap();
    });
}

#[test]
fn event_of_a_trace_that_records_another() {
    let _watchdog = common::watchdog();
    let config = Config { recorder: Some(Recorder::default()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = (*runtime).clone();
    let traces = runtime.task("traces").run(move || {
        let event = |began_ns| Event::StateSlice { state: State::Idle, began_ns };
        group.trace(|now_ns| {
            group.trace(event);
            event(now_ns)
        });
    });
    runtime.block_on(traces.unwrap()).unwrap().unwrap();
}

static SPAWNED_AT_END: AtomicUsize = AtomicUsize::new(0);

/// Spawns a task as its thread ends.
struct SpawnsAtEnd(Group);

impl Drop for SpawnsAtEnd {
    fn drop(&mut self) {
        assert!(matches!(self.0.task("late").spawn(|| ()), Err(Error::ShutDown)));
        SPAWNED_AT_END.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static AT_END: RefCell<Option<SpawnsAtEnd>> = const { RefCell::new(None) };
}

#[test]
fn thread_local_that_spawns_as_a_worker_ends() {
    let _watchdog = common::watchdog();
    common::quiet_panics();
    let runtime = common::runtime(1);
    let group = (*runtime).clone();
    let keep = move || AT_END.set(Some(SpawnsAtEnd(group)));
    runtime.block_on(runtime.task("keeps").run(keep).unwrap()).unwrap().unwrap();
    poll_badly(pin!(runtime.wait_for(Duration::from_millis(1))));
    says(&reported(&runtime), "a waker panicked: bad");
    runtime.shut_down().unwrap();
    assert_eq!(SPAWNED_AT_END.load(Ordering::SeqCst), 1);
}
