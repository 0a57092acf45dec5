//! Names of what the numbers of a trace stand for.

use std::borrow::Cow;
use std::sync::Arc;

use super::labels::Labels;

/// Labels of a trace, which its reader and the takers of its records share.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    labels: Arc<Labels>,
}

impl Names {
    pub(super) fn new(labels: Labels) -> Self {
        Self { labels: Arc::new(labels) }
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the label of a state; its number if it has none.
    pub(crate) fn state_label(&self, state: u32) -> Cow<'_, str> {
        self.labels
            .state(state.into())
            .map_or_else(|| format!("state {state}").into(), Cow::Borrowed)
    }

    /// Returns the label of an event type; its number if it has none.
    pub(crate) fn type_label(&self, kind: u32) -> Cow<'_, str> {
        self.labels
            .event_type(kind.into())
            .map_or_else(|| format!("type {kind}").into(), Cow::Borrowed)
    }

    /// Returns the label of a value of an event type; the number if it has none.
    pub(crate) fn value_label(&self, kind: u32, value: i64) -> Cow<'_, str> {
        let label = self.labels.values(kind.into()).and_then(|values| values.get(&value.into()));
        label.map_or_else(|| value.to_string().into(), |label| Cow::Borrowed(label.as_str()))
    }

    /// Returns the states that have labels, in no order.
    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, &str)> {
        self.labels.states()
    }

    /// Returns the event types that have labels, in no order.
    pub(crate) fn event_types(&self) -> impl Iterator<Item = (u32, &str)> {
        self.labels.types()
    }

    /// Returns the values of an event type that have labels, in no order.
    pub(crate) fn labelled_values(&self, kind: u32) -> impl Iterator<Item = (i64, &str)> {
        let values = self.labels.values(kind.into()).into_iter().flatten();
        values.filter_map(|(value, label)| Some((i64::try_from(*value).ok()?, label.as_str())))
    }

    /// Returns `true` if values of an event type have labels: they name something, and are no amounts.
    pub(crate) fn has_labelled_values(&self, kind: u32) -> bool {
        self.labels.values(kind.into()).is_some()
    }
}
