//! Memory of a live task, and memory growth of a long run with few live tasks.
//!
//! Bytes per task are the difference in resident memory between many and fewer live tasks, divided
//! by the difference of their numbers: constant parts of a runtime, such as threads and bottom
//! maps, cancel out. Growth is the difference in resident memory between an early point of a run
//! and its end. The long run comes first: task records are reused, and those of many live tasks
//! would hide its growth.
//!
//! The throttle bounds the tasks that a creator leaves to be run, not the tasks that wait for a
//! task of another worker: if that worker loses its core, a run on several workers may grow.

use std::time::Instant;

use talpf_runtime::{Array, Config, Group, Runtime};
use talpf_traces::counted;
use tokio::sync::oneshot;

use crate::conditions;
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Cells of the stencil.
const WIDTH: usize = 256;
/// Numbers of live tasks: fewer and more.
const LIVE: [usize; 2] = [1 << 16, 1 << 18];
/// Bytes of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// Measures bytes per task and growth on `workers` workers; the long run has `tasks` tasks. The
/// creator may be `throttle` tasks ahead, or as many as the environment says.
///
/// **Errors**: those of the runtime; invalid settings in the environment.
pub fn run(tasks: u64, workers: usize, throttle: Option<usize>) -> Result<Report, Error> {
    let mut config = conditions::runtime(workers)?;
    config.throttle = throttle.unwrap_or(config.throttle);
    let (machine, idle) = (conditions::machine(), config.idle);
    print_line(format_args!("# {machine}, {}, idle policy {idle}", counted(workers, "worker")));
    print_line(format_args!("# stencil of {WIDTH} cells: 3 inputs and 1 output a task"));
    let ahead = match config.throttle {
        usize::MAX => "off".to_owned(),
        tasks => format!("{} ahead", counted(tasks, "task")),
    };
    print_line(format_args!("# {}, throttle {ahead}", counted(tasks, "task")));
    let mut report = Report::new("");
    let (first, last, per_task_ns) = long_run(&config, tasks)?;
    report.add("memory.resident_first_mib", "MiB", vec![first]);
    report.add("memory.resident_last_mib", "MiB", vec![last]);
    report.add("memory.task_ns", "ns", vec![per_task_ns]);
    let [fewer, more] = live(&config, LIVE)?;
    let per_task = (more - fewer) * MIB / (LIVE[1] - LIVE[0]) as f64;
    report.add("memory.task_bytes", "B", vec![per_task]);
    Ok(report)
}

/// Measures resident memory while that many tasks wait for one other task, in MiB.
fn live(config: &Config, tasks: [usize; 2]) -> Result<[f64; 2], Error> {
    let runtime = Runtime::new(config.clone())?;
    let rows = rows(&runtime)?;
    let (open, opened) = oneshot::channel::<()>();
    let gate = runtime.task("gate").inout(&rows[0].all()).inout(&rows[1].all());
    gate.spawn_async(|first, second| async move {
        let _ = opened.await;
        drop((first, second));
    })?;
    let mut spawned = 0;
    let mut taken = [0.0; 2];
    for (tasks, taken) in tasks.into_iter().zip(&mut taken) {
        for task in spawned..tasks {
            spawn(&runtime, &rows, task as u64)?;
        }
        spawned = tasks;
        *taken = resident_mib()?;
    }
    // The gate task waits for this value, so the receiver exists.
    let _ = open.send(());
    runtime.shut_down()?;
    Ok(taken)
}

/// Measures resident memory after a tenth of the tasks and at the end, in MiB, and nanoseconds per
/// task.
fn long_run(config: &Config, tasks: u64) -> Result<(f64, f64, f64), Error> {
    let runtime = Runtime::new(config.clone())?;
    let group = (*runtime).clone();
    let creator = async move {
        let rows = rows(&group)?;
        let start = Instant::now();
        let mut first = f64::NAN;
        for task in 0..tasks {
            spawn(&group, &rows, task)?;
            if task == tasks / 10 {
                first = resident_mib()?;
            }
        }
        let last = resident_mib()?;
        group.wait().await?;
        Ok::<_, Error>((first, last, start.elapsed().as_nanos() as f64 / tasks as f64))
    };
    let figures = runtime.block_on(runtime.spawn_main("creator", creator)?)???;
    runtime.shut_down()?;
    Ok(figures)
}

type Row = Array<u64>;

fn rows(group: &Group) -> Result<[Row; 2], Error> {
    let row = || Array::new(group, vec![1u64; WIDTH], 1);
    Ok([row()?, row()?])
}

/// Spawns task `number` of a stencil.
fn spawn(group: &Group, rows: &[Row; 2], number: u64) -> Result<(), Error> {
    let (step, cell) = (number as usize / WIDTH, number as usize % WIDTH);
    let [old, new] = [&rows[step % 2], &rows[(step + 1) % 2]];
    let (left, right) = ((cell + WIDTH - 1) % WIDTH, (cell + 1) % WIDTH);
    let task = group.task("stencil").input(&old.tile(left)).input(&old.tile(cell));
    let task = task.input(&old.tile(right)).output(&new.tile(cell));
    Ok(task.spawn(|left, middle, right, mut new| {
        new[0] = left[0].wrapping_add(middle[0]).wrapping_add(right[0]);
    })?)
}

fn resident_mib() -> Result<f64, Error> {
    let read = std::fs::read_to_string("/proc/self/status");
    let refused = |reason| Error::System { doing: "reading the resident memory", reason };
    let text = read.map_err(refused)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    let kib = line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    Ok(kib.map_or(f64::NAN, |kib| kib / 1024.0))
}
