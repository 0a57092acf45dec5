//! Spans of the program that a thread is in.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use talpf_traces::LabelId;
use tracing::Metadata;

/// Spans that a worker is in, and the numbers of names that it has met.
#[derive(Default)]
pub(super) struct WorkerSpans {
    pub(super) open: RefCell<Vec<OpenSpan>>,
    /// Last name of a span, with its number.
    pub(super) last: Cell<Option<(*const Metadata<'static>, LabelId)>>,
    pub(super) names: RefCell<HashMap<*const Metadata<'static>, LabelId>>,
    pub(super) texts: RefCell<HashMap<String, LabelId>>,
}

/// Span that a thread is in.
pub(super) struct OpenSpan {
    pub(super) id: u64,
    pub(super) label: LabelId,
    pub(super) began_ns: u64,
}
