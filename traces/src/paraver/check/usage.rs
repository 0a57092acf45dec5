//! Whether what a trace uses has labels. Each missing label is reported once.

use std::collections::HashSet;

use super::labels::Labels;
use super::report::Log;
use super::rule::Rule;

/// Missing labels remembered: a trace may lack any number of them.
const REMEMBERED: usize = 1_000;

/// The labels of a trace and those found missing.
#[derive(Debug)]
pub(super) struct LabelUsage<'a> {
    labels: &'a Labels,
    missing: HashSet<(Rule, i128, i128)>,
}

impl<'a> LabelUsage<'a> {
    pub(super) fn new(labels: &'a Labels) -> Self {
        Self { labels, missing: HashSet::new() }
    }

    /// Looks up the label of a state.
    pub(super) fn state(&mut self, state: i128, line: u64, log: &mut Log<'_>) {
        if !self.labels.has_state(state) && self.is_new(Rule::UnlabelledState, state, 0) {
            log.add(Rule::UnlabelledState, line, format_args!("state {state} has no label"));
        }
    }

    /// Looks up the labels of an event type and value.
    pub(super) fn event(&mut self, kind: i128, value: i128, line: u64, log: &mut Log<'_>) {
        if !self.labels.has_type(kind) {
            if self.is_new(Rule::UnlabelledType, kind, 0) {
                log.add(Rule::UnlabelledType, line, format_args!("type {kind} has no label"));
            }
        } else if !self.labels.has_value(kind, value)
            && self.is_new(Rule::UnlabelledValue, kind, value)
        {
            let text = format_args!("value {value} of type {kind} has no label");
            log.add(Rule::UnlabelledValue, line, text);
        }
    }

    fn is_new(&mut self, rule: Rule, number: i128, value: i128) -> bool {
        self.missing.len() < REMEMBERED && self.missing.insert((rule, number, value))
    }
}
