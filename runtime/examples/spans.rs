//! Spans of a program in the trace of its run.
//!
//! `RUST_LOG=solver=info` chooses what is shown: the spans and events of the module `solver`. Run it with
//! `cargo run --release -p talpf-runtime --features tracing --example spans -- --trace DIR`.

use std::error::Error;
use std::path::PathBuf;

use talpf_runtime::{Array, Config, Runtime, SpanLayer};
use talpf_traces::{Recorder, TraceInfo};
use tracing::{info, info_span};
use tracing_subscriber::{EnvFilter, prelude::*};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().skip_while(|word| word != "--trace").nth(1).map(PathBuf::from);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::registry().with(SpanLayer::new().with_filter(filter)).init();

    let recorder = folder.as_ref().map(|_| Recorder::default());
    let runtime = Runtime::new(Config { recorder: recorder.clone(), ..Config::default() })?;
    let workers = runtime.workers() as u32;
    let numbers = Array::new(&runtime, (0..100_000u64).collect(), 10_000)?;
    for tile in 0..numbers.tiles() {
        runtime.task("square").inout(&numbers.tile(tile)).spawn(|mut tile| {
            let _span = info_span!("squares").entered();
            tile.iter_mut().for_each(|number| *number *= *number);
            info!(name: "largest", value = tile.last().copied().unwrap_or(0));
        })?;
    }
    info_span!("waits for the squares").in_scope(|| runtime.wait_blocking())?;
    info!("all squares are there");
    runtime.shut_down()?;

    if let (Some(folder), Some(recorder)) = (folder, recorder) {
        let info = TraceInfo { ranks: 1, workers, ..TraceInfo::default() };
        println!("{}", recorder.write_paraver(&folder, "spans", &info)?.prv.display());
    }
    Ok(())
}
