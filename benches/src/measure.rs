//! Repeated measurements and their report.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::print_line::print_line;

/// Figure that was measured several times.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// Median of the samples: the figure to quote.
    pub median: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Unit of the samples.
    pub unit: &'static str,
}

/// Figures by name.
#[derive(Debug, Default)]
pub struct Report {
    only: String,
    metrics: BTreeMap<String, Metric>,
    failure: Option<Error>,
}

/// Number of samples of a figure, after one warm-up sample that does not count.
pub const REPETITIONS: usize = 11;

impl Metric {
    fn of(mut samples: Vec<f64>, unit: &'static str) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        let last = samples.len().saturating_sub(1);
        Metric { median: at(samples.len() / 2), min: at(0), max: at(last), unit }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metric { median, min, max, unit } = self;
        if min == max {
            return write!(f, "{median:10.2} {unit}");
        }
        write!(f, "{median:10.2} {unit:<5} [{min:.2} .. {max:.2}]")
    }
}

impl Report {
    /// Creates a report of the figures whose names begin with `only`.
    pub fn new(only: &str) -> Self {
        Report { only: only.to_owned(), metrics: BTreeMap::new(), failure: None }
    }

    /// Returns `true` if the figure is requested.
    pub fn wants(&self, name: &str) -> bool {
        name.starts_with(&self.only)
    }

    /// Measures a figure [`REPETITIONS`] times and prints it.
    pub fn measure(&mut self, name: &str, unit: &'static str, mut sample: impl FnMut() -> f64) {
        if !self.wants(name) {
            return;
        }
        sample();
        let samples = (0..REPETITIONS).map(|_| sample()).collect();
        self.add(name, unit, samples);
    }

    /// Adds a figure with its samples and prints it.
    pub fn add(&mut self, name: &str, unit: &'static str, samples: Vec<f64>) {
        let metric = self.note(name, unit, samples);
        print_line(format_args!("{name:<40} {metric}"));
    }

    /// Adds a figure with its samples, without printing it.
    pub(crate) fn note(&mut self, name: &str, unit: &'static str, samples: Vec<f64>) -> &Metric {
        self.metrics.entry(name.to_owned()).insert_entry(Metric::of(samples, unit)).into_mut()
    }

    /// Records a failure. The figures are still written.
    pub fn fail(&mut self, error: Error) {
        self.failure = Some(error);
    }

    /// Returns the outcome of the command that measured these figures.
    ///
    /// **Errors**: the failure recorded by [`Report::fail`].
    pub fn verdict(self) -> Result<(), Error> {
        self.failure.map_or(Ok(()), Err)
    }

    /// Returns the figures measured so far.
    pub fn metrics(&self) -> &BTreeMap<String, Metric> {
        &self.metrics
    }

    /// Writes the figures as JSON, keyed by name.
    ///
    /// **Errors**: those of the file.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.metrics)?;
        std::fs::write(path, text + "\n")
    }
}
