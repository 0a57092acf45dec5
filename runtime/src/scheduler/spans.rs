//! Spans and events of the program, on the worker that they come on or on a thread outside.
//!
//! A span is recorded where it is left, with the time at which it was entered. Each worker, and each
//! thread outside, keeps the spans that it is in, and a worker the trace's numbers of their names.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use talpf_traces::{Event, LabelId, Recorder};
use tracing::Metadata;

use super::current::with_worker;
use super::shared::Shared;
use super::worker::Worker;
use super::worker_spans::OpenSpan;

/// Largest number of texts of events that get a name of their own on a worker.
const MOST_TEXTS: usize = 1 << 12;

/// Largest length of such a text.
const MOST_CHARS: usize = 100;

/// Largest number of open spans; more are spans that were left on other threads.
const MOST_OPEN: usize = 1 << 10;

/// Event of the program.
#[derive(Debug)]
pub(crate) struct Mark {
    /// Name, if the event has none beside its place in the program.
    pub(crate) text: Option<String>,
    /// Number that is drawn.
    pub(crate) value: Option<i64>,
}

/// Runtimes with a recorder, the last one last.
static TRACED: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

thread_local! {
    /// Spans that a thread outside is in, each with its runtime.
    static OUTSIDE: RefCell<Vec<(OpenSpan, Weak<Shared>)>> = const { RefCell::new(Vec::new()) };
}

/// Makes a runtime that has a recorder the one of threads outside.
pub(crate) fn add_traced(shared: &Arc<Shared>) {
    if shared.config.recorder.is_some() {
        let mut traced = TRACED.lock();
        traced.retain(|runtime| runtime.strong_count() > 0);
        traced.push(Arc::downgrade(shared));
    }
}

/// Returns the last traced runtime that has not ended, with its recorder.
fn last_traced() -> Option<Arc<Shared>> {
    let traced = TRACED.lock();
    traced.iter().rev().find_map(|runtime| runtime.upgrade().filter(|shared| !shared.stops()))
}

/// Notes that the thread enters a span. Returns `false` if nothing is recorded here.
pub(crate) fn enter(id: u64, metadata: &'static Metadata<'static>) -> bool {
    let on_worker = with_worker(|worker| {
        let is_traced = worker.is_traced;
        if is_traced {
            let span =
                OpenSpan { id, label: worker.span_label(metadata), began_ns: worker.now_ns() };
            push(&mut worker.spans.open.borrow_mut(), span);
        }
        is_traced
    });
    on_worker.unwrap_or_else(|| enter_outside(id, metadata).is_some())
}

fn enter_outside(id: u64, metadata: &'static Metadata<'static>) -> Option<()> {
    let shared = last_traced()?;
    let label = shared.config.recorder.as_ref()?.label(metadata.name());
    let span = OpenSpan { id, label, began_ns: shared.clock.now_ns() };
    outside(|open| push(open, (span, Arc::downgrade(&shared))))
}

/// Visits the spans of a thread outside, unless the thread ends.
fn outside<R>(visit: impl FnOnce(&mut Vec<(OpenSpan, Weak<Shared>)>) -> R) -> Option<R> {
    OUTSIDE.try_with(|open| visit(&mut open.borrow_mut())).ok()
}

/// Notes that the thread leaves a span, and records it if it was entered here.
pub(crate) fn exit(id: u64) {
    let on_worker = with_worker(|worker| {
        let left = {
            let mut open = worker.spans.open.borrow_mut();
            open.iter().rposition(|span| span.id == id).map(|index| open.remove(index))
        };
        if let Some(OpenSpan { label, began_ns, .. }) = left {
            worker.trace(|_| Event::SpanSlice { label, began_ns });
        }
    });
    if on_worker.is_none() {
        exit_outside(id);
    }
}

fn exit_outside(id: u64) -> Option<()> {
    let (span, shared) = outside(|open| {
        let index = open.iter().rposition(|(span, _)| span.id == id)?;
        Some(open.remove(index))
    })??;
    let OpenSpan { label, began_ns, .. } = span;
    shared.upgrade()?.trace_outside(|_| Event::SpanSlice { label, began_ns });
    Some(())
}

/// Records an event. Returns `false` if nothing is recorded here.
pub(crate) fn mark(metadata: &'static Metadata<'static>, mark: Mark) -> bool {
    let on_worker = with_worker(|worker| {
        if worker.is_traced {
            let label = worker.mark_label(metadata, mark.text.as_deref());
            worker.trace(|_| event(label, mark.value));
        }
        worker.is_traced
    });
    on_worker.unwrap_or_else(|| mark_outside(metadata, &mark).is_some())
}

fn mark_outside(metadata: &'static Metadata<'static>, mark: &Mark) -> Option<()> {
    let shared = last_traced()?;
    let name = mark.text.as_deref().map_or(metadata.name(), shortened);
    let label = shared.config.recorder.as_ref()?.label(name);
    shared.trace_outside(|_| event(label, mark.value));
    Some(())
}

fn event(label: LabelId, value: Option<i64>) -> Event {
    value.map_or(Event::Mark { label }, |value| Event::Counter { label, value })
}

/// Adds a span to those that are open.
fn push<T>(open: &mut Vec<T>, span: T) {
    if open.len() == MOST_OPEN {
        open.remove(0);
    }
    open.push(span);
}

/// Returns the begin of a text.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(MOST_CHARS).map_or(text, |(end, _)| &text[..end])
}

impl Worker {
    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    fn recorder_label(&self, name: &str) -> LabelId {
        let recorder: Option<&Recorder> = self.shared.config.recorder.as_ref();
        recorder.map_or(LabelId::UNNAMED, |recorder| recorder.label(name))
    }

    /// Returns the trace's number of the name of a call site.
    fn span_label(&self, metadata: &'static Metadata<'static>) -> LabelId {
        let site = ptr::from_ref(metadata);
        if let Some((_, label)) = self.spans.last.get().filter(|(last, _)| *last == site) {
            return label;
        }
        let mut names = self.spans.names.borrow_mut();
        let label = *names.entry(site).or_insert_with(|| self.recorder_label(metadata.name()));
        self.spans.last.set(Some((site, label)));
        label
    }

    /// Returns the trace's number of the text of an event, or of the name of its call site.
    fn mark_label(&self, metadata: &'static Metadata<'static>, text: Option<&str>) -> LabelId {
        let Some(text) = text.map(shortened) else { return self.span_label(metadata) };
        let mut texts = self.spans.texts.borrow_mut();
        if let Some(label) = texts.get(text) {
            return *label;
        }
        if texts.len() == MOST_TEXTS {
            return self.span_label(metadata);
        }
        let label = self.recorder_label(text);
        texts.insert(text.to_owned(), label);
        label
    }
}
