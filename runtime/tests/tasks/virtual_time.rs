//! Runs in virtual time: tasks take what their work costs, on virtual cores, in any real time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use talpf_runtime::{
    Array, Config, CoreTimes, Cost, Error, EventSource, Group, Runtime, VirtualTime,
};

/// A runtime with groups of `cores` cores, on which a unit of `work` takes a nanosecond.
fn runtime(cores: u32) -> Runtime {
    runtime_with_overhead(cores, 0)
}

/// The same, where the runtime takes a time for each task.
fn runtime_with_overhead(cores: u32, task_overhead_ns: u64) -> Runtime {
    let unit = Cost { fixed_ps: 0, unit_ps: 1_000 };
    let costs = Arc::new(BTreeMap::from([("work".to_owned(), unit)]));
    let virtual_time = Some(VirtualTime { cores, costs, task_overhead_ns });
    Runtime::new(Config { virtual_time, ..Config::default() }).unwrap()
}

fn spawn_work(group: &Group, number: &Array<u64>, ns: u64) {
    let task = group.task("work").work("work", ns).inout(&number.all());
    task.spawn(|mut number| number[0] += 1).unwrap();
}

fn number(group: &Group) -> Array<u64> {
    Array::new(group, vec![0], 1).unwrap()
}

#[test]
fn tasks_that_wait_for_each_other_take_the_sum_of_their_times() {
    let runtime = runtime(4);
    let number = number(&runtime);
    (1..=10).for_each(|ns| spawn_work(&runtime, &number, ns));
    runtime.wait_blocking().unwrap();
    assert_eq!(runtime.clock().now_ns(), 55);
    let value = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
    assert_eq!(runtime.block_on(value).unwrap().unwrap(), 10);
}

#[test]
fn independent_tasks_share_the_cores_of_their_group() {
    for (cores, tasks, ns) in [(1, 5, 500), (4, 8, 200), (4, 9, 300), (31, 32, 200)] {
        let runtime = runtime(cores);
        let numbers: Vec<_> = (0..tasks).map(|_| number(&runtime)).collect();
        numbers.iter().for_each(|number| spawn_work(&runtime, number, 100));
        runtime.wait_blocking().unwrap();
        assert_eq!(runtime.clock().now_ns(), ns, "{tasks} tasks on {cores} cores");
    }
}

#[test]
fn the_runtime_takes_a_core_for_each_task_and_counts_its_time() {
    let runtime = runtime_with_overhead(1, 5);
    let number = number(&runtime);
    (0..3).for_each(|_| spawn_work(&runtime, &number, 10));
    runtime.task("free").inout(&number.all()).spawn(drop).unwrap();
    runtime.task("inline").inline().inout(&number.all()).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
    assert_eq!(runtime.clock().now_ns(), 3 * (5 + 10) + 5);
    let metrics = runtime.metrics();
    let ns = Duration::from_nanos;
    assert_eq!(metrics.core_times, Some(CoreTimes { tasks: ns(30), overhead: ns(20) }));
    assert!(metrics.idle.is_empty() && metrics.idle_share() == 0.0);
}

#[test]
fn each_group_has_cores_of_its_own() {
    let runtime = runtime(1);
    let groups: Vec<_> = (1..=16).map(|rank| runtime.group("group", rank)).collect();
    let mains = groups.iter().map(|group| {
        let program = group.clone();
        group.spawn_main("main", async move {
            let number = number(&program);
            (0..3).for_each(|_| spawn_work(&program, &number, u64::from(program.number())));
            program.wait().await?;
            Ok::<_, Error>(program.clock().now_ns())
        })
    });
    let mains: Vec<_> = mains.collect();
    for (index, main) in mains.into_iter().enumerate() {
        let ended_ns = runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
        assert_eq!(ended_ns, 3 * (index as u64 + 1));
    }
}

#[test]
fn an_hour_of_waiting_takes_no_time() {
    let runtime = runtime(1);
    let group = runtime.group("program", 1);
    let program = group.clone();
    let main = group.spawn_main("main", async move {
        for _ in 0..60 {
            program.wait_for(Duration::from_secs(60)).await;
        }
        program.clock().now()
    });
    let ended = runtime.block_on(main.unwrap()).unwrap().unwrap();
    assert_eq!(ended, Duration::from_secs(3_600));
}

#[test]
fn ready_tasks_start_by_priority_and_then_in_the_order_of_their_spawns() {
    let runtime = runtime(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let numbers: Vec<_> = (0..6).map(|_| number(&runtime)).collect();
    for (index, priority) in [0, 0, 2, 1, 2, -1].into_iter().enumerate() {
        let order = Arc::clone(&order);
        let task = runtime.task("work").work("work", 10).priority(priority);
        let task = task.inout(&numbers[index].all());
        task.spawn(move |_| order.lock().unwrap().push(index)).unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(*order.lock().unwrap(), [2, 4, 3, 0, 1, 5]);
}

#[test]
fn the_released_task_follows_on_the_core_of_the_one_that_released_it() {
    let runtime = runtime(1);
    let order = Arc::new(Mutex::new(String::new()));
    let (chain, other) = (number(&runtime), number(&runtime));
    for (name, number) in [('a', &chain), ('b', &chain), ('x', &other)] {
        let order = Arc::clone(&order);
        let task = runtime.task("work").work("work", 10).inout(&number.all());
        task.spawn(move |_| order.lock().unwrap().push(name)).unwrap();
    }
    runtime.wait_blocking().unwrap();
    assert_eq!(*order.lock().unwrap(), "abx");
}

#[test]
fn what_follows_an_await_takes_no_time_and_waits_for_a_core() {
    let runtime = runtime(1);
    let group = runtime.group("program", 1);
    let (first, second) = (number(&group), number(&group));
    let clock = group.clock().clone();
    let waits = group.clone();
    let task = group.task("waits").work("work", 10).inout(&first.all());
    let ended = task.run_async(move |_| async move {
        waits.wait_for(Duration::from_nanos(5)).await;
        clock.now_ns()
    });
    spawn_work(&group, &second, 100);
    // It waits from 10 to 15, and the other task has the only core until 110.
    assert_eq!(runtime.block_on(ended.unwrap()).unwrap().unwrap(), 110);
}

#[test]
fn a_hang_is_reported_at_once() {
    let runtime = runtime(2);
    let number = number(&runtime);
    let event = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&event);
    let task = runtime.task("keeps").inout(&number.all());
    task.spawn(move |number| *kept.lock().unwrap() = Some(number)).unwrap();
    spawn_work(&runtime, &number, 10);
    let error = runtime.wait_blocking().unwrap_err();
    assert!(matches!(error, Error::Hang(_)), "{error}");
    event.lock().unwrap().take();
}

/// A source of events every 7 ns until 70 ns.
struct Ticks {
    next_ns: AtomicU64,
    seen: Mutex<Vec<u64>>,
}

impl EventSource for Ticks {
    fn next_ns(&self) -> Option<u64> {
        Some(self.next_ns.load(Ordering::Relaxed)).filter(|next_ns| *next_ns <= 70)
    }

    fn advance(&self, now_ns: u64) {
        if self.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            self.seen.lock().unwrap().push(now_ns);
            self.next_ns.fetch_add(7, Ordering::Relaxed);
        }
    }
}

#[test]
fn events_of_a_source_happen_at_their_times() {
    let runtime = runtime(1);
    let ticks = Arc::new(Ticks { next_ns: AtomicU64::new(7), seen: Mutex::default() });
    runtime.add_event_source(ticks.clone());
    let number = number(&runtime);
    (0..10).for_each(|_| spawn_work(&runtime, &number, 10));
    runtime.wait_blocking().unwrap();
    let every: Vec<u64> = (1..=10).map(|tick| tick * 7).collect();
    assert_eq!(*ticks.seen.lock().unwrap(), every);
    assert_eq!(runtime.clock().now_ns(), 100);
}

/// Runs random tasks over eight numbers, and returns the values, the order in which the bodies ran
/// with their times, and the time of all.
fn run(tasks: &[(usize, usize, u64)], cores: u32) -> (Vec<u64>, Vec<(usize, u64)>, u64) {
    let runtime = runtime(cores);
    let numbers: Vec<_> = (0..8).map(|_| number(&runtime)).collect();
    let order = Arc::new(Mutex::new(Vec::new()));
    for (index, &(from, to, ns)) in tasks.iter().enumerate() {
        let (order, clock) = (Arc::clone(&order), runtime.clock().clone());
        let task = runtime.task("work").work("work", ns).inout(&numbers[to].all());
        let note = move || order.lock().unwrap().push((index, clock.now_ns()));
        let spawned = match from == to {
            true => task.spawn(move |mut to| {
                to[0] = to[0] * 3 + 1;
                note();
            }),
            false => task.input(&numbers[from].all()).spawn(move |mut to, from| {
                to[0] = to[0].wrapping_mul(3).wrapping_add(from[0]);
                note();
            }),
        };
        spawned.unwrap();
    }
    runtime.wait_blocking().unwrap();
    let read = |number: &Array<u64>| {
        let value = runtime.task("read").input(&number.all()).run(|number| number[0]).unwrap();
        runtime.block_on(value).unwrap().unwrap()
    };
    let ended_ns = runtime.clock().now_ns();
    let values = numbers.iter().map(read).collect();
    let order = order.lock().unwrap().clone();
    (values, order, ended_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_graph_ends_within_the_bounds_of_brent_and_always_alike(
        tasks in prop::collection::vec((0usize..8, 0usize..8, 0u64..1_000), 1..60),
        cores in 1u32..6,
    ) {
        let (values, order, ended_ns) = run(&tasks, cores);
        prop_assert_eq!(&(values.clone(), order.clone(), ended_ns), &run(&tasks, cores));
        prop_assert_eq!(order.len(), tasks.len());
        prop_assert!(order.iter().map(|(_, at_ns)| at_ns).is_sorted());
        // One after another on one core, and the longest chain.
        let (serial, _, work_ns) = run(&tasks, 1);
        prop_assert_eq!(work_ns, tasks.iter().map(|task| task.2).sum::<u64>());
        prop_assert_eq!(serial, values);
        let (_, _, span_ns) = run(&tasks, 1_000);
        prop_assert!(ended_ns >= span_ns.max(work_ns.div_ceil(u64::from(cores))));
        prop_assert!(ended_ns <= work_ns / u64::from(cores) + span_ns);
    }
}

#[test]
fn a_task_that_waits_until_its_core_is_idle_lets_time_pass() {
    let runtime = runtime(1);
    let waits = runtime.block_on(async {
        for _ in 0..3 {
            runtime.idle(Duration::from_micros(10)).await;
        }
        runtime.clock().now_ns()
    });
    assert_eq!(waits.unwrap(), 30_000);
}
