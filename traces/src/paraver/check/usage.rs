//! Check that everything in a trace has a label. Each missing label is reported once.

use std::collections::HashSet;

use super::labels::Labels;
use super::report::Log;
use super::rule::Rule;

/// Number of missing labels that are remembered, since a trace may lack any number of them.
const REMEMBERED: usize = 1_000;

/// Labels of a trace, and labels found missing.
#[derive(Debug)]
pub(super) struct LabelUsage<'a> {
    labels: &'a Labels,
    missing: HashSet<(Rule, i128, i128)>,
}

impl<'a> LabelUsage<'a> {
    pub(super) fn new(labels: &'a Labels) -> Self {
        Self { labels, missing: HashSet::new() }
    }

    /// Checks that a state has a label.
    pub(super) fn state(&mut self, state: i128, line: u64, log: &mut Log<'_>) {
        if !self.labels.has_state(state) && self.is_new(Rule::UnlabelledState, state, 0) {
            log.add(Rule::UnlabelledState, line, format_args!("state {state} has no label"));
        }
    }

    /// Checks that an event type and its value have labels.
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
