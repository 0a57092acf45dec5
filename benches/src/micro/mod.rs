//! The smallest things: one task, one request, one put, one sync, one trace record.

mod put;
mod runtime;
mod superstep;
mod sync;
mod trace;
mod verbs;

use talpf::Settings;
use talpf_runtime::cores;
use talpf_traces::counted;

use crate::conditions;
use crate::error::Error;
use crate::line;
use crate::measure::{REPETITIONS, Report};
use crate::say::say;

/// Workers of every runtime that is measured.
pub const WORKERS: usize = 2;

type Result<T, E = talpf::Error> = std::result::Result<T, E>;

/// Measures everything whose name begins with `only`.
///
/// **Errors**: whatever the measured crates refuse; no figure's name begins so.
pub fn run(only: &str) -> Result<Report, Error> {
    say(format_args!("# {}", conditions()?));
    let mut report = Report::new(only);
    report.measure(line::NAME, "ns", line::sample);
    runtime::measure(&mut report)?;
    verbs::measure(&mut report)?;
    put::measure(&mut report)?;
    sync::measure(&mut report)?;
    superstep::measure(&mut report)?;
    trace::measure(&mut report)?;
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
