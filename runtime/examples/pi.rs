//! A task loop: an index range cut into chunks, with a task for each, and a sum over all of them.
//!
//! The tasks integrate 4 / (1 + x * x) from 0 to 1, which gives pi. `InOrder` combines the sums of
//! the chunks in the order of the spawns, so that every run of the program gives the same bits.
//! Run it with `cargo run --release -p talpf-runtime --example pi`.

use std::f64::consts::PI;

use talpf_runtime::operator::{InOrder, Sum};
use talpf_runtime::{Array, Config, Error, Runtime};

const STEPS: usize = 1_000_000;
const GRAIN: usize = 50_000;

pub(crate) fn main() -> Result<(), Error> {
    let runtime = Runtime::new(Config::default())?;
    let area = Array::new(&runtime, vec![0.0], 1)?;
    runtime.task_loop("integrate", 0..STEPS).grain(GRAIN).for_each(|task, chunk| {
        task.reduction(&area.all(), InOrder(Sum)).spawn(move |mut area| {
            area[0] += chunk.map(height).sum::<f64>() / STEPS as f64;
        })
    })?;
    let area = runtime.task("read").input(&area.all()).run(|area| area[0])?;
    let area = runtime.block_on(area)??;

    let chunks = (0..STEPS).step_by(GRAIN).map(|start| start..start + GRAIN);
    let serial: f64 = chunks.map(|chunk| chunk.map(height).sum::<f64>() / STEPS as f64).sum();
    assert_eq!(area.to_bits(), serial.to_bits());
    assert!((area - PI).abs() < 1e-10, "{area}");
    println!("pi is about {area:.12}");
    Ok(())
}

/// The height of the curve in the middle of a step.
fn height(step: usize) -> f64 {
    let x = (step as f64 + 0.5) / STEPS as f64;
    4.0 / (1.0 + x * x)
}
