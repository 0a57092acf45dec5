//! Execution traces of a task runtime that communicates.
//!
//! A [`Recorder`] gives each worker a [`Stream`]; the worker stores an [`Event`] with its time in a
//! few nanoseconds. After the run, [`Recorder::write_paraver`] writes the records as a Paraver
//! trace, and [`paraver::check`] rejects a trace, ours or another's, that Paraver would misread.
//! Without a recorder tracing is off: a runtime holds an `Option<Stream>`.
//!
//! ```
//! use talpf_traces::{Event, Recorder, TraceInfo, paraver};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let recorder = Recorder::default();
//! let label = recorder.label("stencil");
//! let mut stream = recorder.stream(0); // One for each worker, on its thread.
//! stream.record(950, Event::TaskSlice { starts: true, rank: 0, task: 1, label, began_ns: 120 });
//! drop(stream);
//!
//! let info = TraceInfo { ranks: 1, workers: 1, end_ns: 1_000, ..TraceInfo::default() };
//! let files = recorder.write_paraver(folder, "run", &info)?;
//! let report = paraver::check(&files.prv)?;
//! assert!(report.is_clean(), "{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Summary`] says where the time of a trace went, [`render()`] draws it, an [`HtmlReport`] is a
//! page with both, a [`Diff`] compares two, and [`convert()`] writes it for other programs. All read
//! the files of any Paraver trace by a [`Reader`](paraver::Reader).
//!
//! Ranks, tasks, lanes and messages are plain numbers in this crate, which reads no clock and
//! prints nothing. The contents of a trace are described in its `README.md`.

mod chunk;
mod chunk_pool;
mod convert;
mod counted;
mod diff;
mod error;
mod event;
mod extent;
mod html_report;
mod idle_cause;
mod label;
mod message_kind;
pub mod paraver;
mod processes;
mod recorder;
mod render;
mod spill;
mod state;
mod stream;
mod summary;
mod sync_mode;
mod table;

pub use convert::{Conversion, OvniStreams, convert, convert_to_csv, convert_to_ovni};
pub use counted::counted;
pub use diff::{Change, Diff};
pub use error::{Error, Result};
pub use event::{Event, ValueKind, WaitNs};
pub use extent::{Extent, Keep, Limits};
pub use html_report::HtmlReport;
pub use idle_cause::IdleCause;
pub use label::LabelId;
pub use message_kind::MessageKind;
pub use paraver::{TraceFiles, TraceInfo};
pub use processes::{ClockReading, RunProcess, RunProcesses, stem_of_process};
pub use recorder::Recorder;
pub use render::{Format, Picture, RenderOptions, Rows, View, render};
pub use spill::{Recovered, recover};
pub use state::State;
pub use stream::Stream;
pub use summary::{
    CriticalPath, Distribution, Efficiency, MessageSummary, PairSummary, PathShare, RankSummary,
    Summary, TaskSummary,
};
pub use sync_mode::{SyncArrivals, SyncMode};
