//! Cost of recording one event, clock included.

use std::time::Instant;

use talpf_runtime::{Config, Runtime};
use talpf_traces::{Event, LabelId, Recorder};

use super::Result;
use crate::measure::Report;

const RECORDS: usize = 100_000;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = Runtime::new(Config { workers: 1, ..Config::default() })?;
    let clock = runtime.clock().clone();
    report.measure("trace.record_ns", "ns", || {
        let recorder = Recorder::default();
        let mut stream = recorder.stream(0);
        stream.prepare(RECORDS);
        let start = Instant::now();
        for task in 0..RECORDS as u64 {
            let now_ns = clock.now_ns();
            stream.record(now_ns, Event::task_slice(0, task, LabelId::UNNAMED, now_ns, true));
        }
        start.elapsed().as_nanos() as f64 / RECORDS as f64
    });
    Ok(runtime.shut_down()?)
}
