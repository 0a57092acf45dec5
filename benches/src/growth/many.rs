//! Cost of children of one task, of timers and of arrays, by their number.

use std::time::Duration;

use talpf_runtime::{Array, Children, Error, Group};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

pub(super) const ROWS: [Row; 3] = [
    Row::new(
        "children",
        "children of one task; one",
        &[100, 1_000, 10_000, 100_000, 1_000_000],
        |plan, size| plan.in_throttled_group(size, children),
    )
    .target(350.0),
    Row::new("timers", "tasks that wait for a time; one", SIZES, |plan, size| {
        plan.in_group(size, timers)
    }),
    Row::new(
        "arrays",
        "arrays with a task each; one, made, used and dropped",
        SIZES,
        |plan, size| plan.in_throttled_group(size, arrays),
    ),
];

async fn children(group: Group, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        meter.start();
        let parent = group.task("parent").run_async(move || async move {
            let children = Children::of_current_task()?;
            (0..size).try_for_each(|_| children.task("child").spawn(|| {}))?;
            children.wait().await
        })?;
        parent.await??;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Time that every task waits for, from its own start.
const PERIOD: Duration = Duration::from_millis(20);

async fn timers(group: Group, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        meter.start();
        for _ in 0..size {
            let wait = group.wait_for(PERIOD);
            group.task("timer").spawn_async(|| wait)?;
        }
        group.wait().await?;
        meter.stop_but(PERIOD, size);
    }
    Ok(meter.into_samples())
}

async fn arrays(group: Group, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        meter.start();
        let new = |_| Array::new(&group, vec![0u64; 8], 8);
        let arrays = (0..size).map(new).collect::<Result<Vec<_>, Error>>()?;
        for array in &arrays {
            group.task("use").inout(&array.all()).spawn(|mut array| array[0] += 1)?;
        }
        drop(arrays);
        group.wait().await?;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}
