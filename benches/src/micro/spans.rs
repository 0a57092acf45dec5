//! Cost of a span of the program in the trace of a run: made, entered and left; entered and left alone.

use std::time::Instant;

use talpf_runtime::{Config, Runtime, SpanLayer};
use talpf_traces::Recorder;
use tracing::{Dispatch, info_span};
use tracing_subscriber::layer::SubscriberExt;

use super::Result;
use crate::conditions;
use crate::measure::{REPETITIONS, Report};

const SPANS: usize = 100_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    measure_one(report, "trace.span_ns", || info_span!("span").in_scope(|| ()))?;
    let mut kept = None;
    measure_one(report, "trace.kept_span_ns", move || {
        kept.get_or_insert_with(|| info_span!("span")).in_scope(|| ());
    })
}

/// Measures spans in a task of a traced run.
fn measure_one(
    report: &mut Report,
    name: &str,
    mut span: impl FnMut() + Send + 'static,
) -> Result<()> {
    if !report.wants(name) {
        return Ok(());
    }
    let recorder = Some(Recorder::default());
    let runtime = Runtime::new(Config { recorder, ..conditions::runtime(1)? })?;
    let subscriber = Dispatch::new(tracing_subscriber::registry().with(SpanLayer::new()));
    let samples = runtime.task("spans").run(move || {
        tracing::dispatcher::with_default(&subscriber, || {
            let mut sample = || {
                let start = Instant::now();
                (0..SPANS).for_each(|_| span());
                start.elapsed().as_nanos() as f64 / SPANS as f64
            };
            sample();
            (0..REPETITIONS).map(|_| sample()).collect::<Vec<_>>()
        })
    })?;
    report.add(name, "ns", runtime.block_on(samples)??);
    Ok(runtime.shut_down()?)
}
