//! Labels of several pieces of one run.
//!
//! Processes number the names of tasks as they meet them, so that one value has other labels in other
//! traces. The new trace has the labels of the first piece and those that the others add; a label has
//! one value there, and counters of one name one type.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::paraver::FIRST_COUNTER;
use crate::paraver::check::beside;

/// Labels of the new trace, and the types and values of each piece that are others there.
#[derive(Debug, Default)]
pub(super) struct MergedLabels {
    /// Text of the labels; `None` if those of the first piece are those of all.
    text: Option<String>,
    changes: Vec<Changes>,
}

/// Types and values of a piece that are others in the new trace.
#[derive(Debug, Default)]
struct Changes {
    types: HashMap<u32, u32>,
    values: HashMap<(u32, i64), i64>,
}

impl MergedLabels {
    /// Reads the labels of the traces at `prvs`, as far as they have any.
    pub(super) fn of(prvs: &[&Path]) -> Result<Self> {
        let texts = prvs.iter().map(|prv| read(prv)).collect::<Result<Vec<_>>>()?;
        let Some((first, others)) = texts.split_first() else { return Ok(Self::default()) };
        if others.iter().all(|text| text.is_none() || text == first) {
            return Ok(Self::default());
        }
        let mut all = Labels::of(first.as_deref().unwrap_or_default());
        let mut changes = vec![Changes::default()];
        for text in others {
            let own = text.as_deref().map(Labels::of).unwrap_or_default();
            if all.head.is_empty() {
                all.head.clone_from(&own.head);
            }
            changes.push(all.add(own));
        }
        Ok(Self { text: Some(all.text()), changes })
    }

    /// Text of the labels; `None` if those of the first piece are those of all.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Changes the types and values of an event of a piece to those of the new trace.
    pub(super) fn apply(&self, piece: usize, values: &mut [(u32, i64)]) {
        let Some(Changes { types, values: changed }) = self.changes.get(piece) else { return };
        if types.is_empty() && changed.is_empty() {
            return;
        }
        for (kind, value) in values {
            *value = changed.get(&(*kind, *value)).copied().unwrap_or(*value);
            *kind = types.get(kind).copied().unwrap_or(*kind);
        }
    }
}

/// Reads the labels beside a trace; `None` if it has none.
fn read(prv: &Path) -> Result<Option<String>> {
    let path = beside(prv, "pcf");
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path, source }),
    }
}

/// Labels of a trace: what is before those of events, and these.
#[derive(Debug, Default)]
struct Labels {
    head: String,
    groups: Vec<Group>,
}

/// Event types with the same values.
#[derive(Debug, Default)]
struct Group {
    /// Colour, type and label of each.
    types: Vec<(String, u32, String)>,
    values: BTreeMap<i64, String>,
}

impl Labels {
    fn of(text: &str) -> Self {
        let mut labels = Self::default();
        let (mut is_in_group, mut has_values) = (false, false);
        for line in text.lines() {
            match line.trim() {
                "EVENT_TYPE" => {
                    (is_in_group, has_values) = (true, false);
                    labels.groups.push(Group::default());
                    continue;
                }
                "VALUES" if is_in_group => {
                    has_values = true;
                    continue;
                }
                // The name of another section.
                name if name.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                    is_in_group &= name.starts_with("PRECISION");
                }
                _ => {}
            }
            let group = labels.groups.last_mut().filter(|_| is_in_group);
            match group {
                None => labels.head.extend([line, "\n"]),
                Some(group) if has_values => group.values.extend(value_of(line)),
                Some(group) => group.types.extend(type_of(line)),
            }
        }
        labels
    }

    /// Adds the labels of a piece. Returns what changes there.
    fn add(&mut self, own: Self) -> Changes {
        let mut changes = Changes::default();
        for group in own.groups {
            let Some((_, kind, label)) = group.types.first() else { continue };
            let (kind, is_counter) = (*kind, *kind >= FIRST_COUNTER);
            let like = |(_, other, name): &(String, u32, String)| match is_counter {
                true => *other >= FIRST_COUNTER && name == label,
                false => *other == kind,
            };
            let found = self.groups.iter_mut().find_map(|known| {
                let number = known.types.iter().find(|of| like(of))?.1;
                Some((known, number))
            });
            let Some((known, number)) = found else {
                let number = if is_counter { self.free_type(kind) } else { kind };
                if number != kind {
                    changes.types.insert(kind, number);
                }
                let mut group = group;
                group.types[0].1 = number;
                self.groups.push(group);
                continue;
            };
            if number != kind {
                changes.types.insert(kind, number);
            }
            let kinds: Vec<u32> = group.types.iter().map(|(_, kind, _)| *kind).collect();
            for (value, new) in known.add(group.values) {
                changes.values.extend(kinds.iter().map(|kind| ((*kind, value), new)));
            }
        }
        changes
    }

    /// Returns a type for a counter: `kind`, unless another has it.
    fn free_type(&self, kind: u32) -> u32 {
        let types = || self.groups.iter().flat_map(|group| &group.types).map(|(_, kind, _)| *kind);
        let last = types().max().unwrap_or(0);
        if types().any(|other| other == kind) { last.saturating_add(1) } else { kind }
    }

    fn text(&self) -> String {
        let mut text = self.head.trim_end().to_owned();
        text.push('\n');
        for Group { types, values } in &self.groups {
            text.push_str("\nEVENT_TYPE\n");
            for (colour, kind, label) in types {
                text.push_str(&format!("{colour:<4} {kind:<10} {label}\n"));
            }
            if !values.is_empty() {
                text.push_str("VALUES\n");
            }
            for (value, label) in values {
                text.push_str(&format!("{value:<4} {label}\n"));
            }
        }
        text
    }
}

impl Group {
    /// Adds labelled values. Returns those that have other numbers here, with these.
    fn add(&mut self, values: BTreeMap<i64, String>) -> Vec<(i64, i64)> {
        let mut by_label: HashMap<String, i64> = HashMap::new();
        for (value, label) in &self.values {
            by_label.entry(label.clone()).or_insert(*value);
        }
        let mut changed = Vec::new();
        for (value, label) in values {
            if self.values.get(&value) == Some(&label) {
                continue;
            }
            let new = match by_label.get(&label) {
                Some(new) => *new,
                None => {
                    let last = self.values.last_key_value().map_or(0, |(last, _)| *last);
                    let is_free = !self.values.contains_key(&value);
                    let new = if is_free { value } else { last.saturating_add(1) };
                    self.values.insert(new, label.clone());
                    by_label.insert(label, new);
                    new
                }
            };
            if new != value {
                changed.push((value, new));
            }
        }
        changed
    }
}

/// Returns the number and the label of a line of values.
fn value_of(line: &str) -> Option<(i64, String)> {
    let (value, label) = line.trim().split_once(char::is_whitespace)?;
    Some((value.parse().ok()?, label.trim_start().to_owned()))
}

/// Returns the colour, the type and the label of a line of event types.
fn type_of(line: &str) -> Option<(String, u32, String)> {
    let (colour, rest) = line.trim().split_once(char::is_whitespace)?;
    let (kind, label) = rest.trim_start().split_once(char::is_whitespace)?;
    Some((colour.to_owned(), kind.parse().ok()?, label.trim_start().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "STATES\n0    Idle\n";

    fn labels(text: &str) -> Labels {
        Labels::of(&format!("{HEAD}{text}"))
    }

    #[test]
    fn a_label_has_one_value() {
        let mut all = labels(
            "\nEVENT_TYPE\n0    11         Task type\nVALUES\n0    (none)\n1    main\n2    put\n",
        );
        let own = labels(
            "\nEVENT_TYPE\n0    11         Task type\nVALUES\n0    (none)\n1    put\n2    get\n3    main\n",
        );
        let changes = all.add(own);
        let expected = [((11, 1), 2), ((11, 2), 3), ((11, 3), 1)];
        assert_eq!(changes.values, HashMap::from(expected));
        let text = all.text();
        assert!(text.starts_with(HEAD), "{text}");
        assert!(text.ends_with("VALUES\n0    (none)\n1    main\n2    put\n3    get\n"), "{text}");
    }

    #[test]
    fn counters_of_one_name_have_one_type() {
        let counter = |number: u32, name: &str| {
            format!("\nEVENT_TYPE\n0    {}   {name}\n", FIRST_COUNTER + number)
        };
        let mut all = labels(&counter(4, "energy"));
        let own = labels(&[counter(4, "error"), counter(5, "energy")].concat());
        let changes = all.add(own);
        let expected =
            [(FIRST_COUNTER + 4, FIRST_COUNTER + 5), (FIRST_COUNTER + 5, FIRST_COUNTER + 4)];
        assert_eq!(changes.types, HashMap::from(expected));
    }

    #[test]
    fn sections_of_no_event_stay_in_front() {
        let text =
            "\nEVENT_TYPE\n0    11 Task type\nVALUES\n1    main\n\nGRADIENT_COLOR\n0    {0,0,1}\n";
        assert_eq!(
            labels(text).text(),
            "STATES\n0    Idle\n\nGRADIENT_COLOR\n0    {0,0,1}\n\nEVENT_TYPE\n0    11         Task type\nVALUES\n1    main\n"
        );
    }
}
