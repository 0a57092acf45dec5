//! Code of the program that the runtime calls may call the runtime: no lock is held meanwhile.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use futures::channel::oneshot;
use talpf_runtime::operator::{InOrder, Operator, Sum};
use talpf_runtime::{Array, Error, Group, Runtime, current_step};

use crate::common::{self, eventually};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Polls its future on the spot when it is woken, with itself.
struct PollsAtOnce {
    future: Mutex<Option<Boxed>>,
    polls: AtomicUsize,
}

impl PollsAtOnce {
    fn poll(self: &Arc<Self>) {
        self.polls.fetch_add(1, Ordering::SeqCst);
        let Some(mut future) = self.future.lock().unwrap().take() else {
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *self.future.lock().unwrap() = Some(future);
        }
    }

    fn begin(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let future = Mutex::new(Some(Box::pin(future) as Boxed));
        let polls = Arc::new(PollsAtOnce { future, polls: AtomicUsize::new(0) });
        polls.poll();
        polls
    }

    fn has_ended(&self) -> bool {
        self.future.lock().unwrap().is_none()
    }
}

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

#[test]
fn waker_that_polls_on_the_spot() {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let (go, gate) = oneshot::channel();
        let gated = runtime.task("gated").run_async(|| async { gate.await.unwrap() }).unwrap();
        let group = (*runtime).clone();
        let waits = PollsAtOnce::begin(async move {
            group.wait().await.unwrap();
            // Registers with the wakers again, under the lock of the first if that were held.
            let next = group.task("next").run(|| ()).unwrap();
            group.wait().await.unwrap();
            next.await.unwrap();
        });
        let joins = PollsAtOnce::begin(async move { gated.await.unwrap() });
        go.send(()).unwrap();
        assert!(eventually(|| waits.has_ended() && joins.has_ended()));
        runtime.shut_down().unwrap();
    }
}

/// A waker whose drops call the runtime.
struct CallsRuntime(Group);

impl Wake for CallsRuntime {
    fn wake(self: Arc<Self>) {}
}

impl Drop for CallsRuntime {
    fn drop(&mut self) {
        let _ = pin!(self.0.wait()).poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn waker_that_waits_as_it_drops() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let (go, gate) = oneshot::channel();
    let mut gated = runtime.task("gated").run_async(|| async { gate.await.unwrap() }).unwrap();
    for _ in 0..3 {
        let waker = Waker::from(Arc::new(CallsRuntime((*runtime).clone())));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut gated).poll(&mut context).is_pending());
        assert!(pin!(runtime.wait()).poll(&mut context).is_pending());
        assert!(pin!(runtime.wait()).poll(&mut context).is_pending());
    }
    go.send(()).unwrap();
    runtime.block_on(gated).unwrap().unwrap();
    runtime.shut_down().unwrap();
}

struct CancelsToo(Group);

impl From<CancelsToo> for String {
    fn from(CancelsToo(group): CancelsToo) -> String {
        group.cancel("first");
        "second".to_owned()
    }
}

#[test]
fn reason_of_a_cancellation_that_cancels() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("cancelled", 1);
    group.cancel(CancelsToo(group.clone()));
    let error = group.wait_blocking().unwrap_err().to_string();
    assert!(error.ends_with("first"), "{error}");
}

static SCENE: Mutex<Option<(Group, Array<u64>)>> = Mutex::new(None);

/// Adds, and reduces a 1 into the same region by a task of its own if there is a scene.
struct Reduces;

impl Operator<u64> for Reduces {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        *into += from;
        let scene = SCENE.lock().unwrap().take();
        if let Some((group, array)) = scene {
            let task = group.task("inner").inline().reduction(&array.all(), Reduces);
            task.spawn(|mut copy| copy[0] += 1).unwrap();
        }
    }
}

fn sum(runtime: &Runtime, array: &Array<u64>) -> u64 {
    let read = runtime.task("read").input(&array.all()).run(|all| all[0]).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

fn operator_that_reduces<O: Operator<u64> + Copy>(operator: O) {
    let _watchdog = common::watchdog();
    for workers in [1, 2] {
        let runtime = common::runtime(workers);
        let array = Array::new(&runtime, vec![0u64], 1).unwrap();
        *SCENE.lock().unwrap() = Some(((*runtime).clone(), array.clone()));
        let task = runtime.task("outer").reduction(&array.all(), operator);
        task.spawn(|mut copy| copy[0] += 10).unwrap();
        runtime.wait_blocking().unwrap();
        assert_eq!(sum(&runtime, &array), 11);
        assert!(SCENE.lock().unwrap().is_none());
    }
}

#[derive(Clone, Copy)]
struct Unordered;

impl Operator<u64> for Unordered {
    fn identity() -> u64 {
        Reduces::identity()
    }

    fn combine(into: &mut u64, from: u64) {
        Reduces::combine(into, from);
    }
}

#[test]
fn operator_that_spawns_a_task_which_reduces() {
    operator_that_reduces(Unordered);
    operator_that_reduces(InOrder(Unordered));
}

#[test]
fn replayed_reductions_fold_what_came_meanwhile() -> Result<(), Error> {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(4);
    let array = Array::new(&runtime, vec![0u64], 1)?;
    runtime.iterate(500, |iteration| {
        for _ in 0..4 {
            let task = iteration.task("adds").reduction(&array.all(), Sum);
            task.spawn(|mut copy| {
                let step = current_step().unwrap();
                copy[0] += step as u64
            })?;
        }
        Ok::<(), Error>(())
    })?;
    assert_eq!(sum(&runtime, &array), 4 * (499 * 500 / 2));
    Ok(())
}
