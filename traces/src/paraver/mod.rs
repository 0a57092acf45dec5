//! Paraver traces: three text files of one stem, `.prv` (records), `.pcf`
//! (labels) and `.row` (names of rows).
//!
//! This module alone translates our words to Paraver's: a rank is a Paraver *task*, a worker that
//! runs tasks of that rank is one of its *threads*, and every number is one higher, since Paraver
//! counts from one. `write` creates traces, and `check` rejects those that Paraver would misread;
//! they share event numbers and limits, and no code, so that neither hides a mistake of the other.

mod check;
mod clock_comment;
mod edit;
mod event_kind;
mod inputs;
mod partial;
mod write;

pub use check::{
    Communication, Finding, Reader, Record, Report, Rule, Severity, TraceCounts, check, check_file,
    check_folder, check_view,
};
pub(crate) use check::{Names, argument};
pub use edit::{cut, merge};
pub use event_kind::EventKind;
use event_kind::FIRST_COUNTER;
pub(crate) use inputs::refuse_inputs;
pub(crate) use partial::{Partial, temporary};
pub(crate) use write::{Recorded, write_records};
pub use write::{TraceFiles, TraceInfo};

/// Largest number of threads, tasks or cpus: Paraver numbers them with 16 bits.
const OBJECT_LIMIT: u64 = 65_535;

/// Largest exact time or value: Paraver computes both as doubles.
const EXACT_LIMIT: u64 = 1 << 53;

/// Texts of comments that say what a trace lacks.
const LOSSES: [&str; 2] = ["records dropped", "streams were still open"];

/// Words before the machine in a comment that says whose times those of the trace are.
const SIMULATED: &str = "simulated: ";

/// Largest event type, event value or state that can have a label.
const LABEL_LIMIT: u64 = i32::MAX as u64;
