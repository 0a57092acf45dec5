//! Cost of recording one event, clock included, and of tracing a task: alone, and inside another.

use std::time::Instant;

use talpf_runtime::{Config, Error, Group, Runtime};
use talpf_traces::{Event, LabelId, Recorder};

use super::Result;
use crate::conditions;
use crate::measure::{REPETITIONS, Report};

const RECORDS: usize = 100_000;
const TASKS: usize = 100_000;
/// Tasks that a program spawns before it waits for them: too few for the worker to run them inside spawns.
const BATCH: usize = 64;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = Runtime::new(Config { workers: 1, ..Config::default() })?;
    let clock = runtime.clock().clone();
    report.measure("trace.record_ns", "ns", || {
        let recorder = Recorder::default();
        let mut stream = recorder.stream(0);
        stream.prepare(RECORDS);
        let start = Instant::now();
        for task in 0..RECORDS as u64 {
            let now_ns = clock.now_ns();
            stream.record(now_ns, Event::task_slice(0, task, LabelId::UNNAMED, now_ns, true));
        }
        start.elapsed().as_nanos() as f64 / RECORDS as f64
    });
    runtime.shut_down()?;
    difference(report, "trace.task_ns", false)?;
    difference(report, "trace.nested_task_ns", true)
}

/// Measures what tracing adds to an empty task, by two runtimes alternately. Both have one worker.
fn difference(report: &mut Report, name: &str, nested: bool) -> Result<()> {
    if !report.wants(name) {
        return Ok(());
    }
    let plain = Runtime::new(conditions::runtime(1)?)?;
    let recorder = Some(Recorder::default());
    let traced = Runtime::new(Config { recorder, ..conditions::runtime(1)? })?;
    let sample = |runtime: &Runtime| -> Result<f64> {
        let program = tasks((**runtime).clone(), nested);
        Ok(runtime.block_on(runtime.spawn_main("creator", program)?)???)
    };
    let mut samples = Vec::new();
    for round in 0..=REPETITIONS {
        let (without, with) = (sample(&plain)?, sample(&traced)?);
        if round > 0 {
            samples.push(with - without);
        }
    }
    report.add(name, "ns", samples);
    plain.shut_down()?;
    Ok(traced.shut_down()?)
}

/// Spawns empty tasks, which run inside the program if they are `nested`. Returns the nanoseconds of each.
async fn tasks(group: Group, nested: bool) -> std::result::Result<f64, Error> {
    let start = Instant::now();
    for _ in 0..TASKS / BATCH {
        for _ in 0..BATCH {
            let task = group.task("empty");
            let task = if nested { task.inline() } else { task };
            task.spawn(|| {})?;
        }
        group.wait().await?;
    }
    Ok(start.elapsed().as_nanos() as f64 / (TASKS / BATCH * BATCH) as f64)
}
