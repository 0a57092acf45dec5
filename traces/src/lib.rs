//! Execution traces of a task runtime that communicates.
//!
//! A [`Recorder`] gives each worker a [`Stream`]; the worker stores an
//! [`Event`] with its time for a few nanoseconds. After the run,
//! [`Recorder::write_paraver`] writes what was recorded as a Paraver trace,
//! and [`paraver::check`] refuses a trace, ours or another's, that Paraver
//! would misread. Tracing is off where there is no recorder: a runtime holds
//! an `Option<Stream>`.
//!
//! The crate knows ranks, tasks, lanes and messages as numbers only, reads no
//! clock and prints nothing.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod event;
mod label;
pub mod paraver;
mod recorder;
mod state;
mod stream;
mod sync_mode;

pub use error::{Error, Result};
pub use event::{Event, ValueKind, WaitNs};
pub use label::LabelId;
pub use paraver::{TraceFiles, TraceInfo};
pub use recorder::Recorder;
pub use state::State;
pub use stream::Stream;
pub use sync_mode::{SyncArrivals, SyncMode, SyncModifier};
