//! Contents of a trace, nanosecond by nanosecond.

use std::collections::BTreeMap;

use talpf_traces::paraver::EventKind;

use super::program::Run;

/// Rank and worker.
pub(super) type Row = (u32, u32);

/// Contents of a trace.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    /// States of each row.
    pub(super) states: BTreeMap<Row, Vec<u32>>,
    /// Levels of each type and row, 0 at first, without those that are always 0.
    pub(super) levels: BTreeMap<(u32, Row), Vec<i64>>,
    /// Events that belong to their moment: type, row, time and value.
    pub(super) moments: Vec<(u32, Row, u64, i64)>,
    /// Lines of messages.
    pub(super) messages: Vec<String>,
}

impl Contents {
    /// Sorts what has no order, and leaves out levels that are always 0.
    pub(super) fn in_order(mut self) -> Self {
        self.levels.retain(|_, levels| levels.iter().any(|level| *level != 0));
        self.moments.sort();
        self.messages.sort();
        self
    }

    /// Adds an event that belongs to its moment.
    pub(super) fn add(&mut self, kind: EventKind, row: Row, time_ns: u64, value: i64) {
        self.moments.push((kind.number(), row, time_ns, value));
    }

    /// Sets a level from a time on.
    pub(super) fn set(&mut self, kind: u32, row: Row, time_ns: u64, end_ns: u64, value: i64) {
        let levels = self.levels.entry((kind, row)).or_insert_with(|| vec![0; end_ns as usize + 1]);
        levels[time_ns as usize..].fill(value);
    }
}

/// Returns the contents of a trace.
///
/// **Panics** if rows have gaps, or if an event has a cpu though its row does not show the worker, which is on
/// that of the `owners` at each time, or the reverse.
pub(super) fn shown(prv: &str, run: &Run, owners: &[Vec<u32>]) -> Contents {
    let mut contents = Contents::default();
    let is_level = |number| EventKind::ALL.iter().any(|k| k.number() == number && k.is_level());
    for line in prv.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let number = |index: usize| fields[index].parse::<u64>().expect("a number");
        if !matches!(fields[0], "1" | "2" | "3") {
            continue;
        }
        let row = (number(3) as u32 - 1, number(4) as u32 - 1);
        match fields[0] {
            "1" => {
                assert_eq!(number(1), u64::from(row.1) + 1, "{line}");
                let states = contents.states.entry(row).or_default();
                assert_eq!(states.len() as u64, number(5), "{line} leaves a gap");
                states.resize(number(6) as usize, number(7) as u32);
            }
            "2" => {
                let is_shown = owners[row.1 as usize][number(5) as usize] == row.0;
                assert_eq!(number(1), if is_shown { number(4) } else { 0 }, "{line}");
                for pair in (6..fields.len()).step_by(2) {
                    let kind = number(pair) as u32;
                    let value = fields[pair + 1].parse().expect("a value");
                    if is_level(kind) {
                        contents.set(kind, row, number(5), run.end_ns, value);
                    } else {
                        contents.moments.push((kind, row, number(5), value));
                    }
                }
            }
            _ => contents.messages.push(line.to_owned()),
        }
    }
    contents.in_order()
}
