//! The graph as tasks that are declared once and replayed: steps that repeat are an iteration.

use talpf_runtime::{Group, In, InOut, Iteration, current_step};

use super::ours::{self, Row};
use super::work::{Cell, Work};
use crate::error::Error;

/// Spawns the first step, which depends on nothing, and iterates the others.
pub(super) fn declare_all(group: &Group, work: &Work, rows: &[Row; 2]) -> Result<(), Error> {
    for point in work.graph.points(0) {
        ours::spawn(group, work, (0, point), &rows[1], &rows[0])?;
    }
    let (steps, period) = (work.graph.steps().saturating_sub(1), work.graph.period());
    Ok(group.iterate_unrolled(steps, period, |iteration, phase| {
        let step = phase + 1;
        let [to, from] = [&rows[step % 2], &rows[(step + 1) % 2]];
        let mut points = work.graph.points(step);
        points.try_for_each(|point| declare(work, (step, point), from, to, iteration))
    })?)
}

fn declare<'a>(
    work: &Work,
    (step, point): (usize, usize),
    from: &'a Row,
    to: &'a Row,
    iteration: &Iteration<'a>,
) -> Result<(), talpf_runtime::Error> {
    let dependences = work.graph.dependences(step, point);
    let body = Point { work: work.clone(), point };
    let (builder, own) = (iteration.task("point"), to.tile(point));
    let input = |point: usize| from.tile(point);
    match *dependences {
        [] => builder.inout(&own).spawn_borrowed(move |own| body.update(own, [])),
        [a] => builder
            .input(&input(a))
            .inout(&own)
            .spawn_borrowed(move |a, own| body.update(own, [&*a])),
        [a, b] => builder
            .input(&input(a))
            .input(&input(b))
            .inout(&own)
            .spawn_borrowed(move |a, b, own| body.update(own, [&*a, b])),
        [a, b, c] => builder
            .input(&input(a))
            .input(&input(b))
            .input(&input(c))
            .inout(&own)
            .spawn_borrowed(move |a, b, c, own| body.update(own, [&*a, b, c])),
        [a, b, c, d, e] => builder
            .input(&input(a))
            .input(&input(b))
            .input(&input(c))
            .input(&input(d))
            .input(&input(e))
            .inout(&own)
            .spawn_borrowed(move |a, b, c, d, e, own| body.update(own, [&*a, b, c, d, e])),
        ref many => builder
            .input(many.iter().map(|point| input(*point)))
            .inout(&own)
            .spawn_borrowed(move |inputs, own| body.update(own, &*inputs)),
    }
}

/// Body of the task of a point in the iterated steps.
struct Point {
    work: Work,
    point: usize,
}

impl Point {
    #[inline]
    fn update<'a>(
        &self,
        own: &mut InOut<Cell<u64>>,
        inputs: impl IntoIterator<Item = &'a In<Cell<u64>>>,
    ) {
        let step = current_step().expect("called in an iteration");
        let task = self.work.task(step + 1, self.point);
        own[0].0 = task.run(own[0].0, inputs.into_iter().map(|input| input[0].0));
    }
}
