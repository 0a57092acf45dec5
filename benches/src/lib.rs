//! Benchmarks: the cost of a task, a put and a sync, and the smallest useful task.
//!
//! Each file of [`micro`] answers one question. [`apps`], [`metg`] and [`two_sided`] run peers
//! alternately with our runtime. [`ablation`] runs programs without one policy of the scheduler
//! after another. [`growth`] fails where costs grow faster than work. [`superstep`] counts the
//! instructions of each part of a superstep. [`soak`]
//! measures nothing: it runs random programs for a long time and checks their results. A [`Report`]
//! prints one metric per line with its spread, after the conditions of the measurement.

pub mod ablation;
pub mod apps;
mod callgrind;
mod conditions;
mod contest;
mod core_to_core;
mod error;
pub mod growth;
pub mod links;
pub mod measure;
pub mod memory;
pub mod metg;
pub mod micro;
mod peer;
mod print_line;
pub mod soak;
pub mod superstep;
pub mod two_sided;

pub use error::Error;
pub use measure::{Metric, Report};
