//! Repeating a measurement and reporting it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::say::say;

/// One figure, measured several times.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// The figure to quote.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// What it is in.
    pub unit: &'static str,
}

/// Figures by name.
#[derive(Debug, Default)]
pub struct Report {
    only: String,
    metrics: BTreeMap<String, Metric>,
    failure: Option<Error>,
}

/// How often a figure is measured, after one measurement that does not count.
pub const REPETITIONS: usize = 11;

impl Metric {
    fn of(mut samples: Vec<f64>, unit: &'static str) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        Metric { median: at(samples.len() / 2), min: at(0), max: at(samples.len() - 1), unit }
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
    /// A report of the figures whose names begin with `only`.
    pub fn new(only: &str) -> Self {
        Report { only: only.to_owned(), metrics: BTreeMap::new(), failure: None }
    }

    /// Whether a figure is asked for.
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
        let metric = Metric::of(samples, unit);
        say(format_args!("{name:<40} {metric}"));
        self.metrics.insert(name.to_owned(), metric);
    }

    /// Makes a failure of the figures. They are written all the same.
    pub fn fail(&mut self, error: Error) {
        self.failure = Some(error);
    }

    /// The end of a command that made these figures.
    ///
    /// **Errors**: the failure that the figures were made.
    pub fn verdict(self) -> Result<(), Error> {
        self.failure.map_or(Ok(()), Err)
    }

    /// The figures so far.
    pub fn metrics(&self) -> &BTreeMap<String, Metric> {
        &self.metrics
    }

    /// Writes the figures as JSON, by name.
    ///
    /// **Errors**: those of the file.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.metrics)?;
        std::fs::write(path, text + "\n")
    }
}
