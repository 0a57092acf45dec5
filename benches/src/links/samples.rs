//! Samples of all figures of the rails.

use crate::measure::Report;

/// Samples by figure, in the order in which the figures were measured first.
#[derive(Default)]
pub(super) struct Samples(Vec<(String, &'static str, Vec<f64>)>);

impl Samples {
    /// Adds a sample of a figure, whose name follows that of the benchmark.
    pub(super) fn add(&mut self, name: String, unit: &'static str, value: f64) {
        match self.0.iter_mut().find(|(other, ..)| *other == name) {
            Some((.., values)) => values.push(value),
            None => self.0.push((name, unit, vec![value])),
        }
    }

    /// Prints all figures.
    pub(super) fn report(self) -> Report {
        let mut report = Report::new("");
        for (name, unit, values) in self.0 {
            report.add(&format!("links.{name}"), unit, values);
        }
        report
    }
}
