//! Cost of a task: alone, in a chain and in a stencil, discovered and replayed.

use std::time::Instant;

use talpf_runtime::{Array, Error, Group, Runtime};

use super::{Result, WORKERS};
use crate::conditions;
use crate::measure::Report;

const TASKS: usize = 200_000;
const WIDTH: usize = 256;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = Runtime::new(conditions::runtime(WORKERS)?)?;
    type Program = fn(Group) -> BoxFuture;
    let programs: [(&str, Program); 4] = [
        ("runtime.empty_ns", |group| Box::pin(empty(group))),
        ("runtime.chain_ns", |group| Box::pin(chain(group))),
        ("runtime.stencil_ns", |group| Box::pin(stencil(group))),
        ("runtime.stencil_replay_ns", |group| Box::pin(stencil_replay(group))),
    ];
    for (name, program) in programs {
        if !report.wants(name) {
            continue;
        }
        let sample = || -> Result<f64> {
            let main = runtime.spawn_main("creator", program((*runtime).clone()))?;
            Ok(runtime.block_on(main)???)
        };
        sample()?;
        let samples = (0..crate::measure::REPETITIONS).map(|_| sample()).collect::<Result<_>>()?;
        report.add(name, "ns", samples);
    }
    Ok(runtime.shut_down()?)
}

type BoxFuture = std::pin::Pin<Box<dyn Future<Output = Result<f64, Error>> + Send>>;

fn per_task(start: Instant, tasks: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / tasks as f64
}

/// Measures independent tasks of one creator.
async fn empty(group: Group) -> Result<f64, Error> {
    let start = Instant::now();
    for _ in 0..TASKS {
        group.task("empty").spawn(|| {})?;
    }
    group.wait().await?;
    Ok(per_task(start, TASKS))
}

/// Measures tasks that all update the same number.
async fn chain(group: Group) -> Result<f64, Error> {
    let number = Array::new(&group, vec![0u64; 1], 1)?;
    let start = Instant::now();
    for _ in 0..TASKS {
        group.task("chain").inout(&number.tile(0)).spawn(|mut number| number[0] += 1)?;
    }
    group.wait().await?;
    let spent = per_task(start, TASKS);
    let end = group.task("check").input(&number.all()).run(|number| number[0])?.await?;
    assert_eq!(end, TASKS as u64);
    Ok(spent)
}

/// Measures a stencil, 256 wide, of three inputs and one output a task; each step is discovered.
async fn stencil(group: Group) -> Result<f64, Error> {
    let steps = TASKS / WIDTH;
    let new = || Array::new(&group, vec![1u64; WIDTH], 1);
    let (mut old, mut new) = (new()?, new()?);
    let start = Instant::now();
    for _ in 0..steps {
        for cell in 0..WIDTH {
            let (left, right) = ((cell + WIDTH - 1) % WIDTH, (cell + 1) % WIDTH);
            group
                .task("stencil")
                .input(&old.tile(left))
                .input(&old.tile(cell))
                .input(&old.tile(right))
                .output(&new.tile(cell))
                .spawn(|left, middle, right, mut new| {
                    new[0] = left[0].wrapping_add(middle[0]).wrapping_add(right[0]);
                })?;
        }
        std::mem::swap(&mut old, &mut new);
    }
    group.wait().await?;
    let spent = per_task(start, steps * WIDTH);
    let end = group.task("check").input(&old.all()).run(|cells| cells[WIDTH - 1])?.await?;
    assert_eq!(end, 3u64.wrapping_pow(steps as u32));
    Ok(spent)
}

/// Measures the same stencil with two steps recorded and the rest replayed.
async fn stencil_replay(group: Group) -> Result<f64, Error> {
    let steps = TASKS / WIDTH;
    let new = || Array::new(&group, vec![1u64; WIDTH], 1);
    let arrays = [new()?, new()?];
    let start = Instant::now();
    group.iterate_unrolled(steps, 2, |iteration, phase| {
        let [old, new] = [&arrays[phase], &arrays[1 - phase]];
        (0..WIDTH).try_for_each(|cell| {
            let (left, right) = ((cell + WIDTH - 1) % WIDTH, (cell + 1) % WIDTH);
            iteration
                .task("stencil")
                .input(&old.tile(left))
                .input(&old.tile(cell))
                .input(&old.tile(right))
                .output(&new.tile(cell))
                .spawn_borrowed(|left, middle, right, new| {
                    new[0] = left[0].wrapping_add(middle[0]).wrapping_add(right[0]);
                })
        })
    })?;
    group.wait().await?;
    let spent = per_task(start, steps * WIDTH);
    let last = &arrays[steps % 2];
    let end = group.task("check").input(&last.all()).run(|cells| cells[WIDTH - 1])?.await?;
    assert_eq!(end, 3u64.wrapping_pow(steps as u32));
    Ok(spent)
}
