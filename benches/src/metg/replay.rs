//! The graph in tasks of our runtime, recorded once and replayed: steps that repeat are an iteration.

use std::time::Instant;

use talpf_runtime::{Array, Config, Group, In, InOut, Iteration, Runtime, TaskBuilder, cores};

use super::Kernel;
use super::graph::checksum;
use super::ours::{self, Row};
use super::work::{Cell, Contender, Run, Work};
use crate::error::Error;

/// Our runtime with a worker for every core, replaying.
#[derive(Debug)]
pub struct Replay {
    runtime: Runtime,
}

impl Replay {
    /// Starts the runtime.
    ///
    /// **Errors**: threads refused by the system.
    pub fn start() -> Result<Self, Error> {
        let config = Config { workers: cores(), ..Config::default() };
        Ok(Replay { runtime: Runtime::new(config)? })
    }
}

impl Contender for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        let program = program((*self.runtime).clone(), work.clone());
        let main = self.runtime.spawn_main("creator", program)?;
        self.runtime.block_on(main)??
    }

    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error> {
        Ok(kernel.peak(self.runtime.workers()))
    }
}

/// The first step depends on nothing: it is spawned. The others are iterated.
async fn program(group: Group, work: Work) -> Result<Run, Error> {
    let width = work.graph.width();
    let row = || Array::new(&group, (0..width).map(|_| Cell::default()).collect(), 1);
    let rows = [row()?, row()?];
    let start = Instant::now();
    for point in work.graph.points(0) {
        ours::spawn(&group, &work, (0, point), &rows[1], &rows[0])?;
    }
    let turns = work.graph.period();
    group.iterate_in_turns(work.graph.steps().saturating_sub(1), turns, |iteration, turn| {
        let step = turn + 1;
        let [to, from] = [&rows[step % 2], &rows[(step + 1) % 2]];
        let mut points = work.graph.points(step);
        points.try_for_each(|point| declare(&group, &work, (step, point), from, to, iteration))
    })?;
    group.wait().await?;
    let elapsed = start.elapsed();
    let read = group.task("read").input(&rows[0].all()).input(&rows[1].all());
    let rows = read.run(|even, odd| [even, odd].map(|row| row.iter().map(|cell| cell.0).collect()));
    Ok(Run { elapsed, checksum: checksum(&rows?.await?) })
}

fn declare<'a>(
    group: &Group,
    work: &Work,
    (step, point): (usize, usize),
    from: &'a Row,
    to: &'a Row,
    iteration: &Iteration<'a>,
) -> Result<(), talpf_runtime::Error> {
    let dependences = work.graph.dependences(step, point);
    let body = Point { work: work.clone(), point };
    let (builder, own): (TaskBuilder<'_>, _) = (group.task("point"), to.tile(point));
    let input = |point: usize| from.tile(point);
    match *dependences {
        [] => builder
            .inout(&own)
            .repeat(iteration, move |step, mut own| body.update(step, &mut own, [])),
        [a] => builder
            .input(&input(a))
            .inout(&own)
            .repeat(iteration, move |step, a, mut own| body.update(step, &mut own, [&a])),
        [a, b] => builder
            .input(&input(a))
            .input(&input(b))
            .inout(&own)
            .repeat(iteration, move |step, a, b, mut own| body.update(step, &mut own, [&a, &b])),
        [a, b, c] => builder.input(&input(a)).input(&input(b)).input(&input(c)).inout(&own).repeat(
            iteration,
            move |step, a, b, c, mut own| {
                body.update(step, &mut own, [&a, &b, &c]);
            },
        ),
        [a, b, c, d, e] => builder
            .input(&input(a))
            .input(&input(b))
            .input(&input(c))
            .input(&input(d))
            .input(&input(e))
            .inout(&own)
            .repeat(iteration, move |step, a, b, c, d, e, mut own| {
                body.update(step, &mut own, [&a, &b, &c, &d, &e]);
            }),
        ref many => builder.inputs(many.iter().map(|point| input(*point))).inout(&own).repeat(
            iteration,
            move |step, inputs, mut own| {
                body.update(step, &mut own, &inputs);
            },
        ),
    }
}

/// What the task of a point does in the steps that are iterated.
struct Point {
    work: Work,
    point: usize,
}

impl Point {
    #[inline]
    fn update<'a>(
        &self,
        step: usize,
        own: &mut InOut<Cell<u64>>,
        inputs: impl IntoIterator<Item = &'a In<Cell<u64>>>,
    ) {
        let task = self.work.task(step + 1, self.point);
        own[0].0 = task.run(own[0].0, inputs.into_iter().map(|input| input[0].0));
    }
}
