//! The graph as tasks of our runtime, with every access declared and discovered.

use std::time::Instant;

use talpf_runtime::{Array, Group, In, InOut, Runtime, cores};

use super::graph::checksum;
use super::work::{Cell, Contender, Run, Task, Work};
use super::{Kernel, replay};
use crate::conditions;
use crate::contest::OURS;
use crate::error::Error;

/// Our runtime with one worker per core.
#[derive(Debug)]
pub struct Ours {
    runtime: Runtime,
    name: &'static str,
    spawn_all: SpawnAll,
}

/// Function that spawns or declares the tasks of all steps over the rows of even and of odd steps.
type SpawnAll = fn(&Group, &Work, &[Row; 2]) -> Result<(), Error>;

pub(super) type Row = Array<Cell<u64>>;

impl Ours {
    /// Starts a runtime that discovers every dependence.
    ///
    /// **Errors**: threads refused by the system; invalid settings in the environment.
    pub fn discovering() -> Result<Self, Error> {
        Self::start(OURS, spawn_all)
    }

    /// Starts a runtime that replays the steps that repeat.
    ///
    /// **Errors**: those of [`Ours::discovering`].
    pub fn replaying() -> Result<Self, Error> {
        Self::start("replay", replay::declare_all)
    }

    fn start(name: &'static str, spawn_all: SpawnAll) -> Result<Self, Error> {
        let runtime = Runtime::new(conditions::runtime(cores())?)?;
        Ok(Ours { runtime, name, spawn_all })
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        let program = program((*self.runtime).clone(), work.clone(), self.spawn_all);
        let main = self.runtime.spawn_main("creator", program)?;
        self.runtime.block_on(main)??
    }

    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error> {
        Ok(kernel.peak(self.runtime.workers()))
    }
}

async fn program(group: Group, work: Work, spawn_all: SpawnAll) -> Result<Run, Error> {
    let width = work.graph.width();
    let row = || Array::new(&group, (0..width).map(|_| Cell::default()).collect(), 1);
    let rows = [row()?, row()?];
    let start = Instant::now();
    spawn_all(&group, &work, &rows)?;
    group.wait().await?;
    let elapsed = start.elapsed();
    let read = group.task("read").input(&rows[0].all()).input(&rows[1].all());
    let rows = read.run(|even, odd| [even, odd].map(|row| row.iter().map(|cell| cell.0).collect()));
    Ok(Run { elapsed, checksum: checksum(&rows?.await?) })
}

fn spawn_all(group: &Group, work: &Work, rows: &[Row; 2]) -> Result<(), Error> {
    for step in 0..work.graph.steps() {
        let [to, from] = [&rows[step % 2], &rows[(step + 1) % 2]];
        for point in work.graph.points(step) {
            spawn(group, work, (step, point), from, to)?;
        }
    }
    Ok(())
}

pub(super) fn spawn(
    group: &Group,
    work: &Work,
    (step, point): (usize, usize),
    from: &Row,
    to: &Row,
) -> Result<(), Error> {
    let task = work.task(step, point);
    let (builder, own) = (group.task("point"), to.tile(point));
    let input = |point: usize| from.tile(point);
    match *work.graph.dependences(step, point) {
        [] => builder.inout(&own).spawn(move |mut own| update(task, &mut own, [])),
        [a] => builder
            .input(&input(a))
            .inout(&own)
            .spawn(move |a, mut own| update(task, &mut own, [&a])),
        [a, b] => builder
            .input(&input(a))
            .input(&input(b))
            .inout(&own)
            .spawn(move |a, b, mut own| update(task, &mut own, [&a, &b])),
        [a, b, c] => builder
            .input(&input(a))
            .input(&input(b))
            .input(&input(c))
            .inout(&own)
            .spawn(move |a, b, c, mut own| update(task, &mut own, [&a, &b, &c])),
        [a, b, c, d, e] => builder
            .input(&input(a))
            .input(&input(b))
            .input(&input(c))
            .input(&input(d))
            .input(&input(e))
            .inout(&own)
            .spawn(move |a, b, c, d, e, mut own| update(task, &mut own, [&a, &b, &c, &d, &e])),
        ref many => builder
            .input(many.iter().map(|point| input(*point)))
            .inout(&own)
            .spawn(move |inputs, mut own| update(task, &mut own, &inputs)),
    }?;
    Ok(())
}

#[inline]
fn update<'a>(
    task: Task,
    own: &mut InOut<Cell<u64>>,
    inputs: impl IntoIterator<Item = &'a In<Cell<u64>>>,
) {
    own[0].0 = task.run(own[0].0, inputs.into_iter().map(|input| input[0].0));
}
