//! Cost of an input of a task, by the number of its inputs.

use std::ops::Range;

use talpf_runtime::{Array, Group};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;
use super::shape::Shape;
use super::tiles::Gate;

const MANY: &[usize] = &[100, 1_000, 10_000, 100_000];
const WIDTHS: &[usize] = &[10, 100, 1_000];

pub(super) const ROWS: [Row; 4] = [
    Row::in_groups(
        "gather_parts",
        "live writers of parts of one tile that one task reads; one",
        MANY,
        1_000,
        |plan, shape| {
            plan.in_group(shape, |group, meter, shape| gather(group, meter, shape, shape.size))
        },
    )
    .target(200.0),
    Row::in_groups(
        "gather_tiles",
        "live writers of tiles that one task reads; one",
        MANY,
        1_000,
        |plan, shape| plan.in_group(shape, |group, meter, shape| gather(group, meter, shape, 1)),
    )
    .target(200.0),
    Row::in_groups(
        "all_to_all",
        "tasks of a step that each read all of the one before; an input",
        WIDTHS,
        100,
        |plan, shape| plan.in_group(shape, all_to_all),
    )
    .target(30.0)
    .counted_to(300),
    Row::in_groups(
        "all_to_all_replayed",
        "the same, replayed; an input",
        WIDTHS,
        100,
        |plan, shape| plan.in_group(shape, all_to_all_replayed),
    )
    .target(30.0)
    .counted_to(300),
];

/// Measures the spawns of tasks that each read the outputs of a group of live tasks, in tiles of this
/// length.
async fn gather(group: Group, mut meter: Meter, shape: Shape, tile: usize) -> Samples {
    let array = Array::new(&group, vec![0u64; shape.units()], tile)?;
    let closed = Array::new(&group, vec![0u64; 1], 1)?;
    while meter.again() {
        let gate = Gate::close(&group, &closed)?;
        for part in 0..shape.units() {
            let part = array.region(part..part + 1);
            let writer = group.task("writer").input(&closed.all()).output(&part);
            writer.spawn(|_, mut part| part[0] = 1)?;
        }
        meter.start();
        for parts in shape.each() {
            group.task("reader").input(&array.region(parts)).spawn(|_| {})?;
        }
        meter.stop(shape.units());
        gate.open();
        group.wait().await?;
    }
    Ok(meter.into_samples())
}

/// Steps of one round.
const STEPS: usize = 4;

/// Iterates over the points of a row, each with those of its group.
fn points(shape: Shape) -> impl Iterator<Item = (Range<usize>, usize)> {
    shape.each().flat_map(|points| points.clone().map(move |point| (points.clone(), point)))
}

/// Measures steps that each write one of two rows and read the other.
async fn all_to_all(group: Group, mut meter: Meter, shape: Shape) -> Samples {
    let row = || Array::new(&group, vec![0u64; shape.units()], 1);
    let rows = [row()?, row()?];
    while meter.again() {
        meter.start();
        for step in 0..STEPS {
            let [to, from] = [&rows[step % 2], &rows[(step + 1) % 2]];
            for (points, point) in points(shape) {
                let inputs = points.map(|point| from.tile(point));
                let task = group.task("point").input(inputs).output(&to.tile(point));
                task.spawn(|inputs, mut to| to[0] = inputs.len() as u64)?;
            }
        }
        group.wait().await?;
        meter.stop(STEPS * shape.units() * shape.size);
    }
    Ok(meter.into_samples())
}

/// Measures the same steps as [`all_to_all`], two of them declared and the rest replayed.
async fn all_to_all_replayed(group: Group, mut meter: Meter, shape: Shape) -> Samples {
    let row = || Array::new(&group, vec![0u64; shape.units()], 1);
    let rows = [row()?, row()?];
    let steps = 5 * STEPS;
    while meter.again() {
        meter.start();
        group.iterate_unrolled(steps, 2, |iteration, phase| {
            let [to, from] = [&rows[phase], &rows[1 - phase]];
            points(shape).try_for_each(|(points, point)| {
                let inputs = points.map(|point| from.tile(point));
                let task = iteration.task("point").input(inputs).output(&to.tile(point));
                task.spawn_borrowed(|inputs, to| to[0] = inputs.len() as u64)
            })
        })?;
        group.wait().await?;
        meter.stop(steps * shape.units() * shape.size);
    }
    Ok(meter.into_samples())
}
