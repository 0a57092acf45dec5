//! Small programs on the whole runtime - workers, queues, idle set, groups - under random
//! schedules.
//!
//! shuttle does not see crossbeam's deques and injectors, whose operations are one step here, and
//! memory orders weaker than sequential consistency, for which there are the loom models. A lost
//! wake-up or task ends as a deadlock, or as a run with too many steps.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use shuttle::scheduler::RandomScheduler;
use shuttle::{MaxSteps, Runner};

use crate::{Array, Config, Error, IdlePolicy, Runtime};

/// Number of schedules of each program, unless `TALPF_SCHEDULES` sets another.
const SCHEDULES: usize = 200;
/// Number of steps after which a program counts as endless: the longest here takes a tenth of that.
const STEPS: usize = 1_000_000;
const STACK: usize = 1 << 19;

fn explore(program: impl Fn() + Send + Sync + 'static) {
    let given = std::env::var("TALPF_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    Runner::new(RandomScheduler::new(given.unwrap_or(SCHEDULES)), config).run(program);
}

/// Starts a runtime whose workers park when they find nothing: spinning would hide lost
/// wake-ups.
fn runtime(workers: usize) -> Runtime {
    let (idle, hang_after) = (IdlePolicy::Park, Duration::ZERO);
    Runtime::new(Config { workers, idle, hang_after, ..Config::default() }).unwrap()
}

fn end_of(runtime: &Runtime, array: &Array<u64>) -> Vec<u64> {
    let read = runtime.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

#[test]
fn shuttle_a_chain_runs_in_order() {
    explore(|| {
        let runtime = runtime(2);
        let number = Array::new(&runtime, vec![1u64], 1).unwrap();
        for add in 0..4 {
            let task = runtime.task("link").inout(&number.all());
            task.spawn(move |mut number| number[0] = number[0] * 3 + add).unwrap();
        }
        runtime.wait_blocking().unwrap();
        assert_eq!(end_of(&runtime, &number), [99]);
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_tasks_fan_out_and_in() {
    explore(|| {
        let runtime = runtime(2);
        let source = Array::new(&runtime, vec![0u64], 1).unwrap();
        let cells = Array::new(&runtime, vec![0u64; 3], 1).unwrap();
        runtime.task("source").output(&source.all()).spawn(|mut source| source[0] = 7).unwrap();
        for cell in 0..3 {
            let task = runtime.task("cell").input(&source.all()).output(&cells.tile(cell));
            task.spawn(move |source, mut cells| cells[0] = source[0] + cell as u64).unwrap();
        }
        assert_eq!(end_of(&runtime, &cells), [7, 8, 9]);
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_tasks_that_a_worker_spawns_are_stolen_or_run() {
    explore(|| {
        let runtime = runtime(3);
        let cells = Array::new(&runtime, vec![0u64; 3], 1).unwrap();
        let (group, shared) = ((*runtime).clone(), cells.clone());
        let spawner = async move {
            for cell in 0..3 {
                group.task("cell").inout(&shared.tile(cell)).spawn(|mut cell| cell[0] += 1)?;
            }
            group.wait().await
        };
        runtime
            .block_on(runtime.spawn_main("spawner", spawner).unwrap())
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(end_of(&runtime, &cells), [1, 1, 1]);
        runtime.shut_down().unwrap();
    });
}

/// A cell in which one side leaves a waker that the other calls.
#[derive(Default)]
struct Bell {
    state: talpf_primitives::Mutex<(bool, Option<std::task::Waker>)>,
}

impl Bell {
    fn ring(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.0 = true;
            state.1.take()
        };
        waker.into_iter().for_each(std::task::Waker::wake);
    }

    async fn rung(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.state.lock();
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[test]
fn shuttle_a_suspended_task_is_woken_from_outside() {
    explore(|| {
        let runtime = runtime(2);
        let bell = Arc::new(Bell::default());
        let number = Array::new(&runtime, vec![0u64], 1).unwrap();
        let waited = Arc::clone(&bell);
        let task = runtime.task("waits").output(&number.all());
        task.spawn_async(|mut number| async move {
            waited.rung().await;
            number[0] = 5;
        })
        .unwrap();
        bell.ring();
        assert_eq!(end_of(&runtime, &number), [5]);
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_tasks_wake_each_other() {
    explore(|| {
        let runtime = runtime(2);
        let bells: [Arc<Bell>; 2] = Default::default();
        for mine in 0..2 {
            let (mine, other) = (Arc::clone(&bells[mine]), Arc::clone(&bells[1 - mine]));
            let task = runtime.task("rings");
            task.spawn_async(|| async move {
                other.ring();
                mine.rung().await;
            })
            .unwrap();
        }
        runtime.wait_blocking().unwrap();
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_tasks_of_two_sets_of_workers_wake_each_other() {
    explore(|| {
        let (idle, hang_after) = (IdlePolicy::Park, Duration::ZERO);
        let config = Config { workers: 2, worker_sets: 2, idle, hang_after, ..Config::default() };
        let runtime = Runtime::new(config).unwrap();
        let bells: [Arc<Bell>; 2] = Default::default();
        let groups = [0, 1].map(|set| runtime.group_in("of a set", set as u32, set));
        let number = Array::new(&groups[0], vec![0u64], 1).unwrap();
        for mine in 0..2 {
            let bell = (Arc::clone(&bells[mine]), Arc::clone(&bells[1 - mine]));
            let (last, array) = (groups[1 - mine].clone(), number.clone());
            let task = groups[mine].task("rings");
            task.spawn_async(move || async move {
                let (mine, other) = bell;
                other.ring();
                mine.rung().await;
                let task = last.task("adds").inout(&array.all());
                task.spawn(|mut number| number[0] += 1).unwrap();
            })
            .unwrap();
        }
        groups.iter().for_each(|group| group.wait_blocking().unwrap());
        groups.iter().for_each(|group| group.wait_blocking().unwrap());
        assert_eq!(end_of(&runtime, &number), [2]);
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_commutative_tasks_exclude_each_other() {
    explore(|| {
        let runtime = runtime(2);
        let number = Array::new(&runtime, vec![0u64], 1).unwrap();
        for _ in 0..3 {
            let task = runtime.task("adds").commutative(&number.all());
            task.spawn(|mut number| {
                let before = number[0];
                shuttle::thread::yield_now();
                number[0] = before + 1;
            })
            .unwrap();
        }
        assert_eq!(end_of(&runtime, &number), [3]);
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_what_follows_a_failure_does_not_run() {
    explore(|| {
        let runtime = runtime(2);
        let number = Array::new(&runtime, vec![0u64], 1).unwrap();
        runtime
            .task("fails")
            .inout(&number.all())
            .spawn(|_| {
                crate::fail_current_task("planned").unwrap();
            })
            .unwrap();
        runtime.task("follows").inout(&number.all()).spawn(|_| unreachable!("R4")).unwrap();
        let Err(Error::TaskFailed(failure)) = runtime.wait_blocking() else {
            panic!("the wait has to tell of the failure");
        };
        assert_eq!(failure.chain().last().unwrap().label, "fails");
        runtime.shut_down().unwrap();
    });
}

#[test]
fn shuttle_a_shutdown_waits_for_tasks_spawned_into_another_group() {
    explore(|| {
        let runtime = runtime(2);
        let groups = [runtime.group("a", 1), runtime.group("b", 2)];
        let ran = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (next, seen) = (groups[0].clone(), Arc::clone(&ran));
        groups[1]
            .task("first")
            .spawn(move || {
                let last = move || seen.store(true, std::sync::atomic::Ordering::SeqCst);
                next.task("last").spawn(last).unwrap();
            })
            .unwrap();
        runtime.shut_down().unwrap();
        assert!(ran.load(std::sync::atomic::Ordering::SeqCst));
    });
}

/// Runs chains of tasks over two groups, two deep, while another thread spawns as long as it may.
#[test]
fn shuttle_a_shutdown_accepts_what_runs_and_refuses_outsiders() {
    explore(|| {
        let runtime = runtime(2);
        let groups = [runtime.group("a", 1), runtime.group("b", 2)];
        let counts: [Arc<std::sync::atomic::AtomicU64>; 2] = Default::default();
        let count = |index: usize| {
            let count = Arc::clone(&counts[index]);
            move || _ = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        };
        let (inner, other, last) = (groups[0].clone(), groups[1].clone(), count(0));
        let main = groups[0].spawn_main("main", async move {
            let again = inner.clone();
            let next = move || again.task("second").spawn(last).unwrap();
            other.task("first").spawn(next).unwrap();
        });
        drop(main.unwrap());
        let (outside, run) = (groups[1].clone(), count(1));
        let outsider = shuttle::thread::spawn(move || {
            let spawns = (0..3).map(|_| outside.task("outside").spawn(run.clone()));
            let refused = |spawned: &Result<(), Error>| matches!(spawned, Err(Error::ShutDown));
            let spawned: Vec<_> = spawns.collect();
            assert!(spawned.is_sorted_by_key(refused), "it does not open again");
            spawned.iter().filter(|spawned| spawned.is_ok()).count()
        });
        runtime.shut_down().unwrap();
        let of = |index: usize| counts[index].load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(of(0), 1, "a spawn of a task was lost");
        assert_eq!(of(1), outsider.join().unwrap() as u64, "an accepted spawn was lost");
    });
}
