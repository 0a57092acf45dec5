//! Cost of accesses of parts of one tile, by the number of live accesses.
//!
//! A gate task holds the whole tile, so that no task spawned after it ends before the gate opens.

use talpf_runtime::{Array, Error, Group, Region};
use tokio::sync::oneshot;

use super::meter::Meter;
use super::plan::{Plan, Samples};
use super::row::Row;
use super::shape::Shape;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

/// Number of tiles of 100 parts that need as much memory as one of the largest size.
const TILES: usize = 1_000;

const fn row(name: &'static str, what: &'static str, sample: fn(Plan, Shape) -> Samples) -> Row {
    Row::in_groups(name, what, SIZES, TILES, sample)
}

pub(super) const ROWS: [Row; 6] = [
    row("tile_outputs", "live outputs of parts of one tile; spawn of one", |plan, shape| {
        plan.in_group(shape, |group, meter, shape| live(group, meter, shape, OUTPUTS))
    })
    .target(400.0),
    row("tile_outputs_end", "live outputs of parts of one tile; run of one", |plan, shape| {
        plan.in_group(shape, |group, meter, shape| ended(group, meter, shape, OUTPUTS))
    }),
    row(
        "tile_commutative",
        "live commutative parts of one tile; spawn of one",
        |plan, shape| plan.in_group(shape, |group, meter, shape| live(group, meter, shape, COMMUTATIVE)),
    )
    .target(400.0),
    row(
        "tile_commutative_end",
        "live commutative parts of one tile; run of one",
        |plan, shape| plan.in_group(shape, |group, meter, shape| ended(group, meter, shape, COMMUTATIVE)),
    ),
    row(
        "tile_readers",
        "readers of parts of one tile, then a writer of it; spawn of one, and a part of the writer's",
        |plan, shape| plan.in_group(shape, |group, meter, shape| live(group, meter, shape, READERS)),
    )
    .target(400.0),
    row(
        "tile_readers_end",
        "readers of parts of one tile, then a writer; run of one",
        |plan, shape| plan.in_group(shape, |group, meter, shape| ended(group, meter, shape, READERS)),
    ),
];

/// Functions that spawn the task of one part, and the last task, of all parts of a tile.
#[derive(Clone, Copy)]
struct Program {
    part: fn(&Group, Region<'_, u64>) -> Result<(), Error>,
    all: fn(&Group, Region<'_, u64>) -> Result<(), Error>,
}

const OUTPUTS: Program = Program {
    part: |group, part| group.task("output").output(&part).spawn(|mut part| part[0] = 1),
    all: |_, _| Ok(()),
};

const COMMUTATIVE: Program = Program {
    part: |group, part| group.task("commutative").commutative(&part).spawn(|mut part| part[0] += 1),
    all: |_, _| Ok(()),
};

const READERS: Program = Program {
    part: |group, part| group.task("reader").input(&part).spawn(|_| {}),
    all: |group, all| group.task("writer").inout(&all).spawn(|mut all| all[0] += 1),
};

/// Measures the spawns.
async fn live(group: Group, mut meter: Meter, shape: Shape, program: Program) -> Samples {
    let array = Array::new(&group, vec![0u64; shape.units()], shape.size)?;
    while meter.again() {
        let gate = Gate::close(&group, &array)?;
        meter.start();
        spawn_all(&group, &array, shape, program)?;
        meter.stop(shape.units());
        gate.open();
        group.wait().await?;
    }
    Ok(meter.into_samples())
}

/// Measures everything after the spawns.
async fn ended(group: Group, mut meter: Meter, shape: Shape, program: Program) -> Samples {
    let array = Array::new(&group, vec![0u64; shape.units()], shape.size)?;
    while meter.again() {
        let gate = Gate::close(&group, &array)?;
        spawn_all(&group, &array, shape, program)?;
        meter.start();
        gate.open();
        group.wait().await?;
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

fn spawn_all(
    group: &Group,
    array: &Array<u64>,
    shape: Shape,
    program: Program,
) -> Result<(), Error> {
    for mut tile in shape.each() {
        let all = array.region(tile.clone());
        tile.try_for_each(|part| (program.part)(group, array.region(part..part + 1)))?;
        (program.all)(group, all)?;
    }
    Ok(())
}

/// Task that holds an array until the gate is opened.
pub(super) struct Gate(oneshot::Sender<()>);

impl Gate {
    /// Spawns the task.
    ///
    /// **Errors**: those of the spawn.
    pub(super) fn close(group: &Group, array: &Array<u64>) -> Result<Self, Error> {
        let (open, opened) = oneshot::channel();
        group.task("gate").inout(&array.all()).spawn_async(|array| async move {
            // An error means that the gate was dropped, which opens it too.
            let _ = opened.await;
            drop(array);
        })?;
        Ok(Gate(open))
    }

    /// Lets the gate task end.
    pub(super) fn open(self) {
        // The receiver is gone only if the group was cancelled.
        let _ = self.0.send(());
    }
}
