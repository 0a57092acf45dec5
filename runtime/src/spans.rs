//! Spans and events of the program in the trace: a layer of `tracing_subscriber`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::Id;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::scheduler::spans::{self, Mark};

/// Name of the field of an event that is drawn as a number.
const VALUE: &str = "value";

/// Begin of the names that `tracing` gives to events without one.
const UNNAMED: &str = "event ";

/// Layer that puts the spans and events of a program into the trace of its run.
///
/// A span is shown on the row of the worker that is in it, with its name, while it is entered: one that
/// a task is instrumented with is left where the task is suspended. A task that runs inside it hides it.
/// An event is a mark with its name, or its text if it has none; one with a number as field `value`
/// is a level of that name instead, rounded to an integer. What threads outside the workers do is on the
/// row of the last runtime that was started with a recorder.
///
/// Filters are those of the program, such as `SpanLayer::new().with_filter(EnvFilter::from_default_env())`.
///
/// ```
/// use talpf_runtime::{Config, Runtime, SpanLayer};
/// use talpf_traces::Recorder;
/// use tracing_subscriber::prelude::*;
///
/// let recorder = Recorder::default();
/// let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
/// let runtime = Runtime::new(config)?;
/// let subscriber = tracing_subscriber::registry().with(SpanLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     tracing::info_span!("set up").in_scope(|| tracing::info!(name: "size", value = 100));
/// });
/// runtime.shut_down()?;
/// assert!(!recorder.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Cost**: some tens of nanoseconds for each time that a span is entered and left.
#[derive(Clone, Debug, Default)]
pub struct SpanLayer {
    left_out: Arc<AtomicU64>,
}

impl SpanLayer {
    /// Creates a layer. Clones count together what they leave out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of spans and events that came where no run was traced.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    fn count(&self, is_recorded: bool) {
        if !is_recorded {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(metadata) = context.metadata(id) {
            self.count(spans::enter(id.into_u64(), metadata));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        spans::exit(id.into_u64());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields =
            Fields { wants_text: metadata.name().starts_with(UNNAMED), ..Fields::default() };
        event.record(&mut fields);
        let Fields { value, text, .. } = fields;
        self.count(spans::mark(metadata, Mark { text, value }));
    }
}

/// Fields of an event that the trace shows.
#[derive(Default)]
struct Fields {
    value: Option<i64>,
    wants_text: bool,
    text: Option<String>,
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == VALUE {
            self.value = Some(value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // Saturates.
        self.record_i64(field, value.round() as i64);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.wants_text && field.name() == "message" {
            self.text = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.wants_text && field.name() == "message" {
            self.text = Some(format!("{value:?}"));
        }
    }
}
