//! Benchmarks: what a task, a put and a sync cost, how small a task may be.
//!
//! Each file of [`micro`] asks one question. [`apps`], [`metg`] and [`two_sided`] run peers in turn
//! with ours. [`growth`] fails where costs grow faster than work. [`soak`] measures nothing: it runs
//! random programs for long and checks their results.
//! A [`Report`] prints a metric a line with its spread, under the conditions it was measured in.

pub mod apps;
mod conditions;
mod contest;
mod error;
pub mod growth;
mod line;
pub mod measure;
pub mod memory;
pub mod metg;
pub mod micro;
mod peer;
mod say;
pub mod soak;
pub mod two_sided;

pub use error::Error;
pub use measure::{Metric, Report};
