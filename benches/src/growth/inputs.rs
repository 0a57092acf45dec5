//! Cost of an input of a task, by the number of its inputs.

use talpf_runtime::{Array, Group};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;
use super::tiles::Gate;

const MANY: &[usize] = &[100, 1_000, 10_000, 100_000];
const WIDTHS: &[usize] = &[10, 100, 1_000];

pub(super) const ROWS: [Row; 4] = [
    Row::new(
        "gather_parts",
        "live writers of parts of one tile that one task reads; one",
        MANY,
        |plan, size| plan.in_group(size, |group, meter, size| gather(group, meter, size, size)),
    )
    .target(200.0),
    Row::new(
        "gather_tiles",
        "live writers of tiles that one task reads; one",
        MANY,
        |plan, size| plan.in_group(size, |group, meter, size| gather(group, meter, size, 1)),
    )
    .target(200.0),
    Row::new(
        "all_to_all",
        "tasks of a step that each read all of the one before; an input",
        WIDTHS,
        |plan, size| plan.in_group(size, all_to_all),
    )
    .target(30.0)
    .counted_to(300),
    Row::new("all_to_all_replayed", "the same, replayed; an input", WIDTHS, |plan, size| {
        plan.in_group(size, all_to_all_replayed)
    })
    .target(30.0)
    .counted_to(300),
];

/// Measures the spawn of one task that reads the outputs of `size` live tasks, in tiles of this
/// length.
async fn gather(group: Group, mut meter: Meter, size: usize, tile: usize) -> Samples {
    let array = Array::new(&group, vec![0u64; size], tile)?;
    let closed = Array::new(&group, vec![0u64; 1], 1)?;
    while meter.again() {
        let gate = Gate::close(&group, &closed)?;
        for part in 0..size {
            let part = array.region(part..part + 1);
            let writer = group.task("writer").input(&closed.all()).output(&part);
            writer.spawn(|_, mut part| part[0] = 1)?;
        }
        meter.start();
        group.task("reader").input(&array.all()).spawn(|_| {})?;
        meter.stop(size);
        gate.open();
        group.wait().await?;
    }
    Ok(meter.into_samples())
}

/// Steps of one round.
const STEPS: usize = 4;

/// Measures steps that each write one of two rows and read the other.
async fn all_to_all(group: Group, mut meter: Meter, size: usize) -> Samples {
    let row = || Array::new(&group, vec![0u64; size], 1);
    let rows = [row()?, row()?];
    while meter.again() {
        meter.start();
        for step in 0..STEPS {
            let [to, from] = [&rows[step % 2], &rows[(step + 1) % 2]];
            for point in 0..size {
                let inputs = (0..size).map(|point| from.tile(point));
                let task = group.task("point").input(inputs).output(&to.tile(point));
                task.spawn(|inputs, mut to| to[0] = inputs.len() as u64)?;
            }
        }
        group.wait().await?;
        meter.stop(STEPS * size * size);
    }
    Ok(meter.into_samples())
}

/// Measures the same steps as [`all_to_all`], two of them declared and the rest replayed.
async fn all_to_all_replayed(group: Group, mut meter: Meter, size: usize) -> Samples {
    let row = || Array::new(&group, vec![0u64; size], 1);
    let rows = [row()?, row()?];
    let steps = 5 * STEPS;
    while meter.again() {
        meter.start();
        group.iterate_unrolled(steps, 2, |iteration, phase| {
            let [to, from] = [&rows[phase], &rows[1 - phase]];
            (0..size).try_for_each(|point| {
                let inputs = (0..size).map(|point| from.tile(point));
                let task = iteration.task("point").input(inputs).output(&to.tile(point));
                task.spawn_borrowed(|inputs, to| to[0] = inputs.len() as u64)
            })
        })?;
        group.wait().await?;
        meter.stop(steps * size * size);
    }
    Ok(meter.into_samples())
}
