//! Slices of tasks and states of workers in a trace.

use std::fs;
use std::time::Duration;

use talpf_runtime::{Config, IdlePolicy, Monitor, Runtime};
use talpf_traces::{Event, Recorder, State, TraceInfo, ValueKind, paraver};

use crate::common;

/// Returns the records of a run of groups 0 and 1, which pass the linter.
fn records(recorder: &Recorder, workers: u32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let info = TraceInfo { ranks: 2, workers, ..TraceInfo::default() };
    let files = recorder.write_paraver(folder.path(), "slices", &info).unwrap();
    let report = paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    fs::read_to_string(files.prv).unwrap()
}

/// Returns the values of events of type `kind`, in order.
fn values<'a>(trace: &'a str, kind: &str) -> Vec<&'a str> {
    let events = trace.lines().filter(|line| line.starts_with("2:"));
    let pairs = events.flat_map(|line| {
        let fields: Vec<&str> = line.split(':').skip(6).collect();
        fields.chunks(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    });
    pairs.filter(|pair| pair.0 == kind).map(|pair| pair.1).collect()
}

/// Returns the time for which a worker shows a cause of its idleness.
fn explained(trace: &str, worker: usize) -> u64 {
    let thread = (worker + 1).to_string();
    let (mut sum, mut since) = (0, None);
    for line in trace.lines().filter(|line| line.starts_with("2:")) {
        let fields: Vec<&str> = line.split(':').collect();
        let pairs = fields[6..].chunks(2).filter(|pair| pair[0] == "95000022");
        for pair in pairs.filter(|_| fields[4] == thread) {
            let time: u64 = fields[5].parse().unwrap();
            sum += since.map_or(0, |since| time - since);
            since = (pair[1] != "0").then_some(time);
        }
    }
    assert_eq!(since, None, "{trace}");
    sum
}

#[test]
fn inline_task_that_an_action_spawns_interrupts_the_outer_one() {
    let _watchdog = common::watchdog();
    let recorder = Recorder::default();
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = runtime.group("other", 1);
    let outer = runtime.task("outer").run(move || {
        let inner = group.clone();
        let task = group.task("acts").on_ready(move |_| {
            inner.task("inner").inline().spawn(|| ()).unwrap();
        });
        task.spawn(|| ()).unwrap();
    });
    runtime.block_on(outer.unwrap()).unwrap().unwrap();
    runtime.shut_down().unwrap();
    let trace = records(&recorder, 1);
    // The groups have rows of their own, so the outer task is not shown meanwhile.
    let [outer, hides, inner, ..] = values(&trace, "10")[..] else { panic!("{trace}") };
    assert!(outer != inner && hides == "0" && inner != "0", "{trace}");
    assert_eq!(values(&trace, "10").iter().filter(|task| **task == outer).count(), 2, "{trace}");
}

#[test]
fn a_task_starts_once_however_often_it_is_suspended() {
    let _watchdog = common::watchdog();
    let recorder = Recorder::default();
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = (*runtime).clone();
    let body = move || async move {
        for _ in 0..3 {
            group.wait_for(Duration::from_micros(50)).await;
        }
    };
    runtime.block_on(runtime.task("waits").run_async(body).unwrap()).unwrap().unwrap();
    runtime.shut_down().unwrap();
    let trace = records(&recorder, 1);
    let slices = values(&trace, "10").into_iter().filter(|task| *task != "0").count();
    assert!(slices >= 4, "{trace}");
    assert_eq!(values(&trace, "95000021").len(), 1, "{trace}");
}

#[test]
fn idle_time_of_a_trace_is_that_of_the_metrics() {
    let _watchdog = common::watchdog();
    for idle in [IdlePolicy::Park, IdlePolicy::Adaptive { spin: Duration::from_micros(20) }] {
        let (recorder, monitor) = (Recorder::default(), Monitor::default());
        let config = Config {
            workers: 2,
            idle,
            recorder: Some(recorder.clone()),
            monitor: Some(monitor.clone()),
            ..Config::default()
        };
        let runtime = Runtime::new(config).unwrap();
        for _ in 0..20 {
            let group = (*runtime).clone();
            let body = move || async move { group.wait_for(Duration::from_micros(100)).await };
            let tasks = [(); 3].map(|()| runtime.task("waits").run_async(body.clone()).unwrap());
            for task in tasks {
                runtime.block_on(task).unwrap().unwrap();
            }
        }
        runtime.shut_down().unwrap();
        let trace = records(&recorder, 2);
        let metered = monitor.metrics().unwrap().idle;
        for (worker, metered) in metered.iter().enumerate() {
            let cpu = format!("1:{}:", worker + 1);
            let states = trace.lines().filter(|line| line.starts_with(&cpu));
            let shown: u64 = states
                .map(|line| {
                    let fields: Vec<u64> = line.split(':').map(|f| f.parse().unwrap()).collect();
                    let state = fields[7];
                    let is_idle = [State::Idle, State::Blocked].map(State::number);
                    let counts = is_idle.contains(&(state as u32));
                    if counts { fields[6] - fields[5] } else { 0 }
                })
                .sum();
            assert_eq!(u128::from(shown), metered.as_nanos(), "worker {worker}, {idle:?}");
            let explained = u128::from(explained(&trace, worker));
            assert_eq!(explained, metered.as_nanos(), "worker {worker}, {idle:?}");
        }
    }
}

#[test]
fn a_program_that_is_ahead_shows_its_tasks_and_waits_for_them() {
    let _watchdog = common::watchdog();
    let recorder = Recorder::default();
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = (*runtime).clone();
    let program = move || async move {
        let mut lookahead = group.lookahead(1);
        for _ in 0..3 {
            lookahead.step().await?;
            for _ in 0..4 {
                let period = Duration::from_micros(50);
                let waits = group.clone();
                let task = group.task("waits").unthrottled();
                task.spawn_async(move || async move { waits.wait_for(period).await })?;
            }
        }
        Ok::<_, talpf_runtime::Error>(())
    };
    let program = runtime.spawn_main("main", program()).unwrap();
    runtime.block_on(program).unwrap().unwrap().unwrap();
    runtime.shut_down().unwrap();
    let trace = records(&recorder, 1);
    assert!(values(&trace, "95000022").contains(&"3"), "throttled: {trace}");
    let not_done = values(&trace, "95000024");
    assert!(not_done.len() > 1 && not_done.last() == Some(&"0"), "{not_done:?}");
    assert!(not_done.iter().all(|count| count.parse::<u64>().unwrap() <= 13), "{not_done:?}");
}

#[test]
fn threads_outside_have_a_row() {
    let _watchdog = common::watchdog();
    let recorder = Recorder::default();
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let step = |number| move |_| Event::value(0, ValueKind::Step, number);
    let body = (*runtime).clone();
    runtime
        .block_on(runtime.task("counts").run(move || body.trace(step(1))).unwrap())
        .unwrap()
        .unwrap();
    runtime.trace(step(2));
    let group = (*runtime).clone();
    std::thread::spawn(move || group.trace(step(3))).join().unwrap();
    let late = (*runtime).clone();
    runtime.shut_down().unwrap();
    late.trace(step(4));
    let trace = records(&recorder, 1);
    assert!(trace.lines().next().unwrap().ends_with(":1(2):1:2(2:1,1:1)"), "{trace}");
    let rows = |line: &str| line.split(':').nth(4).unwrap().to_owned();
    let steps = trace.lines().filter(|line| line.starts_with("2:") && line.contains(":95000026:"));
    assert_eq!(steps.map(rows).collect::<Vec<_>>(), ["1", "2", "2"], "{trace}");
    assert_eq!(values(&trace, "95000026"), ["1", "2", "3"], "{trace}");
}

#[test]
fn a_worker_of_another_runtime_is_a_thread_outside() {
    let _watchdog = common::watchdog();
    let (recorder, other) = (Recorder::default(), Recorder::default());
    let [runtime, outside] = [&recorder, &other].map(|recorder| {
        let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
        Runtime::new(config).unwrap()
    });
    let group = (*runtime).clone();
    let task = outside.task("traces").run(move || {
        group.trace(|_| Event::value(0, ValueKind::Step, 7));
    });
    outside.block_on(task.unwrap()).unwrap().unwrap();
    outside.shut_down().unwrap();
    runtime.shut_down().unwrap();
    assert_eq!(values(&records(&recorder, 1), "95000026"), ["7"]);
    assert!(values(&records(&other, 1), "95000026").is_empty());
}
