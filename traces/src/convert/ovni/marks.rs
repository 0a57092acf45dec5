//! Values that last, as marks of ovni: those of spans with the number that views for ovni expect, then the
//! states, then the other levels by number of their event type.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::label_text::label_text;
use crate::convert::json_text::JsonText;
use crate::paraver::{EventKind, Names, Reader};

/// Number of marks of ovni.
const MARKS: usize = 100;

/// Mark of a span, which ovni shows with the number of ours.
const SPAN: usize = 0;

/// Mark of the states, whose numbers are 1 higher: 0 is none.
pub(super) const STATE: usize = 1;

/// Marks of a trace.
#[derive(Debug)]
pub(super) struct Marks {
    /// Number of the mark of an event type.
    of_kinds: HashMap<u32, usize>,
    names: Names,
}

impl Marks {
    /// Chooses marks for the event types `kinds` that are levels.
    pub(super) fn new(reader: &Reader, kinds: &HashSet<u32>) -> Self {
        let tasks = [EventKind::TaskId, EventKind::TaskType].map(EventKind::number);
        let is_level = |kind: &u32| kinds.contains(kind) && !tasks.contains(kind);
        let mut levels: Vec<_> = reader.levels().into_iter().filter(is_level).collect();
        levels.sort_unstable();
        let span = EventKind::Span.number();
        let others = levels.iter().copied().filter(|kind| *kind != span).zip(STATE + 1..MARKS);
        let span = levels.contains(&span).then_some((span, SPAN));
        Self { of_kinds: others.chain(span).collect(), names: reader.names() }
    }

    /// Number of marks that a thread may have.
    pub(super) fn count(&self) -> usize {
        STATE + 1 + self.of_kinds.len()
    }

    /// Returns the mark of an event type.
    pub(super) fn of(&self, kind: u32) -> Option<usize> {
        self.of_kinds.get(&kind).copied()
    }

    /// Returns titles and labels of all marks as JSON.
    pub(super) fn json(&self) -> String {
        let states = self.names.states().map(|(state, label)| (i64::from(state) + 1, label));
        let mut text = format!("{{{}", mark(STATE, "State", states));
        let mut kinds: Vec<_> = self.of_kinds.iter().collect();
        kinds.sort_unstable_by_key(|(_, number)| **number);
        for (kind, number) in kinds {
            let title = self.names.type_label(*kind);
            let values = self.names.labelled_values(*kind);
            text += ", ";
            text += &mark(*number, &title, values.filter(|(value, _)| *value != 0));
        }
        text + "}"
    }
}

fn mark<'a>(number: usize, title: &str, values: impl Iterator<Item = (i64, &'a str)>) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    let mut text = format!(
        "\"{number}\": {{\"title\": {}, \"chan_type\": \"stack\", \"labels\": {{",
        JsonText(&label_text(title))
    );
    for (index, (value, name)) in values.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}\"{value}\": {}", JsonText(&label_text(name)));
    }
    text + "}}"
}
