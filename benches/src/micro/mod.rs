//! Micro-benchmarks: one task, one request, one put, one item of a queue, one sync, one trace record.

mod allreduce;
mod bsp;
mod multicast;
mod notify;
mod phaser;
mod put;
mod queue;
mod runtime;
mod sampled;
mod spans;
mod superstep;
mod sync;
mod trace;
mod verbs;

use talpf::Settings;
use talpf_runtime::cores;
use talpf_traces::counted;

use crate::conditions;
use crate::core_to_core;
use crate::error::Error;
use crate::measure::{REPETITIONS, Report};
use crate::print_line::print_line;

/// Workers of every measured runtime.
pub const WORKERS: usize = 2;

type Result<T, E = talpf::Error> = std::result::Result<T, E>;

/// Measures all figures whose names begin with `only`.
///
/// **Errors**: those of the measured crates; no figure of that name.
pub fn run(only: &str) -> Result<Report, Error> {
    print_line(format_args!("# {}", conditions()?));
    let mut report = Report::new(only);
    report.measure(core_to_core::NAME, "ns", core_to_core::sample);
    runtime::measure(&mut report)?;
    verbs::measure(&mut report)?;
    put::measure(&mut report)?;
    notify::measure(&mut report)?;
    multicast::measure(&mut report)?;
    queue::measure(&mut report)?;
    sampled::measure(&mut report)?;
    phaser::measure(&mut report)?;
    sync::measure(&mut report)?;
    superstep::measure(&mut report)?;
    bsp::measure(&mut report)?;
    allreduce::measure(&mut report)?;
    trace::measure(&mut report)?;
    spans::measure(&mut report)?;
    if report.metrics().is_empty() {
        return Err(Error::NoSuchFigure { name: only.to_owned() });
    }
    Ok(report)
}

fn conditions() -> Result<String> {
    let (idle, polling) = (conditions::runtime(WORKERS)?.idle, Settings::load(None)?.polling()?);
    Ok(format!(
        "{}, {WORKERS} workers, idle policy {idle}, polling {polling}, link inproc, \
         no randomness, median [min .. max] of {REPETITIONS}",
        counted(cores(), "core")
    ))
}

fn config(ranks: u32) -> Result<talpf::Config> {
    let (polling, runtime) = (Settings::load(None)?.polling()?, conditions::runtime(WORKERS)?);
    Ok(talpf::Config { ranks, polling, runtime, ..talpf::Config::default() })
}
