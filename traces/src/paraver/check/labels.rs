//! Check of the `.pcf` file: labelled states, event types and values, and lines that Paraver would
//! skip.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::fields::{integer, shown};
use super::lines::Lines;
use super::report::Log;
use super::rule::Rule;
use crate::error::Result;
use crate::paraver::LABEL_LIMIT;

/// Labels of a trace.
#[derive(Debug, Default)]
pub(super) struct Labels {
    states: HashMap<i128, String>,
    types: HashMap<i128, EventType>,
    /// Labels of values, shared by all types of a group.
    value_sets: Vec<HashMap<i128, String>>,
}

#[derive(Debug)]
struct EventType {
    label: String,
    /// Index of the labels of its values, if it has any.
    values: Option<usize>,
}

impl Labels {
    pub(super) fn has_state(&self, state: i128) -> bool {
        self.states.contains_key(&state)
    }

    pub(super) fn has_type(&self, kind: i128) -> bool {
        self.types.contains_key(&kind)
    }

    /// Returns `false` if the type labels values, and neither labels this one nor is the value the
    /// end.
    pub(super) fn has_value(&self, kind: i128, value: i128) -> bool {
        let values = self.values(kind);
        value == 0 || values.is_none_or(|values| values.contains_key(&value))
    }

    /// Returns the states with labels.
    pub(super) fn states(&self) -> impl Iterator<Item = (u32, &str)> {
        let states = self.states.iter();
        states.filter_map(|(state, label)| Some((u32::try_from(*state).ok()?, label.as_str())))
    }

    /// Returns the event types with labels.
    pub(super) fn types(&self) -> impl Iterator<Item = (u32, &str)> {
        let types = self.types.iter();
        types.filter_map(|(kind, of)| Some((u32::try_from(*kind).ok()?, of.label.as_str())))
    }

    /// Returns the event types that label values.
    pub(super) fn types_with_values(&self) -> impl Iterator<Item = u32> {
        let labelled = self.types.iter().filter(|(_, kind)| kind.values.is_some());
        labelled.filter_map(|(kind, _)| u32::try_from(*kind).ok())
    }

    /// Returns the label of a state.
    pub(super) fn state(&self, state: i128) -> Option<&str> {
        self.states.get(&state).map(String::as_str)
    }

    /// Returns the label of an event type.
    pub(super) fn event_type(&self, kind: i128) -> Option<&str> {
        self.types.get(&kind).map(|kind| kind.label.as_str())
    }

    /// Returns the labels of the values of an event type, if it labels any.
    pub(super) fn values(&self, kind: i128) -> Option<&HashMap<i128, String>> {
        self.types.get(&kind)?.values.map(|set| &self.value_sets[set])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// Settings: lines of a key and a value.
    Options,
    States,
    Colours,
    Types,
    Values,
    /// Accepted and unused, or unknown: its lines are not checked.
    Ignored,
}

/// Reads a whole `.pcf` file.
pub(super) fn read(lines: &mut Lines, log: &mut Log<'_>) -> Result<Labels> {
    let mut reader = Reader {
        labels: Labels::default(),
        uncoloured: BTreeMap::new(),
        coloured: HashSet::new(),
        section: Section::Ignored,
        group: vec![],
    };
    while let Some((number, line)) = lines.next(log)? {
        let line = line.trim_ascii();
        if !line.is_empty() && !line.starts_with(b"#") && !reader.open_section(line) {
            reader.entry(line, number, log);
        }
    }
    for (state, line) in &reader.uncoloured {
        log.add(Rule::UncolouredState, *line, format_args!("state {state} has no colour"));
    }
    Ok(reader.labels)
}

struct Reader {
    labels: Labels,
    /// Line of each labelled state without a colour.
    uncoloured: BTreeMap<i128, u64>,
    coloured: HashSet<i128>,
    section: Section,
    /// Types whose values follow.
    group: Vec<i128>,
}

impl Reader {
    /// Returns `true` if `line` is the name of a section.
    fn open_section(&mut self, line: &[u8]) -> bool {
        self.section = match line {
            b"DEFAULT_OPTIONS" | b"DEFAULT_SEMANTIC" => Section::Options,
            b"STATES" => Section::States,
            b"STATES_COLOR" => Section::Colours,
            b"EVENT_TYPE" => {
                self.group.clear();
                Section::Types
            }
            b"VALUES" => {
                let set = self.labels.value_sets.len();
                self.labels.value_sets.push(HashMap::new());
                for kind in &self.group {
                    self.labels.types.entry(*kind).and_modify(|kind| kind.values = Some(set));
                }
                Section::Values
            }
            b"GRADIENT_COLOR" | b"GRADIENT_NAMES" => Section::Ignored,
            _ => return false,
        };
        true
    }

    fn entry(&mut self, line: &[u8], number: u64, log: &mut Log<'_>) {
        let (first, rest) = split_word(line);
        let value = integer(first);
        let may_be_name = rest.is_empty() && value.is_none();
        match (self.section, value) {
            (Section::Values, None) if first == b"PRECISION" => {}
            (Section::Options, _) if !may_be_name => {}
            (Section::Ignored, _) if !may_be_name => {}
            (_, None) if may_be_name => {
                let text = format_args!("`{}` is not the name of a section", shown(line));
                log.add(Rule::UnknownSection, number, text);
                self.section = Section::Ignored;
            }
            (Section::Types, _) => self.event_type(line, number, log),
            (Section::Colours, Some(_)) if !is_colour(rest) => {
                let text = format_args!("`{}` is not a colour: {{red,green,blue}}", shown(rest));
                log.add(Rule::LabelForm, number, text);
            }
            (_, Some(value)) if !rest.is_empty() => {
                if in_label_range(value, number, log) {
                    self.label(value, rest, number, log);
                }
            }
            _ => {
                let text = format_args!("`{}` is not a number with a label", shown(line));
                log.add(Rule::LabelForm, number, text);
            }
        }
    }

    fn label(&mut self, value: i128, label: &[u8], number: u64, log: &mut Log<'_>) {
        let label = String::from_utf8_lossy(label).into_owned();
        let is_new = match self.section {
            Section::States => {
                if !self.coloured.contains(&value) {
                    self.uncoloured.insert(value, number);
                }
                self.labels.states.insert(value, label).is_none()
            }
            Section::Colours => {
                self.uncoloured.remove(&value);
                self.coloured.insert(value);
                true
            }
            Section::Values => {
                let set = self.labels.value_sets.last_mut();
                set.is_none_or(|set| set.insert(value, label).is_none())
            }
            _ => true,
        };
        if !is_new {
            log.add(Rule::LabelTwice, number, format_args!("{value} has a label already"));
        }
    }

    /// Checks `colour type label`.
    fn event_type(&mut self, line: &[u8], number: u64, log: &mut Log<'_>) {
        let (colour, rest) = split_word(line);
        let (kind, label) = split_word(rest);
        match (integer(colour), integer(kind)) {
            (Some(_), Some(kind)) if !label.is_empty() => {
                if in_label_range(kind, number, log) {
                    let label = String::from_utf8_lossy(label).into_owned();
                    let event_type = EventType { label, values: None };
                    if self.labels.types.insert(kind, event_type).is_some() {
                        let text = format_args!("type {kind} has a label already");
                        log.add(Rule::LabelTwice, number, text);
                    }
                    self.group.push(kind);
                }
            }
            (Some(_), None) => {
                let text = format_args!("`{}`: no colour before the event type", shown(line));
                log.add(Rule::MissingColour, number, text);
            }
            _ => {
                let text = format_args!("`{}` is not an event type with a label", shown(line));
                log.add(Rule::LabelForm, number, text);
            }
        }
    }
}

fn in_label_range(value: i128, number: u64, log: &mut Log<'_>) -> bool {
    let fits = value.unsigned_abs() <= u128::from(LABEL_LIMIT);
    if !fits {
        let text = format_args!("{value} cannot have a label: the limit is {LABEL_LIMIT}");
        log.add(Rule::LabelRange, number, text);
    }
    fits
}

fn is_colour(text: &[u8]) -> bool {
    let list = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    list.is_some_and(|list| {
        let mut parts = list.split(|byte| *byte == b',').map(|part| integer(part.trim_ascii()));
        parts.clone().count() == 3 && parts.all(|part| part.is_some_and(|p| (0..256).contains(&p)))
    })
}

/// Returns the first word, and the text after the blanks behind it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}
