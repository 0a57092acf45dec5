//! Notes of a worker between the records of its trace.

use std::cell::Cell;

use talpf_traces::LabelId;

use crate::record::Label;

/// Begin of a slice of a task.
#[derive(Clone, Copy, Default)]
pub(crate) struct SliceBegin {
    pub(super) began_ns: u64,
    /// `true` for the first slice of the task.
    pub(super) starts: bool,
}

/// State of the trace that a worker keeps between records.
#[derive(Default)]
pub(super) struct TraceState {
    /// Label of the last slice, with its number in the trace.
    pub(super) label: Cell<Option<(Label, LabelId)>>,
    /// Time at which the polls began that are recorded as one slice.
    pub(super) polls_since_ns: Cell<Option<u64>>,
    /// Smallest number of tasks of the same group that were ready at other workers while the worker was idle.
    pub(super) ready_at_others: Cell<u32>,
    /// Time at which levels were last recorded.
    pub(super) levels_ns: Cell<u64>,
}
