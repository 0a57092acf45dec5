//! Benchmarks: what a task, a put and a sync cost.
//!
//! Each file of [`micro`] asks one question. A [`Report`] prints a metric a line with its spread,
//! under the conditions it was measured in.

pub mod measure;
pub mod micro;

pub use measure::{Metric, Report};
