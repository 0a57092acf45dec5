//! Distributions of durations, in memory that does not grow with their number.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Durations as they are collected.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    histogram: Histogram<u64>,
    total_ns: u64,
}

/// Number, sum and quantiles of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of durations.
    pub count: u64,
    /// Sum of all; for the costs of syncs the time in which there is one, at most once for each rank.
    pub total_ns: u64,
    /// Duration that a quarter of them do not exceed, within 1 %.
    pub quartile1_ns: u64,
    /// Duration that half of them do not exceed, within 1 %.
    pub median_ns: u64,
    /// Duration that three quarters of them do not exceed, within 1 %.
    pub quartile3_ns: u64,
    /// Duration that 99 of 100 do not exceed, within 1 %.
    pub p99_ns: u64,
}

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new(2).expect("two digits are within the limits of a histogram");
        Self { histogram, total_ns: 0 }
    }
}

impl Durations {
    pub(super) fn add(&mut self, duration_ns: u64) {
        // Grows up to any number that it can hold, and counts those beyond as the largest one.
        if self.histogram.record(duration_ns).is_err() {
            self.histogram.saturating_record(duration_ns);
        }
        self.total_ns = self.total_ns.saturating_add(duration_ns);
    }

    pub(super) fn distribution(&self) -> Distribution {
        let quantile = |part| match self.histogram.len() {
            0 => 0,
            _ => self.histogram.value_at_quantile(part),
        };
        Distribution {
            count: self.histogram.len(),
            total_ns: self.total_ns,
            quartile1_ns: quantile(0.25),
            median_ns: quantile(0.5),
            quartile3_ns: quantile(0.75),
            p99_ns: quantile(0.99),
        }
    }
}
